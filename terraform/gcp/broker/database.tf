# The catalog and the audit: PostgreSQL with a standby in a second zone, on a private address, over TLS only.

resource "google_sql_database_instance" "this" {
  # checkov:skip=CKV_GCP_6: ssl_mode below is what replaced require_ssl, which the check looks for
  # checkov:skip=CKV_GCP_79: the major version is a variable; an upgrade is a decision
  # checkov:skip=CKV_GCP_108: all connections come from one subnetwork; looking up names would slow each of them
  # checkov:skip=CKV2_GCP_13: a line for every statement would bury the others; the broker has its own timings
  project             = var.project
  name                = var.name
  region              = var.region
  database_version    = "POSTGRES_${var.database_version}"
  encryption_key_name = var.database_kms_key
  deletion_protection = var.deletion_protection

  settings {
    tier                        = var.database_tier
    edition                     = startswith(var.database_tier, "db-perf-optimized-") ? "ENTERPRISE_PLUS" : "ENTERPRISE"
    availability_type           = "REGIONAL"
    disk_type                   = "PD_SSD"
    disk_autoresize             = true
    deletion_protection_enabled = var.deletion_protection
    user_labels                 = var.labels

    ip_configuration {
      ipv4_enabled    = false
      private_network = var.network_id
      ssl_mode        = "ENCRYPTED_ONLY"
    }

    backup_configuration {
      enabled                        = true
      point_in_time_recovery_enabled = true
      transaction_log_retention_days = 7

      backup_retention_settings {
        retained_backups = var.backup_retention_days
      }
    }

    database_flags {
      name  = "log_checkpoints"
      value = "on"
    }

    database_flags {
      name  = "log_connections"
      value = "on"
    }

    database_flags {
      name  = "log_disconnections"
      value = "on"
    }

    database_flags {
      name  = "log_lock_waits"
      value = "on"
    }

    database_flags {
      name  = "log_statement"
      value = "ddl"
    }

    database_flags {
      name  = "log_min_messages"
      value = "error"
    }

    database_flags {
      name  = "log_min_error_statement"
      value = "error"
    }

    database_flags {
      name  = "cloudsql.enable_pgaudit"
      value = "on"
    }
  }
}

resource "google_sql_database" "this" {
  project  = var.project
  instance = google_sql_database_instance.this.name
  name     = "lakepass"

  # It goes with the instance; PostgreSQL drops neither a database in use nor the owner of tables.
  deletion_policy = "ABANDON"
}

resource "google_sql_user" "this" {
  project             = var.project
  instance            = google_sql_database_instance.this.name
  name                = "lakepass"
  password_wo         = var.database_password
  password_wo_version = var.secrets_version
  deletion_policy     = "ABANDON"
}
