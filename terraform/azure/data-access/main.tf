# What a broker's identity may do in the data's account: read blobs of the given containers, and obtain the key
# that signs SAS tokens. A SAS it signs is the intersection of its own rights and one table's directory.

data "azurerm_client_config" "current" {}

data "azurerm_storage_account" "this" {
  name                = var.storage_account_name
  resource_group_name = var.resource_group_name

  lifecycle {
    postcondition {
      condition     = self.is_hns_enabled
      error_message = "The account ${self.name} has no hierarchical namespace, without which a SAS cannot be limited to a directory. The broker would refuse it."
    }
  }
}

locals {
  readers = merge([
    for name, principal in var.broker_principal_ids : {
      for container in var.containers : "${name}/${container}" => { principal = principal, container = container }
    }
  ]...)

  storage = [
    for container in sort(tolist(var.containers)) : {
      location = "abfss://${container}@${data.azurerm_storage_account.this.primary_dfs_host}/"
      azure = {
        tenant_id              = data.azurerm_client_config.current.tenant_id
        hierarchical_namespace = true
      }
    }
  ]
}

resource "azurerm_role_assignment" "read" {
  for_each = local.readers

  scope                = "${data.azurerm_storage_account.this.id}/blobServices/default/containers/${each.value.container}"
  role_definition_name = "Storage Blob Data Reader"
  principal_id         = each.value.principal
  principal_type       = "ServicePrincipal"
  description          = "lakepass: read tables of this container"
}

# The key is the account's; obtaining it gives no right to any blob.
resource "azurerm_role_assignment" "delegate" {
  for_each = var.broker_principal_ids

  scope                = data.azurerm_storage_account.this.id
  role_definition_name = "Storage Blob Delegator"
  principal_id         = each.value
  principal_type       = "ServicePrincipal"
  description          = "lakepass: sign SAS tokens with a user delegation key"
}
