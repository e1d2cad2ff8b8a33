# The broker on Container Apps, with its catalog in PostgreSQL. Nothing here holds a long-lived cloud key: the
# replicas run under a managed identity, which the data-access module gives its rights.

data "azurerm_client_config" "current" {}

locals {
  port = 8080
  host = coalesce(var.domain_name, "${var.name}.${azurerm_container_app_environment.this.default_domain}")

  # Only the keys that are set: the broker refuses a section of another cloud.
  storage = [
    for entry in var.storage : merge(
      { location = entry.location },
      entry.aws == null ? {} : { aws = { for key, value in entry.aws : key => value if value != null } },
      entry.azure == null ? {} : { azure = { for key, value in entry.azure : key => value if value != null } },
      entry.gcp == null ? {} : { gcp = { for key, value in entry.gcp : key => value if value != null } },
    )
  ]

  environment = merge(
    {
      LAKEPASS_SERVER__HOST       = "0.0.0.0"
      LAKEPASS_SERVER__PORT       = tostring(local.port)
      LAKEPASS_SERVER__PUBLIC_URL = "https://${local.host}"
      LAKEPASS_SERVER__LOG_FORMAT = "json"
      # The range that the environment reserves for its own ingress.
      LAKEPASS_SERVER__TRUSTED_PROXIES = jsonencode(["100.100.0.0/16"])
      LAKEPASS_CREDENTIALS__LIFETIME   = var.credential_lifetime
      LAKEPASS_STORAGE                 = jsonencode(local.storage)
      # Which of the identities the SDK should use.
      AZURE_CLIENT_ID = azurerm_user_assigned_identity.broker.client_id
    },
    var.environment,
  )

  # With commands to run first, a shell does so and then becomes the broker; otherwise the image's own entry point.
  setup = length(var.setup_commands) == 0 ? [] : [join(" && ", concat(
    [for command in var.setup_commands : "lakepass ${join(" ", [for word in command : "'${word}'"])}"],
    ["exec lakepass serve"],
  ))]
}

resource "azurerm_user_assigned_identity" "broker" {
  name                = "${var.name}-broker"
  resource_group_name = var.resource_group_name
  location            = var.location
  tags                = var.tags
}

resource "azurerm_role_assignment" "pull" {
  count = var.registry == null ? 0 : 1

  scope                = var.registry.id
  role_definition_name = "AcrPull"
  principal_id         = azurerm_user_assigned_identity.broker.principal_id
  principal_type       = "ServicePrincipal"
  description          = "lakepass: pull the broker's image"
}

resource "azurerm_log_analytics_workspace" "this" {
  name                = var.name
  resource_group_name = var.resource_group_name
  location            = var.location
  sku                 = "PerGB2018"
  retention_in_days   = var.log_retention_days
  tags                = var.tags
}
