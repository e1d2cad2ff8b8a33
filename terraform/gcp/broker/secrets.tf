# The two secrets a replica needs at its start. Both are written through write-only arguments, so that neither
# the state nor a plan ever holds them.

resource "google_secret_manager_secret" "database" {
  project   = var.project
  secret_id = "${var.name}-database"
  labels    = var.labels

  replication {
    user_managed {
      replicas {
        location = var.region
      }
    }
  }
}

resource "google_secret_manager_secret_version" "database" {
  secret                 = google_secret_manager_secret.database.id
  secret_data_wo         = "postgresql://${google_sql_user.this.name}:${var.database_password}@${google_sql_database_instance.this.private_ip_address}:5432/${google_sql_database.this.name}?sslmode=require"
  secret_data_wo_version = var.secrets_version
}

resource "google_secret_manager_secret" "admin" {
  project   = var.project
  secret_id = "${var.name}-admin-token-sha256"
  labels    = var.labels

  replication {
    user_managed {
      replicas {
        location = var.region
      }
    }
  }
}

resource "google_secret_manager_secret_version" "admin" {
  secret                 = google_secret_manager_secret.admin.id
  secret_data_wo         = var.admin_token_sha256
  secret_data_wo_version = var.secrets_version
}

resource "google_secret_manager_secret_iam_member" "broker" {
  for_each = {
    database = google_secret_manager_secret.database.secret_id
    admin    = google_secret_manager_secret.admin.secret_id
  }

  project   = var.project
  secret_id = each.value
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.broker.member
}
