variable "location" {
  description = "Azure region of the demo, one with availability zones."
  type        = string
}

variable "name" {
  description = "Prefix of every resource's name; unique in all of Azure, because the key vault and the database have it."
  type        = string
}

variable "storage_account_name" {
  description = "Name of the demo's storage account, unique in all of Azure."
  type        = string
}

variable "image" {
  description = "Image of the broker, built from the Containerfile and pushed to a registry that needs no login, or to `registry`."
  type        = string
}

variable "registry" {
  description = "Azure container registry of the image: its server and its resource id. None for a public image."
  type        = object({ server = string, id = string })
  default     = null
}

variable "allowed_cidr_blocks" {
  description = "Public source ranges that may reach the broker and read the demo table; Storage takes none smaller than /30 but single addresses."
  type        = list(string)
}

variable "deployer_cidr_blocks" {
  description = "Public ranges from which Terraform runs, for the key vault and for writing the demo table."
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
