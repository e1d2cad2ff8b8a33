# What Google would answer, for the modules' tests. The real provider checks the form of what one resource gives to another,
# mocked or not: made-up text in its place is refused.

mock_data "google_project" {
  defaults = { number = "123456789" }
}

mock_resource "google_service_account" {
  defaults = {
    email  = "mocked@share.iam.gserviceaccount.com"
    member = "serviceAccount:mocked@share.iam.gserviceaccount.com"
    name   = "projects/share/serviceAccounts/mocked@share.iam.gserviceaccount.com"
  }
}

mock_resource "google_compute_network" {
  defaults = { id = "projects/share/global/networks/main" }
}

mock_resource "google_compute_subnetwork" {
  defaults = { id = "projects/share/regions/europe-west4/subnetworks/broker" }
}

mock_resource "google_compute_global_address" {
  defaults = { id = "projects/share/global/addresses/broker", address = "203.0.113.7" }
}

mock_resource "google_compute_region_network_endpoint_group" {
  defaults = { id = "projects/share/regions/europe-west4/networkEndpointGroups/broker" }
}

mock_resource "google_compute_security_policy" {
  defaults = { id = "projects/share/global/securityPolicies/broker" }
}

mock_resource "google_compute_backend_service" {
  defaults = { id = "projects/share/global/backendServices/broker" }
}

mock_resource "google_compute_url_map" {
  defaults = { id = "projects/share/global/urlMaps/broker" }
}

mock_resource "google_compute_managed_ssl_certificate" {
  defaults = { id = "projects/share/global/sslCertificates/broker" }
}

mock_resource "google_compute_ssl_policy" {
  defaults = { id = "projects/share/global/sslPolicies/broker" }
}

mock_resource "google_compute_target_https_proxy" {
  defaults = { id = "projects/share/global/targetHttpsProxies/broker" }
}

mock_resource "google_sql_database_instance" {
  defaults = { private_ip_address = "10.0.0.3" }
}

mock_resource "google_secret_manager_secret" {
  defaults = { id = "projects/share/secrets/mocked" }
}
