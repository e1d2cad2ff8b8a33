# From an empty subscription to a working share: a network, a storage account with a small Delta table, the broker, one
# recipient.
#
#   export ARM_SUBSCRIPTION_ID=…
#   export TF_VAR_database_password=Az$(openssl rand -hex 24)
#   export TF_VAR_admin_token_sha256=$(printf %s "$ADMIN_TOKEN" | sha256sum | cut -d' ' -f1)
#   export TF_VAR_activation_code=$(openssl rand -hex 24)
#   terraform apply && terraform output -raw activation_link

terraform {
  required_version = ">= 1.11"

  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 5.2"
    }
  }
}

provider "azurerm" {
  # The demo's blobs are written with the deployer's own identity: the account has no shared key.
  storage_use_azuread = true

  # An empty subscription knows none of them, and the provider registers nothing by itself.
  resource_providers_to_register = [
    "Microsoft.App",
    "Microsoft.ContainerService", # Container Apps inside a network of one's own
    "Microsoft.DBforPostgreSQL",
    "Microsoft.Insights",
    "Microsoft.KeyVault",
    "Microsoft.ManagedIdentity",
    "Microsoft.Network",
    "Microsoft.OperationalInsights",
    "Microsoft.Storage",
  ]

  features {}
}

data "azurerm_client_config" "current" {}

locals {
  table     = "trips"
  container = "lake"
  files     = fileset("${path.module}/../../demo-table", "**")
}

resource "azurerm_resource_group" "this" {
  name     = var.name
  location = var.location
}

# --- The data ---

resource "azurerm_storage_account" "lake" {
  # checkov:skip=CKV_AZURE_36: no service of Azure's needs to read it
  # checkov:skip=CKV_AZURE_33: no queues are used
  # checkov:skip=CKV_AZURE_59: recipients read the demo table directly, from the allowed ranges
  # checkov:skip=CKV_AZURE_206: a demo's data needs no copy in another region
  # checkov:skip=CKV2_AZURE_1: Azure's own keys encrypt it
  # checkov:skip=CKV2_AZURE_33: recipients read the demo table directly; they are not in this network
  # checkov:skip=CKV2_AZURE_38: the demo table is written once, by Terraform
  # checkov:skip=CKV2_AZURE_41: no shared key, so no SAS of one
  name                            = var.storage_account_name
  resource_group_name             = azurerm_resource_group.this.name
  location                        = azurerm_resource_group.this.location
  account_tier                    = "Standard"
  account_replication_type        = "ZRS"
  is_hns_enabled                  = true
  min_tls_version                 = "TLS1_2"
  shared_access_key_enabled       = false
  allow_nested_items_to_be_public = false
  local_user_enabled              = false

  # Recipients use what is vended from where they are, Terraform writes the table from where it runs; the broker's
  # subnet comes by its service endpoint.
  network_rules {
    default_action = "Deny"
    bypass         = ["None"]
    # Storage takes a single address without its /32.
    ip_rules = distinct([
      for block in concat(var.allowed_cidr_blocks, var.deployer_cidr_blocks) : trimsuffix(block, "/32")
    ])
    virtual_network_subnet_ids = [azurerm_subnet.broker.id]
  }
}

# Whoever applies this writes the demo table.
resource "azurerm_role_assignment" "deployer" {
  scope                = azurerm_storage_account.lake.id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = data.azurerm_client_config.current.object_id
}

resource "azurerm_storage_container" "lake" {
  # checkov:skip=CKV2_AZURE_21: a demo's container; read logs are the account's choice
  name                  = local.container
  storage_account_id    = azurerm_storage_account.lake.id
  container_access_type = "private"
}

resource "azurerm_storage_blob" "table" {
  for_each = local.files

  name                 = each.value
  storage_container_id = azurerm_storage_container.lake.id
  type                 = "Block"
  source               = "${path.module}/../../demo-table/${each.value}"
  content_md5          = filemd5("${path.module}/../../demo-table/${each.value}")

  # The role above counts only after some minutes; the broker takes longer to be made.
  depends_on = [azurerm_role_assignment.deployer, module.broker]
}

module "data_access" {
  source = "../data-access"

  storage_account_name = azurerm_storage_account.lake.name
  resource_group_name  = azurerm_resource_group.this.name
  containers           = [local.container]
  broker_principal_ids = { demo = module.broker.principal_id }

  # The account is looked up, so it must be there.
  depends_on = [azurerm_storage_container.lake]
}

# --- The broker ---

module "broker" {
  source = "../broker"

  name                 = var.name
  resource_group_name  = azurerm_resource_group.this.name
  location             = azurerm_resource_group.this.location
  virtual_network_id   = azurerm_virtual_network.this.id
  broker_subnet_id     = azurerm_subnet.broker.id
  database_subnet_id   = azurerm_subnet.database.id
  internet_facing      = true
  allowed_cidr_blocks  = var.allowed_cidr_blocks
  deployer_cidr_blocks = var.deployer_cidr_blocks
  image                = var.image
  registry             = var.registry
  storage              = module.data_access.storage
  database_password    = var.database_password
  admin_token_sha256   = var.admin_token_sha256
  geo_redundant_backup = false

  setup_commands = [
    ["share", "add", "demo", "--if-absent"],
    ["table", "add", "demo.default.${local.table}", "${module.data_access.storage[0].location}${local.table}", "--access", "url,dir", "--no-check", "--if-absent"],
    # The code's hash: who reads the container's definition cannot activate the recipient.
    ["recipient", "add", "demo", "--activation-sha256", nonsensitive(sha256(var.activation_code)), "--if-absent"],
    ["grant", "add", "demo", "demo", "--if-absent"],
  ]
}
