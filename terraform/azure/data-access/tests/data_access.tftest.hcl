# What the identity of a broker is given, and what the variables refuse.

mock_provider "azurerm" {
  source = "../mocks"
}

variables {
  storage_account_name = "lake"
  resource_group_name  = "g"
  containers           = ["sales", "staff"]
  broker_principal_ids = {
    main  = "22222222-2222-2222-2222-222222222222"
    other = "33333333-3333-3333-3333-333333333333"
  }
}

run "roles" {
  command = apply

  assert {
    condition = toset([for role in azurerm_role_assignment.read : "${role.role_definition_name} ${role.principal_id} ${role.scope}"]) == toset([
      for pair in setproduct(["22222222-2222-2222-2222-222222222222", "33333333-3333-3333-3333-333333333333"], ["sales", "staff"]) :
      "Storage Blob Data Reader ${pair[0]} /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/lake/blobServices/default/containers/${pair[1]}"
    ])
    error_message = "Reading is granted on each container, never on the account."
  }

  assert {
    condition = toset([for role in azurerm_role_assignment.delegate : "${role.role_definition_name} ${role.principal_id} ${role.scope}"]) == toset([
      for principal in ["22222222-2222-2222-2222-222222222222", "33333333-3333-3333-3333-333333333333"] :
      "Storage Blob Delegator ${principal} /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/lake"
    ])
    error_message = "Every broker may obtain the delegation key of this account, and nothing else on it."
  }

  assert {
    condition = jsonencode(output.storage) == jsonencode([
      { location = "abfss://sales@lake.dfs.core.windows.net/", azure = { tenant_id = "11111111-1111-1111-1111-111111111111", hierarchical_namespace = true } },
      { location = "abfss://staff@lake.dfs.core.windows.net/", azure = { tenant_id = "11111111-1111-1111-1111-111111111111", hierarchical_namespace = true } },
    ])
    error_message = "Every container has its entry: ${jsonencode(output.storage)}"
  }
}

run "flat_account_refused" {
  command = plan

  override_data {
    target = data.azurerm_storage_account.this
    values = { name = "lake", is_hns_enabled = false }
  }

  expect_failures = [data.azurerm_storage_account.this]
}

run "no_container_refused" {
  command = plan
  variables {
    containers = []
  }
  expect_failures = [var.containers]
}

run "path_as_container_refused" {
  command = plan
  variables {
    containers = ["sales/orders"]
  }
  expect_failures = [var.containers]
}

run "name_as_principal_refused" {
  command = plan
  variables {
    broker_principal_ids = { main = "broker" }
  }
  expect_failures = [var.broker_principal_ids]
}
