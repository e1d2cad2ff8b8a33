# The catalog and the audit: PostgreSQL with a standby in a second zone, inside the virtual network only.
# Azure encrypts its storage and refuses connections without TLS.

resource "azurerm_private_dns_zone" "database" {
  name                = "${var.name}.private.postgres.database.azure.com"
  resource_group_name = var.resource_group_name
  tags                = var.tags
}

resource "azurerm_private_dns_zone_virtual_network_link" "database" {
  name                = var.name
  private_dns_zone_id = azurerm_private_dns_zone.database.id
  virtual_network_id  = var.virtual_network_id
  tags                = var.tags
}

resource "azurerm_postgresql_flexible_server" "this" {
  # checkov:skip=CKV2_AZURE_57: the server stands inside the network by its delegated subnet, which takes the place of an endpoint
  # checkov:skip=CKV_AZURE_136: geo-redundant backups are on by default; a variable, because some data may not leave its region
  name                = var.name
  resource_group_name = var.resource_group_name
  location            = var.location
  version             = var.database_version
  sku_name            = var.database_sku
  storage_mb          = var.database_storage_mb
  auto_grow_enabled   = true
  tags                = var.tags

  administrator_login               = "lakepass"
  administrator_password_wo         = var.database_password
  administrator_password_wo_version = var.secrets_version

  delegated_subnet_id           = var.database_subnet_id
  private_dns_zone_id           = azurerm_private_dns_zone.database.id
  public_network_access_enabled = false

  backup_retention_days        = var.backup_retention_days
  geo_redundant_backup_enabled = var.geo_redundant_backup

  high_availability {
    mode = "ZoneRedundant"
  }

  depends_on = [azurerm_private_dns_zone_virtual_network_link.database, azurerm_role_assignment.deployer]

  lifecycle {
    # Azure chooses the zones, and swaps them at a failover. Storage grows by itself: going back to what it started
    # with would replace the server, and with it the data.
    ignore_changes = [zone, high_availability[0].standby_availability_zone, storage_mb, storage_tier]
  }
}

resource "azurerm_postgresql_flexible_server_database" "this" {
  name      = "lakepass"
  server_id = azurerm_postgresql_flexible_server.this.id
  charset   = "UTF8"
  collation = "en_US.utf8"
}
