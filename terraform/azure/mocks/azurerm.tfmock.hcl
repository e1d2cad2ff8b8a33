# What Azure would answer, for the modules' tests. The real provider checks the form of every id that one resource gives to
# another, mocked or not: made-up text in its place is refused.

mock_data "azurerm_client_config" {
  defaults = {
    tenant_id       = "11111111-1111-1111-1111-111111111111"
    object_id       = "99999999-9999-9999-9999-999999999999"
    subscription_id = "00000000-0000-0000-0000-000000000000"
  }
}

mock_data "azurerm_storage_account" {
  defaults = {
    id               = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/lake"
    name             = "lake"
    is_hns_enabled   = true
    primary_dfs_host = "lake.dfs.core.windows.net"
  }
}

mock_resource "azurerm_resource_group" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g" }
}

mock_resource "azurerm_virtual_network" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n" }
}

mock_resource "azurerm_subnet" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/s" }
}

mock_resource "azurerm_storage_account" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/lake" }
}

mock_resource "azurerm_storage_container" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/lake/blobServices/default/containers/lake" }
}

mock_resource "azurerm_user_assigned_identity" {
  defaults = {
    id           = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/broker"
    principal_id = "22222222-2222-2222-2222-222222222222"
    client_id    = "33333333-3333-3333-3333-333333333333"
  }
}

mock_resource "azurerm_log_analytics_workspace" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.OperationalInsights/workspaces/w" }
}

mock_resource "azurerm_private_dns_zone" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/private.example.com" }
}

mock_resource "azurerm_postgresql_flexible_server" {
  defaults = {
    id   = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.DBforPostgreSQL/flexibleServers/d"
    fqdn = "d.postgres.database.azure.com"
  }
}

mock_resource "azurerm_key_vault" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.KeyVault/vaults/v" }
}

mock_resource "azurerm_key_vault_secret" {
  defaults = {
    id                      = "https://v.vault.azure.net/secrets/one/0123456789abcdef0123456789abcdef"
    versionless_id          = "https://v.vault.azure.net/secrets/one"
    resource_versionless_id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.KeyVault/vaults/v/secrets/one"
  }
}

mock_resource "azurerm_container_app_environment" {
  defaults = {
    id                = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.App/managedEnvironments/e"
    default_domain    = "blue.westeurope.azurecontainerapps.io"
    static_ip_address = "10.0.0.4"
  }
}

mock_resource "azurerm_container_app_environment_certificate" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.App/managedEnvironments/e/certificates/c" }
}

mock_resource "azurerm_container_app" {
  defaults = { id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.App/containerApps/a" }
}
