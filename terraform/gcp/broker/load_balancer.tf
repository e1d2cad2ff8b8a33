# The public way in, when asked for: TLS at Google's load balancer, which lets in the allowed ranges only.

resource "google_compute_global_address" "this" {
  count = var.internet_facing ? 1 : 0

  project = var.project
  name    = var.name
}

resource "google_compute_region_network_endpoint_group" "this" {
  count = var.internet_facing ? 1 : 0

  project               = var.project
  name                  = var.name
  region                = var.region
  network_endpoint_type = "SERVERLESS"

  cloud_run {
    service = google_cloud_run_v2_service.this.name
  }
}

resource "google_compute_security_policy" "this" {
  # checkov:skip=CKV_GCP_73: nothing behind it runs on Java
  count = var.internet_facing ? 1 : 0

  project = var.project
  name    = var.name

  # A rule takes ten ranges.
  dynamic "rule" {
    for_each = chunklist(var.allowed_cidr_blocks, 10)

    content {
      action      = "allow"
      priority    = 1000 + rule.key
      description = "Allowed ranges"

      match {
        versioned_expr = "SRC_IPS_V1"

        config {
          src_ip_ranges = rule.value
        }
      }
    }
  }

  rule {
    action      = "deny(403)"
    priority    = 2147483647
    description = "Everybody else"

    match {
      versioned_expr = "SRC_IPS_V1"

      config {
        src_ip_ranges = ["*"]
      }
    }
  }
}

resource "google_compute_backend_service" "this" {
  count = var.internet_facing ? 1 : 0

  project               = var.project
  name                  = var.name
  load_balancing_scheme = "EXTERNAL_MANAGED"
  protocol              = "HTTPS"
  security_policy       = google_compute_security_policy.this[0].id

  backend {
    group = google_compute_region_network_endpoint_group.this[0].id
  }

  log_config {
    enable      = true
    sample_rate = 1
  }
}

resource "google_compute_url_map" "this" {
  count = var.internet_facing ? 1 : 0

  project         = var.project
  name            = var.name
  default_service = google_compute_backend_service.this[0].id
}

resource "google_compute_managed_ssl_certificate" "this" {
  count = var.internet_facing && length(var.ssl_certificate_ids) == 0 ? 1 : 0

  project = var.project
  # The domain is part of the name: the certificate of a new one is made while the old one is still in use.
  name = "${var.name}-${substr(sha256(var.domain_name), 0, 8)}"

  managed {
    domains = [var.domain_name]
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_compute_ssl_policy" "this" {
  count = var.internet_facing ? 1 : 0

  project         = var.project
  name            = var.name
  profile         = "MODERN"
  min_tls_version = "TLS_1_2"
}

resource "google_compute_target_https_proxy" "this" {
  count = var.internet_facing ? 1 : 0

  project          = var.project
  name             = var.name
  url_map          = google_compute_url_map.this[0].id
  ssl_policy       = google_compute_ssl_policy.this[0].id
  ssl_certificates = length(var.ssl_certificate_ids) > 0 ? var.ssl_certificate_ids : google_compute_managed_ssl_certificate.this[*].id
}

resource "google_compute_global_forwarding_rule" "this" {
  count = var.internet_facing ? 1 : 0

  project               = var.project
  name                  = var.name
  load_balancing_scheme = "EXTERNAL_MANAGED"
  ip_address            = google_compute_global_address.this[0].id
  port_range            = "443"
  target                = google_compute_target_https_proxy.this[0].id
}
