variable "name" {
  description = "Prefix of every resource's name; also the name of the key vault and the database server, which are unique in all of Azure."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,20}[a-z0-9]$", var.name)) && !strcontains(var.name, "--")
    error_message = "A name has 4 to 22 lower case letters, digits or single hyphens and begins with a letter."
  }
}

variable "resource_group_name" {
  description = "Resource group of the broker."
  type        = string
  nullable    = false
}

variable "location" {
  description = "Region, one with availability zones."
  type        = string
  nullable    = false
}

# --- The network ---

variable "virtual_network_id" {
  description = "Virtual network of the two subnets; the database's private name is made known in it."
  type        = string
  nullable    = false
}

variable "broker_subnet_id" {
  description = "Subnet of the broker: /27 or larger, delegated to Microsoft.App/environments, with the service endpoint Microsoft.KeyVault."
  type        = string
  nullable    = false
}

variable "database_subnet_id" {
  description = "Subnet of the database, delegated to Microsoft.DBforPostgreSQL/flexibleServers."
  type        = string
  nullable    = false
}

variable "internet_facing" {
  description = "Whether the broker has a public address. Private by default: reachable from the virtual network only."
  type        = bool
  default     = false
  nullable    = false
}

variable "allowed_cidr_blocks" {
  description = "Source ranges that may reach the broker."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.allowed_cidr_blocks) > 0 && alltrue([for block in var.allowed_cidr_blocks : can(cidrnetmask(block))])
    error_message = "Give at least one IPv4 range such as 203.0.113.0/24."
  }

  validation {
    condition     = var.internet_facing || !contains(var.allowed_cidr_blocks, "0.0.0.0/0")
    error_message = "0.0.0.0/0 is for a broker that is meant for the whole internet: set internet_facing = true as well."
  }
}

variable "deployer_cidr_blocks" {
  description = "Public ranges from which Terraform itself runs: the key vault lets them in, besides the broker's subnet."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for block in var.deployer_cidr_blocks : can(cidrnetmask(block))])
    error_message = "IPv4 ranges such as 203.0.113.7/32."
  }
}

variable "domain_name" {
  description = "Name under which recipients reach the broker; needs `certificate_key_vault_secret_id`. When left out, the environment's own name with its managed certificate is used."
  type        = string
  default     = null

  validation {
    condition     = var.domain_name == null || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]{2,}$", var.domain_name))
    error_message = "A domain name in lower case, without scheme or path."
  }
}

variable "certificate_key_vault_secret_id" {
  description = "Certificate for the domain name, as the versionless id of a key vault secret. Apply once without the two; then let `principal_id` read the secret, set the TXT record of `domain_verification_id`, and apply with them."
  type        = string
  default     = null

  validation {
    condition     = (var.certificate_key_vault_secret_id == null) == (var.domain_name == null)
    error_message = "domain_name and certificate_key_vault_secret_id go together."
  }
}

# --- The service ---

variable "image" {
  description = "Image of the broker, by digest or by a version's tag."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[^\\s:@]+(:[0-9]+/[^\\s:@]+)?(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9._-]*)$", var.image)) && !endswith(var.image, ":latest")
    error_message = "Name the image with a digest (…@sha256:…) or a version tag; `latest` changes under a running service."
  }
}

variable "registry" {
  description = "Azure container registry of the image: its server, such as example.azurecr.io, and its resource id, on which the broker's identity is given the right to pull. None for a public image."
  type        = object({ server = string, id = string })
  default     = null

  validation {
    condition     = var.registry == null || can(regex("^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.ContainerRegistry/registries/[^/]+$", var.registry.id))
    error_message = "The registry's id is /subscriptions/…/resourceGroups/…/providers/Microsoft.ContainerRegistry/registries/…"
  }
}

variable "cpu" {
  description = "CPU cores of one replica; memory is twice that in GiB, as Container Apps has it."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = contains([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4], var.cpu)
    error_message = "From 0.5 to 4 in halves."
  }
}

variable "min_replicas" {
  description = "Replicas that always run, spread over the zones by the environment."
  type        = number
  default     = 2
  nullable    = false

  validation {
    condition     = var.min_replicas >= 2
    error_message = "At least two, so that one zone may fail."
  }
}

variable "max_replicas" {
  description = "Replicas that autoscaling may reach."
  type        = number
  default     = 6
  nullable    = false

  validation {
    condition     = var.max_replicas >= var.min_replicas
    error_message = "At least min_replicas."
  }
}

