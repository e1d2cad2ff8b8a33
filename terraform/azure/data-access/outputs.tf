output "storage" {
  description = "Entries for the broker's `storage` configuration, one per container; input `storage` of the broker module."
  value       = local.storage

  # A broker that starts before its roles exist would be refused by the account.
  depends_on = [azurerm_role_assignment.read, azurerm_role_assignment.delegate]
}

output "storage_yaml" {
  description = "The same, ready to paste into lakepass.yaml."
  value       = yamlencode({ storage = local.storage })
}
