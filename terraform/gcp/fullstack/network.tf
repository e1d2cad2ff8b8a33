# One network with a subnetwork for the broker and a peering for the database.

resource "google_compute_network" "this" {
  # checkov:skip=CKV2_GCP_18: no machine stands in it; without rules it lets nothing in
  project                 = var.project
  name                    = var.name
  auto_create_subnetworks = false

  depends_on = [google_project_service.this]
}

resource "google_compute_subnetwork" "this" {
  # checkov:skip=CKV_GCP_26: a demo's network; flow logs are the project's choice
  # checkov:skip=CKV_GCP_76: no IPv6 here
  project                  = var.project
  name                     = var.name
  region                   = var.region
  network                  = google_compute_network.this.id
  ip_cidr_range            = "10.42.0.0/24"
  private_ip_google_access = true
}

resource "google_compute_global_address" "services" {
  project       = var.project
  name          = "${var.name}-services"
  network       = google_compute_network.this.id
  purpose       = "VPC_PEERING"
  address_type  = "INTERNAL"
  prefix_length = 20
}

resource "google_service_networking_connection" "this" {
  network                 = google_compute_network.this.id
  service                 = "servicenetworking.googleapis.com"
  reserved_peering_ranges = [google_compute_global_address.services.name]
}
