# The replicas, spread over the region's zones by Cloud Run.

resource "google_cloud_run_v2_service" "this" {
  project             = var.project
  name                = var.name
  location            = var.region
  ingress             = var.internet_facing ? "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER" : "INGRESS_TRAFFIC_INTERNAL_ONLY"
  deletion_protection = var.deletion_protection
  labels              = var.labels

  # The broker checks its recipients' tokens itself; the network decides who reaches it at all.
  invoker_iam_disabled = true

  template {
    service_account                  = google_service_account.broker.email
    timeout                          = "300s"
    max_instance_request_concurrency = 80
    labels                           = var.labels

    scaling {
      min_instance_count = var.min_replicas
      max_instance_count = var.max_replicas
    }

    vpc_access {
      egress = "PRIVATE_RANGES_ONLY"

      network_interfaces {
        network    = var.network_id
        subnetwork = var.subnetwork_id
      }
    }

    containers {
      name    = "broker"
      image   = var.image
      command = length(local.setup) == 0 ? null : ["/bin/sh", "-c"]
      args    = length(local.setup) == 0 ? null : local.setup

      ports {
        container_port = local.port
      }

      resources {
        # Renewals and the audit's group commits go on between requests.
        cpu_idle = false
        limits   = { cpu = tostring(var.cpu), memory = "${var.memory_gb}Gi" }
      }

      dynamic "env" {
        # A raised version makes a new revision, which reads the new secrets.
        for_each = merge(local.environment, { SECRETS_VERSION = tostring(var.secrets_version) })

        content {
          name  = env.key
          value = env.value
        }
      }

      env {
        name = "LAKEPASS_DATABASE"

        value_source {
          secret_key_ref {
            secret  = google_secret_manager_secret.database.secret_id
            version = "latest"
          }
        }
      }

      env {
        name = "LAKEPASS_ADMIN__TOKEN_SHA256"

        value_source {
          secret_key_ref {
            secret  = google_secret_manager_secret.admin.secret_id
            version = "latest"
          }
        }
      }

      startup_probe {
        period_seconds    = 3
        failure_threshold = 30

        http_get {
          path = "/health/ready"
          port = local.port
        }
      }

      liveness_probe {
        period_seconds    = 10
        failure_threshold = 3

        http_get {
          path = "/health/live"
          port = local.port
        }
      }
    }
  }

  depends_on = [
    google_secret_manager_secret_iam_member.broker,
    google_secret_manager_secret_version.database,
    google_secret_manager_secret_version.admin,
  ]

  lifecycle {
    # Cloud Run fills these in by itself; each plan would undo them.
    ignore_changes = [scaling, client, client_version]
  }
}
