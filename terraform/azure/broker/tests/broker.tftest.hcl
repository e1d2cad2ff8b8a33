# The broker as planned, with a mocked provider: what is private, what is spread, what its identity may do.

mock_provider "azurerm" {
  source = "../mocks"
}

variables {
  name                = "lakepass-test"
  resource_group_name = "g"
  location            = "westeurope"
  virtual_network_id  = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n"
  broker_subnet_id    = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/broker"
  database_subnet_id  = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/database"
  allowed_cidr_blocks = ["10.0.0.0/8"]
  image               = "example.azurecr.io/lakepass:0.1.0"
  database_password   = "local-password-of-a-test-0000"
  admin_token_sha256  = "0000000000000000000000000000000000000000000000000000000000000000"
  storage = [
    { location = "abfss://sales@lake.dfs.core.windows.net/", azure = { tenant_id = "11111111-1111-1111-1111-111111111111" } },
  ]
}

run "private_and_spread" {
  command = apply

  assert {
    condition     = azurerm_container_app_environment.this.internal_load_balancer_enabled && azurerm_container_app_environment.this.public_network_access == "Disabled" && !azurerm_postgresql_flexible_server.this.public_network_access_enabled
    error_message = "Nothing is public unless asked for."
  }

  assert {
    condition     = azurerm_container_app_environment.this.zone_redundancy_enabled && azurerm_container_app.this.template[0].min_replicas == 2 && azurerm_postgresql_flexible_server.this.high_availability[0].mode == "ZoneRedundant"
    error_message = "Replicas and database stand in two zones."
  }

  assert {
    condition     = azurerm_postgresql_flexible_server.this.backup_retention_days == 14 && azurerm_postgresql_flexible_server.this.geo_redundant_backup_enabled
    error_message = "The database is backed up, in two regions."
  }

  assert {
    condition     = !azurerm_container_app.this.ingress[0].allow_insecure_connections && [for rule in azurerm_container_app.this.ingress[0].ip_security_restriction : [rule.action, rule.ip_address_range]] == [["Allow", "10.0.0.0/8"]]
    error_message = "The ingress takes TLS from the allowed ranges only."
  }

  assert {
    condition     = azurerm_key_vault.this.network_acls[0].default_action == "Deny" && azurerm_key_vault.this.purge_protection_enabled
    error_message = "The key vault is closed and cannot be purged."
  }
}

run "rights" {
  command = apply

  assert {
    condition = toset([for role in azurerm_role_assignment.secrets : "${role.role_definition_name} ${role.principal_id} ${role.scope}"]) == toset([
      "Key Vault Secrets User 22222222-2222-2222-2222-222222222222 /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.KeyVault/vaults/v/secrets/one",
    ])
    error_message = "The broker's identity reads its secrets and has no other right here."
  }

  assert {
    condition     = length(azurerm_role_assignment.pull) == 0
    error_message = "A public image needs no right to pull."
  }
}

run "pulls_from_its_registry" {
  command = apply

  variables {
    registry = { server = "example.azurecr.io", id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.ContainerRegistry/registries/example" }
  }

  assert {
    condition     = "${azurerm_role_assignment.pull[0].role_definition_name} ${azurerm_role_assignment.pull[0].scope}" == "AcrPull ${var.registry.id}" && azurerm_container_app.this.registry[0].identity == azurerm_user_assigned_identity.broker.id
    error_message = "The identity pulls from that registry, and from no other."
  }
}

run "container" {
  command = apply

  assert {
    condition = alltrue([
      for variable in azurerm_container_app.this.template[0].container[0].env :
      variable.secret_name != null && variable.secret_name != "" if contains(["LAKEPASS_DATABASE", "LAKEPASS_ADMIN__TOKEN_SHA256"], variable.name)
    ])
    error_message = "Both secrets come from the secret store."
  }

  assert {
    condition     = local.environment.LAKEPASS_SERVER__PUBLIC_URL == "https://lakepass-test.blue.westeurope.azurecontainerapps.io" && local.environment.AZURE_CLIENT_ID == "33333333-3333-3333-3333-333333333333"
    error_message = "The broker knows its address and its identity."
  }

  assert {
    condition     = local.environment.LAKEPASS_STORAGE == jsonencode([{ location = "abfss://sales@lake.dfs.core.windows.net/", azure = { tenant_id = "11111111-1111-1111-1111-111111111111", hierarchical_namespace = true } }])
    error_message = "The storage entries reach the broker as they are: ${local.environment.LAKEPASS_STORAGE}"
  }
}

run "private_name_is_known_in_its_network" {
  command = apply

  assert {
    condition     = azurerm_private_dns_zone.environment[0].name == "blue.westeurope.azurecontainerapps.io" && azurerm_private_dns_a_record.environment[0].name == "lakepass-test" && azurerm_private_dns_a_record.environment[0].records == toset(["10.0.0.4"])
    error_message = "The address that recipients are given resolves inside the network."
  }
}

run "public_name_is_azures" {
  command = apply

  variables {
    internet_facing = true
  }

  assert {
    condition     = length(azurerm_private_dns_zone.environment) == 0 && azurerm_container_app_environment.this.public_network_access == "Enabled"
    error_message = "A public environment's name is known everywhere."
  }
}

run "own_domain" {
  command = apply
  variables {
    domain_name                     = "share.example.com"
    certificate_key_vault_secret_id = "https://certificates.vault.azure.net/secrets/share"
  }
  assert {
    condition     = output.url == "https://share.example.com" && azurerm_container_app_custom_domain.this[0].certificate_binding_type == "SniEnabled"
    error_message = "A given certificate serves the given name."
  }
}

run "domain_without_certificate_refused" {
  command = plan
  variables {
    domain_name = "share.example.com"
  }
  expect_failures = [var.certificate_key_vault_secret_id]
}

run "open_to_all_by_accident_refused" {
  command = plan
  variables {
    allowed_cidr_blocks = ["0.0.0.0/0"]
  }
  expect_failures = [var.allowed_cidr_blocks]
}

run "one_replica_refused" {
  command = plan
  variables {
    min_replicas = 1
  }
  expect_failures = [var.min_replicas]
}

run "deployer_without_range_refused" {
  command = plan
  variables {
    deployer_cidr_blocks = ["my-laptop"]
  }
  expect_failures = [var.deployer_cidr_blocks]
}

run "burstable_database_refused" {
  command = plan
  variables {
    database_sku = "B_Standard_B1ms"
  }
  expect_failures = [var.database_sku]
}

run "password_of_two_kinds_refused" {
  command = plan
  variables {
    database_password = "0123456789abcdef0123456789abcdef"
  }
  expect_failures = [var.database_password]
}

run "latest_refused" {
  command = plan
  variables {
    image = "example.azurecr.io/lakepass:latest"
  }
  expect_failures = [var.image]
}
