variable "name" {
  description = "Prefix of every resource's name; one per broker in an account and region."
  type        = string
  default     = "lakepass"
  nullable    = false

  validation {
    # RDS takes no doubled hyphen; a load balancer's name may not begin with internal-.
    condition     = can(regex("^[a-z][a-z0-9-]{1,22}[a-z0-9]$", var.name)) && !strcontains(var.name, "--") && !startswith(var.name, "internal-")
    error_message = "A name has 3 to 24 lower case letters, digits or single hyphens, begins with a letter, and not with internal-."
  }
}

# --- The network ---

variable "vpc_id" {
  description = "VPC the broker runs in."
  type        = string
  nullable    = false
}

variable "private_subnet_ids" {
  description = "Subnets of the broker's tasks and of the database, in at least two zones, with a route to the data's cloud (NAT or endpoints)."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(distinct(var.private_subnet_ids)) >= 2
    error_message = "The broker runs in at least two zones: give two or more subnets."
  }
}

variable "load_balancer_subnet_ids" {
  description = "Subnets of the load balancer, in at least two zones: private ones, or public ones when it is internet-facing."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(distinct(var.load_balancer_subnet_ids)) >= 2
    error_message = "A load balancer needs two or more subnets."
  }
}

variable "internet_facing" {
  description = "Whether the load balancer has public addresses. Private by default."
  type        = bool
  default     = false
  nullable    = false
}

variable "allowed_cidr_blocks" {
  description = "Source ranges that may reach the broker. Recipients outside the VPC need `internet_facing` too."
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

variable "domain_name" {
  description = "Name under which recipients reach the broker, such as share.example.com."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]{2,}$", var.domain_name))
    error_message = "A domain name in lower case, without scheme or path."
  }
}

variable "certificate_arn" {
  description = "ACM certificate for the domain name. When left out, `zone_id` is needed and a certificate is issued and renewed by ACM."
  type        = string
  default     = null

  validation {
    condition     = var.certificate_arn != null || var.zone_id != null
    error_message = "Give certificate_arn, or zone_id so that one can be issued: the broker is served over TLS only."
  }
}

variable "zone_id" {
  description = "Route 53 zone in which the domain name is set; when left out, point the name at output `load_balancer_dns_name` yourself."
  type        = string
  default     = null
}

variable "access_logs_bucket" {
  description = "Bucket for the load balancer's access logs, prepared for ELB log delivery; none when left out. The broker keeps its own audit either way."
  type        = string
  default     = null
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

variable "cpu_architecture" {
  description = "Architecture of the image: X86_64 or ARM64."
  type        = string
  default     = "X86_64"
  nullable    = false

  validation {
    condition     = contains(["X86_64", "ARM64"], var.cpu_architecture)
    error_message = "X86_64 or ARM64."
  }
}

variable "cpu" {
  description = "CPU units of one replica (1024 is one vCPU)."
  type        = number
  default     = 1024
  nullable    = false

  validation {
    condition     = contains([512, 1024, 2048, 4096, 8192], var.cpu)
    error_message = "Fargate has 512, 1024, 2048, 4096 or 8192."
  }
}

variable "memory" {
  description = "Memory of one replica in MiB, in whole GiB: 2 to 8 times `cpu`, at 512 from 1 GiB, at 4096 up to 30 GiB, at 8192 up to 60 GiB in steps of four."
  type        = number
  default     = 2048
  nullable    = false

  validation {
    condition = (
      var.memory % (var.cpu == 8192 ? 4096 : 1024) == 0
      && var.memory >= (var.cpu == 512 ? 1024 : 2 * var.cpu)
      && var.memory <= lookup({ "4096" = 30720, "8192" = 61440 }, tostring(var.cpu), 8 * var.cpu)
    )
    error_message = "Fargate has whole GiB between 2 and 8 times cpu; at cpu = 512 from 1024, at 4096 up to 30720, at 8192 up to 61440 in steps of 4096."
  }
}

variable "min_replicas" {
  description = "Replicas that always run, spread over the zones."
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
  description = "Life of a vended credential. AWS limits a broker that runs under a role to one hour."
  type        = string
  default     = "1h"
  nullable    = false

  validation {
    condition     = can(regex("^(1[5-9]|[2-5][0-9]|60)m$|^1h$", var.credential_lifetime))
    error_message = "From 15m to 1h."
  }
}

variable "environment" {
  description = "Further settings of the broker, such as { LAKEPASS_SERVER__PAGE_SIZE = \"1000\" }. Never secrets: they would show in the task definition."
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

variable "database_instance_class" {
  description = "Size of the database. The catalog is small; the audit grows with the vends."
  type        = string
  default     = "db.t4g.medium"
  nullable    = false

  validation {
    condition     = startswith(var.database_instance_class, "db.")
    error_message = "An RDS instance class such as db.t4g.medium."
  }
}

variable "database_version" {
  description = "Major version of PostgreSQL; minor versions are applied by AWS."
  type        = string
  default     = "16"
  nullable    = false

  validation {
    condition     = contains(["15", "16", "17"], var.database_version)
    error_message = "15, 16 or 17."
  }
}

variable "database_storage_gb" {
  description = "Storage the database starts with, in GB; it grows by itself to ten times that."
  type        = number
  default     = 20
  nullable    = false

  validation {
    condition     = var.database_storage_gb >= 20 && var.database_storage_gb <= 6000
    error_message = "From 20 to 6000 GB."
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

variable "deletion_protection" {
  description = "Whether the database and the load balancer refuse to be destroyed, and deleted secrets can be restored for a month. Turn off for a trial only."
  type        = bool
  default     = true
  nullable    = false
}

# --- Watching it ---

variable "log_retention_days" {
  description = "Days for which the broker's log is kept."
  type        = number
  default     = 365
  nullable    = false

  validation {
    condition     = contains([30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827], var.log_retention_days)
    error_message = "One of CloudWatch's periods from 30 to 1827 days."
  }
}

variable "alarm_topic_arns" {
  description = "SNS topics that hear of alarms."
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
