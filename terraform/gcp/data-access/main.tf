# A service account that reads the given directories, and does nothing else. The broker impersonates it and narrows
# each token to one table's directory with a credential access boundary, so a recipient's credential is the
# intersection of the two.

resource "google_service_account" "this" {
  project      = var.project
  account_id   = var.account_id
  display_name = "lakepass data access"
  description  = "Read access that a lakepass broker narrows to one table at a time."
}

locals {
  # Objects and folders below a directory, by the slash that keeps sales/orders from opening sales/orders_old. A list
  # is checked against the bucket: Google's conditions cannot limit it by prefix, so the account can list names of the
  # whole bucket. What is vended cannot: its boundary does limit lists.
  conditions = {
    for bucket, entry in var.buckets : bucket => join(" || ", concat(
      ["resource.type == \"storage.googleapis.com/Bucket\""],
      flatten([
        for prefix in entry.prefixes : [
          "resource.name.startsWith(\"projects/_/buckets/${bucket}/objects/${prefix}/\")",
          "resource.name.startsWith(\"projects/_/buckets/${bucket}/folders/${prefix}/\")",
        ]
      ]),
    ))
  }

  # One entry per directory; the path is empty for a whole bucket.
  directories = flatten([
    for bucket, entry in var.buckets : [
      for prefix in(entry.whole_bucket ? [""] : entry.prefixes) : { bucket = bucket, prefix = prefix }
    ]
  ])

  storage = [
    for directory in local.directories : {
      location = "gs://${directory.bucket}/${directory.prefix}"
      gcp      = { service_account = google_service_account.this.email }
    }
  ]
}

resource "google_storage_bucket_iam_member" "read" {
  for_each = var.buckets

  bucket = each.key
  role   = "roles/storage.objectViewer"
  member = google_service_account.this.member

  dynamic "condition" {
    for_each = each.value.whole_bucket ? [] : [local.conditions[each.key]]

    content {
      title       = "lakepass-directories"
      description = "The directories that were given to the broker"
      expression  = condition.value
    }
  }
}

resource "google_service_account_iam_member" "impersonate" {
  for_each = var.broker_service_accounts

  service_account_id = google_service_account.this.name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = "serviceAccount:${each.value}"
}
