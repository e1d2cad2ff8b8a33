# What somebody should look at, each for a reason of its own.

locals {
  alerts = {
    few-replicas = {
      description = "Fewer replicas run than the service should always have."
      scope       = azurerm_container_app.this.id
      namespace   = "Microsoft.App/containerApps"
      metric      = "Replicas"
      aggregation = "Minimum"
      operator    = "LessThan"
      threshold   = var.min_replicas
      dimensions  = {}
    }
    errors = {
      description = "The broker answers requests with 5xx."
      scope       = azurerm_container_app.this.id
      namespace   = "Microsoft.App/containerApps"
      metric      = "Requests"
      aggregation = "Total"
      operator    = "GreaterThan"
      threshold   = 10
      dimensions  = { statusCodeCategory = "5xx" }
    }
    database-cpu = {
      description = "The database is busy: every vend writes an audit row before it answers."
      scope       = azurerm_postgresql_flexible_server.this.id
      namespace   = "Microsoft.DBforPostgreSQL/flexibleServers"
      metric      = "cpu_percent"
      aggregation = "Average"
      operator    = "GreaterThan"
      threshold   = 80
      dimensions  = {}
    }
    database-storage = {
      description = "The database's storage is nearly full: without room for the audit nothing is vended."
      scope       = azurerm_postgresql_flexible_server.this.id
      namespace   = "Microsoft.DBforPostgreSQL/flexibleServers"
      metric      = "storage_percent"
      aggregation = "Maximum"
      operator    = "GreaterThan"
      threshold   = 85
      dimensions  = {}
    }
  }
}

resource "azurerm_monitor_metric_alert" "this" {
  for_each = local.alerts

  name                = "${var.name}-${each.key}"
  resource_group_name = var.resource_group_name
  description         = each.value.description
  scopes              = [each.value.scope]
  severity            = 2
  frequency           = "PT1M"
  window_size         = "PT5M"
  tags                = var.tags

  criteria {
    metric_namespace = each.value.namespace
    metric_name      = each.value.metric
    aggregation      = each.value.aggregation
    operator         = each.value.operator
    threshold        = each.value.threshold

    dynamic "dimension" {
      for_each = each.value.dimensions

      content {
        name     = dimension.key
        operator = "Include"
        values   = [dimension.value]
      }
    }
  }

  dynamic "action" {
    for_each = var.action_group_ids

    content {
      action_group_id = action.value
    }
  }
}
