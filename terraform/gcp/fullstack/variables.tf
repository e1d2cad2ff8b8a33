variable "project" {
  description = "Project of the demo, with billing. Cloud SQL keeps the name of a deleted database for a week: for a second trial in one project, change `name`."
  type        = string
}

variable "region" {
  description = "Region of the demo."
  type        = string
}

variable "name" {
  description = "Prefix of every resource's name."
  type        = string
  default     = "lakepass-demo"
}

variable "domain_name" {
  description = "Name under which the broker is reached; point it at output `address`, then Google issues the certificate."
  type        = string
}

variable "image" {
  description = "Image of the broker, built from the Containerfile and pushed to an Artifact Registry of the project."
  type        = string
}

variable "allowed_cidr_blocks" {
  description = "Source ranges that may reach the broker."
  type        = list(string)
}

variable "database_password" {
  description = "Password of the database's user, kept in the secret store only."
  type        = string
  ephemeral   = true
  sensitive   = true
}

variable "admin_token_sha256" {
  description = "SHA-256 of the admin token."
  type        = string
  ephemeral   = true
  sensitive   = true
}

variable "activation_code" {
  description = "Random code of the demo recipient's activation link; it works once. In the state, because an output shows it."
  type        = string
  sensitive   = true

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{32,128}$", var.activation_code))
    error_message = "32 to 128 letters, digits, _ or -: `openssl rand -hex 24`."
  }
}
