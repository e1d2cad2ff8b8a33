# The whole as planned from nothing: what is not known before it is made must not be needed to plan.

mock_provider "google" {
  source = "../mocks"
}

variables {
  project             = "share"
  region              = "europe-west4"
  domain_name         = "share.example.com"
  image               = "europe-west4-docker.pkg.dev/share/lakepass/broker:0.1.0"
  allowed_cidr_blocks = ["203.0.113.0/24"]
  database_password   = "local-password-of-a-test-0000"
  admin_token_sha256  = "0000000000000000000000000000000000000000000000000000000000000000"
  activation_code     = "local-activation-code-of-a-test-0000"
}

run "plans_from_nothing" {
  command = plan

  assert {
    condition     = toset(keys(google_storage_bucket_object.table)) == fileset("${path.module}/../../demo-table", "**") && length(google_storage_bucket_object.table) >= 2
    error_message = "The demo table is uploaded whole."
  }

  assert {
    condition     = output.activation_link == "https://share.example.com/activate/local-activation-code-of-a-test-0000"
    error_message = "The activation link is known."
  }
}
