# What somebody should look at, each for a reason of its own.

locals {
  service  = "resource.type = \"cloud_run_revision\" AND resource.labels.service_name = \"${google_cloud_run_v2_service.this.name}\""
  database = "resource.type = \"cloudsql_database\" AND resource.labels.database_id = \"${var.project}:${google_sql_database_instance.this.name}\""

  alerts = {
    few-replicas = {
      description = "Fewer replicas run than the service should always have."
      filter      = "${local.service} AND metric.type = \"run.googleapis.com/container/instance_count\""
      aligner     = "ALIGN_MIN"
      comparison  = "COMPARISON_LT"
      threshold   = var.min_replicas
      missing     = "EVALUATION_MISSING_DATA_ACTIVE"
    }
    errors = {
      description = "The broker answers requests with 5xx."
      filter      = "${local.service} AND metric.type = \"run.googleapis.com/request_count\" AND metric.labels.response_code_class = \"5xx\""
      aligner     = "ALIGN_DELTA"
      comparison  = "COMPARISON_GT"
      threshold   = 10
      missing     = "EVALUATION_MISSING_DATA_INACTIVE"
    }
    database-cpu = {
      description = "The database is busy: every vend writes an audit row before it answers."
      filter      = "${local.database} AND metric.type = \"cloudsql.googleapis.com/database/cpu/utilization\""
      aligner     = "ALIGN_MEAN"
      comparison  = "COMPARISON_GT"
      threshold   = 0.8
      missing     = "EVALUATION_MISSING_DATA_ACTIVE"
    }
    database-storage = {
      description = "The database's disk is nearly full: without room for the audit nothing is vended."
      filter      = "${local.database} AND metric.type = \"cloudsql.googleapis.com/database/disk/utilization\""
      aligner     = "ALIGN_MAX"
      comparison  = "COMPARISON_GT"
      threshold   = 0.9
      missing     = "EVALUATION_MISSING_DATA_ACTIVE"
    }
  }
}

resource "google_monitoring_alert_policy" "this" {
  for_each = local.alerts

  project               = var.project
  display_name          = "${var.name} ${each.key}"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  documentation {
    content = each.value.description
  }

  conditions {
    display_name = each.value.description

    condition_threshold {
      filter          = each.value.filter
      duration        = "180s"
      comparison      = each.value.comparison
      threshold_value = each.value.threshold

      evaluation_missing_data = each.value.missing

      aggregations {
        alignment_period     = "60s"
        per_series_aligner   = each.value.aligner
        cross_series_reducer = "REDUCE_SUM"
      }
    }
  }
}
