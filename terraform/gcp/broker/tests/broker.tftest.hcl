# The broker as planned, with a mocked provider: what is private, what is spread, what its account may do.

mock_provider "google" {
  source = "../mocks"

  mock_resource "google_service_account" {
    defaults = {
      email  = "lakepass-broker@share.iam.gserviceaccount.com"
      member = "serviceAccount:lakepass-broker@share.iam.gserviceaccount.com"
    }
  }
}

variables {
  project            = "share"
  region             = "europe-west4"
  network_id         = "projects/share/global/networks/main"
  subnetwork_id      = "projects/share/regions/europe-west4/subnetworks/broker"
  image              = "europe-west4-docker.pkg.dev/share/lakepass/broker:0.1.0"
  database_password  = "local-password-of-a-test-0000"
  admin_token_sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
  storage            = [{ location = "gs://lake/sales", gcp = { service_account = "reader@data.iam.gserviceaccount.com" } }]
}

run "private_and_spread" {
  command = apply

  assert {
    condition     = google_cloud_run_v2_service.this.ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY" && length(google_compute_global_forwarding_rule.this) == 0 && !google_sql_database_instance.this.settings[0].ip_configuration[0].ipv4_enabled
    error_message = "Nothing is public unless asked for."
  }

  assert {
    condition     = google_cloud_run_v2_service.this.template[0].scaling[0].min_instance_count == 2 && google_sql_database_instance.this.settings[0].availability_type == "REGIONAL"
    error_message = "Two replicas always run; the database has a standby in a second zone."
  }

  assert {
    condition     = google_sql_database_instance.this.settings[0].backup_configuration[0].enabled && google_sql_database_instance.this.settings[0].backup_configuration[0].point_in_time_recovery_enabled && google_sql_database_instance.this.settings[0].ip_configuration[0].ssl_mode == "ENCRYPTED_ONLY"
    error_message = "The database is backed up and takes TLS only."
  }

  assert {
    condition     = alltrue([for binding in google_secret_manager_secret_iam_member.broker : binding.role == "roles/secretmanager.secretAccessor" && binding.member == "serviceAccount:lakepass-broker@share.iam.gserviceaccount.com"]) && length(google_secret_manager_secret_iam_member.broker) == 2
    error_message = "The broker's account reads its two secrets and has no other right here."
  }

  assert {
    condition     = local.environment.LAKEPASS_SERVER__PUBLIC_URL == "https://lakepass-123456789.europe-west4.run.app"
    error_message = "A private broker has the name that Cloud Run gives."
  }

  assert {
    condition     = local.environment.LAKEPASS_STORAGE == jsonencode([{ location = "gs://lake/sales", gcp = { service_account = "reader@data.iam.gserviceaccount.com" } }])
    error_message = "The storage entries reach the broker as they are: ${local.environment.LAKEPASS_STORAGE}"
  }
}

run "public_for_allowed_ranges" {
  command = apply
  variables {
    internet_facing     = true
    domain_name         = "share.example.com"
    allowed_cidr_blocks = ["203.0.113.0/24", "198.51.100.0/24"]
  }
  assert {
    condition     = google_cloud_run_v2_service.this.ingress == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER" && output.url == "https://share.example.com" && output.address == "203.0.113.7"
    error_message = "Only the load balancer reaches the service."
  }
  assert {
    condition = toset([for rule in google_compute_security_policy.this[0].rule : "${rule.action} ${join(",", sort(rule.match[0].config[0].src_ip_ranges))}"]) == toset([
      "allow 198.51.100.0/24,203.0.113.0/24", "deny(403) *",
    ])
    error_message = "The allowed ranges pass; all others are refused."
  }
  assert {
    condition     = google_compute_ssl_policy.this[0].min_tls_version == "TLS_1_2" && length(google_compute_managed_ssl_certificate.this) == 1
    error_message = "TLS 1.2 or newer with a managed certificate."
  }
}

run "public_without_ranges_refused" {
  command = plan
  variables {
    internet_facing = true
    domain_name     = "share.example.com"
  }
  expect_failures = [var.allowed_cidr_blocks]
}

run "public_without_name_refused" {
  command = plan
  variables {
    internet_facing     = true
    allowed_cidr_blocks = ["203.0.113.0/24"]
  }
  expect_failures = [var.domain_name]
}

run "one_replica_refused" {
  command = plan
  variables {
    min_replicas = 1
  }
  expect_failures = [var.min_replicas]
}

run "shared_core_database_refused" {
  command = plan
  variables {
    database_tier = "db-f1-micro"
  }
  expect_failures = [var.database_tier]
}

run "more_memory_than_cloud_run_has_refused" {
  command = plan
  variables {
    memory_gb = 8
  }
  expect_failures = [var.memory_gb]
}

run "latest_refused" {
  command = plan
  variables {
    image = "europe-west4-docker.pkg.dev/share/lakepass/broker:latest"
  }
  expect_failures = [var.image]
}
