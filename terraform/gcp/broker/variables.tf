variable "name" {
  description = "Prefix of every resource's name; one per broker in a project and region."
  type        = string
  default     = "lakepass"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,20}[a-z0-9]$", var.name))
    error_message = "A name has 3 to 22 lower case letters, digits or hyphens and begins with a letter."
  }
}

variable "project" {
  description = "Project of the broker."
  type        = string
  nullable    = false
}

variable "region" {
  description = "Region of the broker; its replicas and the database's standby stand in different zones of it."
  type        = string
  nullable    = false
}

# --- The network ---

variable "network_id" {
  description = "VPC network, with private services access (a peering with servicenetworking.googleapis.com) for the database."
  type        = string
  nullable    = false
}

variable "subnetwork_id" {
  description = "Subnetwork through which the broker reaches the database: /26 or larger, with private Google access."
  type        = string
  nullable    = false
}

variable "internet_facing" {
  description = "Whether a public load balancer stands before the broker. Private by default: reachable from the project's networks only, under the name that Cloud Run gives."
  type        = bool
  default     = false
  nullable    = false
}

variable "allowed_cidr_blocks" {
  description = "Source ranges that the public load balancer lets in. A private broker is limited by its network."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for block in var.allowed_cidr_blocks : can(cidrnetmask(block))]) && length(var.allowed_cidr_blocks) <= 100
    error_message = "At most 100 IPv4 ranges such as 203.0.113.0/24."
  }

  validation {
    condition     = var.internet_facing == (length(var.allowed_cidr_blocks) > 0)
    error_message = "Ranges belong to internet_facing = true, which needs at least one; 0.0.0.0/0 stands for everybody."
  }
}

variable "domain_name" {
  description = "Name under which recipients reach the public load balancer; point it at output `address`."
  type        = string
  default     = null

  validation {
    condition     = var.domain_name == null || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]{2,}$", var.domain_name))
    error_message = "A domain name in lower case, without scheme or path."
  }

  validation {
    condition     = var.internet_facing == (var.domain_name != null)
    error_message = "A domain name belongs to internet_facing = true, which needs one."
  }
}

variable "ssl_certificate_ids" {
  description = "Certificates for the domain name; when left out, Google issues and renews one."
  type        = list(string)
  default     = []
  nullable    = false
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

variable "cpu" {
  description = "CPUs of one replica."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = contains([1, 2, 4, 8], var.cpu)
    error_message = "1, 2, 4 or 8."
  }
}

variable "memory_gb" {
  description = "Memory of one replica in GiB."
  type        = number
  default     = 2
  nullable    = false

  validation {
    condition     = floor(var.memory_gb) == var.memory_gb && var.memory_gb >= max(1, var.cpu / 2) && var.memory_gb <= 4 * var.cpu
    error_message = "Cloud Run has whole GiB from half a GiB per CPU, at least 1, to 4 GiB per CPU."
  }
}

variable "min_replicas" {
  description = "Replicas that always run, spread over the zones by Cloud Run."
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
  description = "Life of a vended credential; Google gives a broker without keys at most an hour."
  type        = string
  default     = "1h"
  nullable    = false

  validation {
    condition     = can(regex("^(1[5-9]|[2-5][0-9]|60)m$|^1h$", var.credential_lifetime))
    error_message = "From 15m to 1h."
  }
}

variable "environment" {
  description = "Further settings of the broker, such as { LAKEPASS_SERVER__PAGE_SIZE = \"1000\" }. Never secrets: they would show in the service."
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
  description = "Password of the database's user: `openssl rand -hex 24`. Written to the database and the secret store only; to change it, raise secrets_version too."
  type        = string
  ephemeral   = true
  sensitive   = true
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{24,128}$", var.database_password))
    error_message = "24 to 128 letters, digits, _ or -."
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

variable "database_tier" {
  description = "Size of the database."
  type        = string
  default     = "db-custom-1-3840"
  nullable    = false

  validation {
    condition     = can(regex("^db-(custom|perf-optimized)-", var.database_tier))
    error_message = "A db-custom-… or db-perf-optimized-… tier: shared cores have no agreed availability."
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

variable "database_kms_key" {
  description = "Cloud KMS key for the database; Google's own keys when left out."
  type        = string
  default     = null
}

variable "backup_retention_days" {
  description = "Days for which daily backups are kept; point-in-time recovery reaches seven days back."
  type        = number
  default     = 14
  nullable    = false

  validation {
    condition     = var.backup_retention_days >= 7 && var.backup_retention_days <= 365
    error_message = "From 7 to 365 days."
  }
}

variable "deletion_protection" {
  description = "Whether the database and the service refuse to be destroyed. Turn off for a trial only."
  type        = bool
  default     = true
  nullable    = false
}

# --- Watching it ---

variable "notification_channels" {
  description = "Monitoring channels that hear of alerts."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "labels" {
  description = "Labels of every resource that takes them."
  type        = map(string)
  default     = {}
  nullable    = false
}
