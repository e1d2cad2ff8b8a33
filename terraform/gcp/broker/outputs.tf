output "url" {
  description = "Address of the broker; recipients' profiles hold it followed by /delta-sharing."
  value       = "https://${local.host}"
}

output "service_account" {
  description = "Service account the broker runs under: a value of `broker_service_accounts` of the data-access modules."
  value       = google_service_account.broker.email
}

output "address" {
  description = "What the domain name should point at; null for a private broker."
  value       = one(google_compute_global_address.this[*].address)
}

output "database_secret" {
  description = "Secret with the database's address, for one-off jobs."
  value       = google_secret_manager_secret.database.secret_id
}
