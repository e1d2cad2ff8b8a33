output "activation_link" {
  description = "Where the demo recipient gets its profile file, once, within a week: `terraform output -raw activation_link`."
  value       = "${module.broker.url}/activate/${var.activation_code}"
  sensitive   = true
}

output "url" {
  description = "Address of the broker."
  value       = module.broker.url
}

output "table" {
  description = "Location of the demo table."
  value       = module.data_access.storage[0].location
}

output "address" {
  description = "What the domain name should point at."
  value       = module.broker.address
}
