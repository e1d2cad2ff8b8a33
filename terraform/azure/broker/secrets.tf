# The two secrets a replica needs at its start. Both are written through write-only arguments, so that neither
# the state nor a plan ever holds them.

resource "azurerm_key_vault" "this" {
  # checkov:skip=CKV_AZURE_189: closed to all but the broker's subnet and the deployer's ranges by network_acls; a private endpoint would keep Terraform out
  # checkov:skip=CKV2_AZURE_32: the same
  name                       = var.name
  resource_group_name        = var.resource_group_name
  location                   = var.location
  tenant_id                  = data.azurerm_client_config.current.tenant_id
  sku_name                   = "standard"
  rbac_authorization_enabled = true
  purge_protection_enabled   = true
  soft_delete_retention_days = 30
  tags                       = var.tags

  network_acls {
    default_action             = "Deny"
    bypass                     = "None"
    ip_rules                   = var.deployer_cidr_blocks
    virtual_network_subnet_ids = [var.broker_subnet_id]
  }
}

# Whoever applies this writes the secrets; the broker reads its two and no other. A role counts only after some minutes:
# the database is made in between, so that the secrets are not refused.
resource "azurerm_role_assignment" "deployer" {
  scope                = azurerm_key_vault.this.id
  role_definition_name = "Key Vault Secrets Officer"
  principal_id         = data.azurerm_client_config.current.object_id
}

resource "azurerm_key_vault_secret" "database" {
  # checkov:skip=CKV_AZURE_41: a date would cut the broker off; the password is changed by raising secrets_version
  name             = "database"
  key_vault_id     = azurerm_key_vault.this.id
  content_type     = "text/plain"
  value_wo         = "postgresql://${azurerm_postgresql_flexible_server.this.administrator_login}:${var.database_password}@${azurerm_postgresql_flexible_server.this.fqdn}:5432/${azurerm_postgresql_flexible_server_database.this.name}?sslmode=require"
  value_wo_version = var.secrets_version
  tags             = var.tags

  depends_on = [azurerm_role_assignment.deployer]
}

resource "azurerm_key_vault_secret" "admin" {
  # checkov:skip=CKV_AZURE_41: a hash of a token that only people hold; it is changed by raising secrets_version
  name             = "admin-token-sha256"
  key_vault_id     = azurerm_key_vault.this.id
  content_type     = "text/plain"
  value_wo         = var.admin_token_sha256
  value_wo_version = var.secrets_version
  tags             = var.tags

  depends_on = [azurerm_role_assignment.deployer, azurerm_postgresql_flexible_server.this]
}

resource "azurerm_role_assignment" "secrets" {
  for_each = {
    database = azurerm_key_vault_secret.database.resource_versionless_id
    admin    = azurerm_key_vault_secret.admin.resource_versionless_id
  }

  scope                = each.value
  role_definition_name = "Key Vault Secrets User"
  principal_id         = azurerm_user_assigned_identity.broker.principal_id
  principal_type       = "ServicePrincipal"
}

resource "azurerm_monitor_diagnostic_setting" "key_vault" {
  name                       = "audit"
  target_resource_id         = azurerm_key_vault.this.id
  log_analytics_workspace_id = azurerm_log_analytics_workspace.this.id

  enabled_log {
    category = "AuditEvent"
  }
}
