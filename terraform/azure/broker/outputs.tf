output "url" {
  description = "Address of the broker; recipients' profiles hold it followed by /delta-sharing."
  value       = "https://${local.host}"
}

output "principal_id" {
  description = "Object id of the broker's identity: a value of `broker_principal_ids` of the data-access modules."
  value       = azurerm_user_assigned_identity.broker.principal_id
}

output "identity_id" {
  description = "Resource id of the broker's identity, for one-off jobs."
  value       = azurerm_user_assigned_identity.broker.id
}

output "environment_static_ip" {
  description = "Address of the ingress, for the record of a domain name of your own."
  value       = azurerm_container_app_environment.this.static_ip_address
}

output "domain_verification_id" {
  description = "Value of the TXT record asuid.<domain_name> that Azure asks for before it serves the name."
  value       = azurerm_container_app.this.custom_domain_verification_id
  sensitive   = true
}

output "log_analytics_workspace_id" {
  description = "Workspace that holds the broker's log."
  value       = azurerm_log_analytics_workspace.this.id
}
