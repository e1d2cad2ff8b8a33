# The replicas, spread over the zones by the environment. TLS ends at the environment's ingress, which lets in the
# allowed ranges only.

resource "azurerm_container_app_environment" "this" {
  name                           = var.name
  resource_group_name            = var.resource_group_name
  location                       = var.location
  infrastructure_subnet_id       = var.broker_subnet_id
  internal_load_balancer_enabled = !var.internet_facing
  public_network_access          = var.internet_facing ? "Enabled" : "Disabled"
  zone_redundancy_enabled        = true
  logs_destination               = "log-analytics"
  log_analytics_workspace_id     = azurerm_log_analytics_workspace.this.id
  tags                           = var.tags

  workload_profile {
    name                  = "Consumption"
    workload_profile_type = "Consumption"
  }

  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.broker.id]
  }

  lifecycle {
    # Azure fills these in, and the provider would replace the environment, and with it the broker's name, to undo that.
    ignore_changes = [infrastructure_resource_group_name, workload_profile]
  }
}

resource "azurerm_container_app" "this" {
  name                         = var.name
  resource_group_name          = var.resource_group_name
  container_app_environment_id = azurerm_container_app_environment.this.id
  workload_profile_name        = "Consumption"
  revision_mode                = "Single"
  tags                         = var.tags

  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.broker.id]
  }

  dynamic "registry" {
    for_each = var.registry == null ? [] : [var.registry]

    content {
      server   = registry.value.server
      identity = azurerm_user_assigned_identity.broker.id
    }
  }

  secret {
    name                = "database"
    key_vault_secret_id = azurerm_key_vault_secret.database.versionless_id
    identity            = azurerm_user_assigned_identity.broker.id
  }

  secret {
    name                = "admin-token-sha256"
    key_vault_secret_id = azurerm_key_vault_secret.admin.versionless_id
    identity            = azurerm_user_assigned_identity.broker.id
  }

  ingress {
    # External to the environment; whether the environment itself is public is internet_facing.
    external_enabled           = true
    target_port                = local.port
    transport                  = "auto"
    allow_insecure_connections = false

    dynamic "ip_security_restriction" {
      for_each = var.allowed_cidr_blocks

      content {
        name             = "allowed-${ip_security_restriction.key}"
        description      = "An allowed range; all others are refused"
        action           = "Allow"
        ip_address_range = ip_security_restriction.value
      }
    }

    traffic_weight {
      latest_revision = true
      percentage      = 100
    }
  }

  template {
    min_replicas = var.min_replicas
    max_replicas = var.max_replicas
    # The broker's streams may finish: its own shutdown timeout is 60 s.
    termination_grace_period_seconds = 90

    http_scale_rule {
      name                = "requests"
      concurrent_requests = "50"
    }

    container {
      name   = "broker"
      image  = var.image
      cpu    = var.cpu
      memory = "${2 * var.cpu}Gi"

      command = length(local.setup) == 0 ? null : ["/bin/sh", "-c"]
      args    = length(local.setup) == 0 ? null : local.setup

      dynamic "env" {
        # A raised version makes a new revision, which reads the new secrets.
        for_each = merge(local.environment, { SECRETS_VERSION = tostring(var.secrets_version) })

        content {
          name  = env.key
          value = env.value
        }
      }

      env {
        name        = "LAKEPASS_DATABASE"
        secret_name = "database"
      }

      env {
        name        = "LAKEPASS_ADMIN__TOKEN_SHA256"
        secret_name = "admin-token-sha256"
      }

      startup_probe {
        transport               = "HTTP"
        port                    = local.port
        path                    = "/health/live"
        interval_seconds        = 3
        failure_count_threshold = 30
      }

      liveness_probe {
        transport               = "HTTP"
        port                    = local.port
        path                    = "/health/live"
        interval_seconds        = 10
        failure_count_threshold = 3
      }

      readiness_probe {
        transport               = "HTTP"
        port                    = local.port
        path                    = "/health/ready"
        interval_seconds        = 5
        failure_count_threshold = 3
      }
    }
  }

  depends_on = [azurerm_role_assignment.secrets, azurerm_role_assignment.pull]
}

# A private environment's name is known nowhere but in its own network.
resource "azurerm_private_dns_zone" "environment" {
  count = var.internet_facing ? 0 : 1

  name                = azurerm_container_app_environment.this.default_domain
  resource_group_name = var.resource_group_name
  tags                = var.tags
}

resource "azurerm_private_dns_zone_virtual_network_link" "environment" {
  count = var.internet_facing ? 0 : 1

  name                = var.name
  private_dns_zone_id = azurerm_private_dns_zone.environment[0].id
  virtual_network_id  = var.virtual_network_id
  tags                = var.tags
}

resource "azurerm_private_dns_a_record" "environment" {
  count = var.internet_facing ? 0 : 1

  name                = var.name
  private_dns_zone_id = azurerm_private_dns_zone.environment[0].id
  ttl                 = 300
  records             = [azurerm_container_app_environment.this.static_ip_address]
  tags                = var.tags
}

resource "azurerm_container_app_environment_certificate" "this" {
  count = var.domain_name == null ? 0 : 1

  name                         = "${var.name}-certificate"
  container_app_environment_id = azurerm_container_app_environment.this.id
  tags                         = var.tags

  certificate_key_vault {
    identity            = azurerm_user_assigned_identity.broker.id
    key_vault_secret_id = var.certificate_key_vault_secret_id
  }
}

resource "azurerm_container_app_custom_domain" "this" {
  count = var.domain_name == null ? 0 : 1

  name                                     = var.domain_name
  container_app_id                         = azurerm_container_app.this.id
  container_app_environment_certificate_id = azurerm_container_app_environment_certificate.this[0].id
  certificate_binding_type                 = "SniEnabled"
}
