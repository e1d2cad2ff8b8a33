# What the service account is given, and what the variables refuse.

mock_provider "google" {
  source = "../mocks"

  mock_resource "google_service_account" {
    defaults = {
      email  = "lakepass-data-access@data.iam.gserviceaccount.com"
      member = "serviceAccount:lakepass-data-access@data.iam.gserviceaccount.com"
      name   = "projects/data/serviceAccounts/lakepass-data-access@data.iam.gserviceaccount.com"
    }
  }
}

variables {
  project                 = "data"
  buckets                 = { lake = { prefixes = ["sales/orders", "staff"] }, open = { whole_bucket = true } }
  broker_service_accounts = { main = "broker@share.iam.gserviceaccount.com", other = "broker@other.iam.gserviceaccount.com" }
}

run "bindings" {
  command = apply

  assert {
    condition     = alltrue([for binding in google_storage_bucket_iam_member.read : binding.role == "roles/storage.objectViewer" && binding.member == "serviceAccount:lakepass-data-access@data.iam.gserviceaccount.com"])
    error_message = "The account views objects, and nothing else."
  }

  assert {
    condition     = google_storage_bucket_iam_member.read["lake"].condition[0].expression == "resource.type == \"storage.googleapis.com/Bucket\" || resource.name.startsWith(\"projects/_/buckets/lake/objects/sales/orders/\") || resource.name.startsWith(\"projects/_/buckets/lake/folders/sales/orders/\") || resource.name.startsWith(\"projects/_/buckets/lake/objects/staff/\") || resource.name.startsWith(\"projects/_/buckets/lake/folders/staff/\")"
    error_message = "Only what lies below the directories: ${google_storage_bucket_iam_member.read["lake"].condition[0].expression}"
  }

  assert {
    condition     = length(google_storage_bucket_iam_member.read["open"].condition) == 0
    error_message = "A whole bucket has no condition."
  }

  assert {
    condition = toset([for binding in google_service_account_iam_member.impersonate : "${binding.role} ${binding.member}"]) == toset([
      "roles/iam.serviceAccountTokenCreator serviceAccount:broker@share.iam.gserviceaccount.com",
      "roles/iam.serviceAccountTokenCreator serviceAccount:broker@other.iam.gserviceaccount.com",
    ])
    error_message = "Each broker may impersonate this account."
  }

  assert {
    condition = jsonencode(output.storage) == jsonencode([
      { location = "gs://lake/sales/orders", gcp = { service_account = "lakepass-data-access@data.iam.gserviceaccount.com" } },
      { location = "gs://lake/staff", gcp = { service_account = "lakepass-data-access@data.iam.gserviceaccount.com" } },
      { location = "gs://open/", gcp = { service_account = "lakepass-data-access@data.iam.gserviceaccount.com" } },
    ])
    error_message = "Every directory has its entry: ${jsonencode(output.storage)}"
  }
}

run "quote_in_prefix_refused" {
  command = plan
  variables {
    buckets = { lake = { prefixes = ["a\") || true || (\""] } }
  }
  expect_failures = [var.buckets]
}

run "trailing_slash_refused" {
  command = plan
  variables {
    buckets = { lake = { prefixes = ["sales/"] } }
  }
  expect_failures = [var.buckets]
}

run "too_many_directories_refused" {
  command = plan
  variables {
    buckets = { lake = { prefixes = ["a", "b", "c", "d", "e", "f", "g"] } }
  }
  expect_failures = [var.buckets]
}

run "bucket_without_a_choice_refused" {
  command = plan
  variables {
    buckets = { lake = {} }
  }
  expect_failures = [var.buckets]
}

run "everybody_refused" {
  command = plan
  variables {
    broker_service_accounts = { all = "allAuthenticatedUsers" }
  }
  expect_failures = [var.broker_service_accounts]
}
