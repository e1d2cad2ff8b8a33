# From an empty project to a working share: a network, a bucket with a small Delta table, the broker, one recipient.
#
#   export TF_VAR_database_password=$(openssl rand -hex 24)
#   export TF_VAR_admin_token_sha256=$(printf %s "$ADMIN_TOKEN" | sha256sum | cut -d' ' -f1)
#   export TF_VAR_activation_code=$(openssl rand -hex 24)
#   terraform apply && terraform output -raw activation_link

terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.50, < 8"
    }
  }
}

provider "google" {
  project = var.project
  region  = var.region
}

# An empty project has none of them enabled.
resource "google_project_service" "this" {
  for_each = toset([
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "monitoring.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "servicenetworking.googleapis.com",
    "sqladmin.googleapis.com",
    "storage.googleapis.com",
  ])

  project = var.project
  service = each.value
  # Others in the project may use them by then.
  disable_on_destroy = false
}

locals {
  table = "trips"
  files = fileset("${path.module}/../../demo-table", "**")
}

# --- The data ---

resource "google_storage_bucket" "lake" {
  # checkov:skip=CKV_GCP_62: a demo's bucket; access logs would need a second one
  # checkov:skip=CKV_GCP_78: the demo table is written once, by Terraform
  project                     = var.project
  name                        = "${var.project}-${var.name}"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true

  depends_on = [google_project_service.this]
}

resource "google_storage_bucket_object" "table" {
  for_each = local.files

  bucket         = google_storage_bucket.lake.name
  name           = each.value
  source         = "${path.module}/../../demo-table/${each.value}"
  source_md5hash = filemd5("${path.module}/../../demo-table/${each.value}")
}

module "data_access" {
  source = "../data-access"

  project                 = var.project
  account_id              = "${var.name}-data"
  buckets                 = { (google_storage_bucket.lake.name) = { prefixes = [local.table] } }
  broker_service_accounts = { demo = module.broker.service_account }

  depends_on = [google_project_service.this]
}

# --- The broker ---

module "broker" {
  source = "../broker"

  name                = var.name
  project             = var.project
  region              = var.region
  network_id          = google_compute_network.this.id
  subnetwork_id       = google_compute_subnetwork.this.id
  internet_facing     = true
  allowed_cidr_blocks = var.allowed_cidr_blocks
  domain_name         = var.domain_name
  image               = var.image
  storage             = module.data_access.storage
  database_password   = var.database_password
  admin_token_sha256  = var.admin_token_sha256
  deletion_protection = false

  setup_commands = [
    ["share", "add", "demo", "--if-absent"],
    ["table", "add", "demo.default.${local.table}", module.data_access.storage[0].location, "--access", "url,dir", "--no-check", "--if-absent"],
    # The code's hash: who reads the service's definition cannot activate the recipient.
    ["recipient", "add", "demo", "--activation-sha256", nonsensitive(sha256(var.activation_code)), "--if-absent"],
    ["grant", "add", "demo", "demo", "--if-absent"],
  ]

  # The database's private address comes from the peering.
  depends_on = [google_project_service.this, google_service_networking_connection.this]
}