variable "storage" {
  description = "The broker's `storage` configuration: the joined outputs `storage` of the data-access modules."
  type = list(object({
    location = string
    aws = optional(object({
      role_arn         = string
      external_id      = string
      region           = optional(string)
      kms_keys         = optional(list(string), [])
      list_bare_prefix = optional(bool, false)
      source_identity  = optional(bool)
      bind_source_ip   = optional(bool)
    }))
    azure = optional(object({
      tenant_id              = optional(string)
      client_id              = optional(string)
      hierarchical_namespace = optional(bool, true)
      bind_source_ip         = optional(bool)
    }))
    gcp = optional(object({
      service_account = string
      bind_source_ip  = optional(bool)
    }))
  }))
  nullable = false

  validation {
    condition     = length(var.storage) > 0 && length(distinct(var.storage[*].location)) == length(var.storage)
    error_message = "Give at least one entry, and each location once."
  }

  validation {
    condition     = alltrue([for entry in var.storage : can(regex("^(s3|abfss|gs)://", entry.location))])
    error_message = "A location begins with s3://, abfss:// or gs://."
  }
}

variable "credential_lifetime" {
  description = "Life of a vended credential."
  type        = string
  default     = "1h"
  nullable    = false

  validation {
    condition     = can(regex("^(1[5-9]|[2-5][0-9]|60)m$|^([1-9]|1[0-2])h$", var.credential_lifetime))
    error_message = "From 15m to 12h."
  }
}

variable "environment" {
  description = "Further settings of the broker, such as { LAKEPASS_SERVER__PAGE_SIZE = \"1000\" }. Never secrets: they would show in the resource."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.environment) : startswith(name, "LAKEPASS_") && !contains(["LAKEPASS_DATABASE", "LAKEPASS_ADMIN__TOKEN_SHA256"], name)])
    error_message = "Settings begin with LAKEPASS_; the database and the admin token come from the secret store."
  }
}

variable "setup_commands" {
  description = "Commands of `lakepass` that each replica runs before it serves, such as [[\"share\", \"add\", \"demo\", \"--if-absent\"]]. They must be safe to repeat, and hold no secret."
  type        = list(list(string))
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for word in flatten(var.setup_commands) : !strcontains(word, "'")])
    error_message = "A word of a command holds no single quote."
  }
}

# --- Secrets: never kept in the state or a plan ---

variable "database_password" {
  description = "Password of the database's user: `Az$(openssl rand -hex 24)`, because Azure wants three kinds of characters. Written to the database and the secret store only; to change it, raise secrets_version too."
  type        = string
  ephemeral   = true
  sensitive   = true
  nullable    = false

  validation {
    condition = (
      can(regex("^[A-Za-z0-9_-]{24,128}$", var.database_password))
      && length([for kind in ["[A-Z]", "[a-z]", "[0-9]", "[_-]"] : kind if can(regex(kind, var.database_password))]) >= 3
    )
    error_message = "24 to 128 letters, digits, _ or -, of three of the kinds upper case, lower case, digits, _ and -."
  }
}

variable "admin_token_sha256" {
  description = "SHA-256 of the admin token in lower case hex; the token itself stays with you."
  type        = string
  ephemeral   = true
  sensitive   = true
  nullable    = false

  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.admin_token_sha256))
    error_message = "64 hexadecimal digits: `printf %s \"$TOKEN\" | sha256sum`."
  }
}

variable "secrets_version" {
  description = "Raise by one whenever database_password or admin_token_sha256 changes: the new values are written and the replicas roll."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.secrets_version >= 1 && floor(var.secrets_version) == var.secrets_version
    error_message = "A whole number from 1."
  }
}

# --- The database ---

variable "database_sku" {
  description = "Size of the database. Zone-redundant standby needs a general purpose (GP_) or memory optimized (MO_) one."
  type        = string
  default     = "GP_Standard_D2ds_v5"
  nullable    = false

  validation {
    condition     = can(regex("^(GP|MO)_Standard_", var.database_sku))
    error_message = "A GP_Standard_… or MO_Standard_… size: burstable ones have no standby."
  }
}

variable "database_version" {
  description = "Major version of PostgreSQL."
  type        = string
  default     = "16"
  nullable    = false

  validation {
    condition     = contains(["15", "16", "17"], var.database_version)
    error_message = "15, 16 or 17."
  }
}

variable "database_storage_mb" {
  description = "Storage the database starts with; it grows by itself."
  type        = number
  default     = 32768
  nullable    = false

  validation {
    condition     = contains([32768, 65536, 131072, 262144, 524288, 1048576], var.database_storage_mb)
    error_message = "32768 to 1048576, doubling."
  }
}

variable "backup_retention_days" {
  description = "Days for which the database can be restored to any moment."
  type        = number
  default     = 14
  nullable    = false

  validation {
    condition     = var.backup_retention_days >= 7 && var.backup_retention_days <= 35
    error_message = "From 7 to 35 days."
  }
}

variable "geo_redundant_backup" {
  description = "Whether backups are also kept in the paired region."
  type        = bool
  default     = true
  nullable    = false
}

# --- Watching it ---

variable "log_retention_days" {
  description = "Days for which the log is kept."
  type        = number
  default     = 365
  nullable    = false

  validation {
    condition     = var.log_retention_days >= 30 && var.log_retention_days <= 730
    error_message = "From 30 to 730 days."
  }
}

variable "action_group_ids" {
  description = "Action groups that hear of alerts."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
  nullable    = false
}
