output "storage" {
  description = "Entries for the broker's `storage` configuration, one per directory; input `storage` of the broker module."
  value       = local.storage

  # A broker that starts before its rights exist would be refused.
  depends_on = [google_storage_bucket_iam_member.read, google_service_account_iam_member.impersonate]
}

output "storage_yaml" {
  description = "The same, ready to paste into lakepass.yaml."
  value       = yamlencode({ storage = local.storage })
}

output "service_account" {
  description = "Address of the service account, for a broker that is configured by hand."
  value       = google_service_account.this.email
}
