# The broker on Cloud Run, with its catalog in PostgreSQL. Nothing here holds a long-lived cloud key: the replicas run
# under a service account, which may impersonate the data accounts that let it.

data "google_project" "this" {
  project_id = var.project
}

locals {
  port = 8080
  host = coalesce(var.domain_name, "${var.name}-${data.google_project.this.number}.${var.region}.run.app")

  # Only the keys that are set: the broker refuses a section of another cloud.
  storage = [
    for entry in var.storage : merge(
      { location = entry.location },
      entry.aws == null ? {} : { aws = { for key, value in entry.aws : key => value if value != null } },
      entry.azure == null ? {} : { azure = { for key, value in entry.azure : key => value if value != null } },
      entry.gcp == null ? {} : { gcp = { for key, value in entry.gcp : key => value if value != null } },
    )
  ]

  environment = merge(
    {
      LAKEPASS_SERVER__HOST       = "0.0.0.0"
      LAKEPASS_SERVER__PORT       = tostring(local.port)
      LAKEPASS_SERVER__PUBLIC_URL = "https://${local.host}"
      LAKEPASS_SERVER__LOG_FORMAT = "json"
      # Cloud Run's own proxy, and Google's front ends with the load balancer's address.
      LAKEPASS_SERVER__TRUSTED_PROXIES = jsonencode(concat(
        ["169.254.0.0/16", "35.191.0.0/16", "130.211.0.0/22"],
        [for address in google_compute_global_address.this : "${address.address}/32"],
      ))
      LAKEPASS_CREDENTIALS__LIFETIME = var.credential_lifetime
      LAKEPASS_STORAGE               = jsonencode(local.storage)
    },
    var.environment,
  )

  # With commands to run first, a shell does so and then becomes the broker; otherwise the image's own entry point.
  setup = length(var.setup_commands) == 0 ? [] : [join(" && ", concat(
    [for command in var.setup_commands : "lakepass ${join(" ", [for word in command : "'${word}'"])}"],
    ["exec lakepass serve"],
  ))]
}

resource "google_service_account" "broker" {
  project      = var.project
  account_id   = "${var.name}-broker"
  display_name = "lakepass broker"
  description  = "The lakepass broker: may read its two secrets and impersonate the data accounts that let it."
}
