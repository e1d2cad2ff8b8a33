# The whole as planned from nothing, then applied: what is not known before it is made must not be needed to plan.

mock_provider "azurerm" {
  mock_data "azurerm_storage_account" {
    defaults = {
      id               = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/lakepassdemo"
      name             = "lakepassdemo"
      is_hns_enabled   = true
      primary_dfs_host = "lakepassdemo.dfs.core.windows.net"
    }
  }
  mock_resource "azurerm_user_assigned_identity" {
    defaults = { principal_id = "22222222-2222-2222-2222-222222222222" }
  }
  mock_resource "azurerm_container_app_environment" {
    defaults = { default_domain = "blue.westeurope.azurecontainerapps.io" }
  }
}

variables {
  location             = "westeurope"
  name                 = "lakepass-demo"
  storage_account_name = "lakepassdemo"
  image                = "registry.example.com/lakepass:0.1.0"
  allowed_cidr_blocks  = ["203.0.113.0/24"]
  deployer_cidr_blocks = ["203.0.113.7/32"]
  database_password    = "local-password-of-a-test-0000"
  admin_token_sha256   = "0000000000000000000000000000000000000000000000000000000000000000"
  activation_code      = "local-activation-code-of-a-test-0000"
}

run "plans_from_nothing" {
  command = plan

  assert {
    condition     = toset(keys(azurerm_storage_blob.table)) == fileset("${path.module}/../../demo-table", "**") && length(azurerm_storage_blob.table) >= 2
    error_message = "The demo table is uploaded whole."
  }
}

run "applied" {
  command = apply

  assert {
    condition     = output.activation_link == "https://lakepass-demo.blue.westeurope.azurecontainerapps.io/activate/local-activation-code-of-a-test-0000"
    error_message = "The activation link is known."
  }

  assert {
    condition     = output.table == "abfss://lake@lakepassdemo.dfs.core.windows.net/trips"
    error_message = "The table lies in the container that data-access opens: ${output.table}"
  }
}
