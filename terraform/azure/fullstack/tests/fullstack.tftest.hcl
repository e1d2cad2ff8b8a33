# The whole as planned from nothing, then applied: what is not known before it is made must not be needed to plan.

mock_provider "azurerm" {
  source = "../mocks"
}

variables {
  location             = "westeurope"
  name                 = "lakepass-demo"
  storage_account_name = "lake"
  image                = "registry.example.com/lakepass:0.1.0"
  allowed_cidr_blocks  = ["203.0.113.0/24"]
  deployer_cidr_blocks = ["198.51.100.7/32"]
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

  assert {
    condition     = azurerm_storage_account.lake.network_rules[0].ip_rules == toset(["203.0.113.0/24", "198.51.100.7"])
    error_message = "Recipients read the table, and Terraform writes it."
  }
}

run "applied" {
  command = apply

  assert {
    condition     = output.activation_link == "https://lakepass-demo.blue.westeurope.azurecontainerapps.io/activate/local-activation-code-of-a-test-0000"
    error_message = "The activation link is known."
  }

  assert {
    condition     = output.table == "abfss://lake@lake.dfs.core.windows.net/trips"
    error_message = "The table lies in the container that data-access opens: ${output.table}"
  }
}
