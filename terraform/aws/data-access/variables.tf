variable "name" {
  description = "Name of the role that the broker assumes to read the data."
  type        = string
  default     = "lakepass-data-access"

  validation {
    condition     = can(regex("^[A-Za-z0-9+=,.@_-]{1,64}$", var.name))
    error_message = "A role's name has 1 to 64 letters, digits or +=,.@_- characters."
  }
}

variable "buckets" {
  description = <<-EOT
    What may be read: bucket name to directories, without leading or trailing slash. A vended credential opens one
    table's directory below these; nothing outside them can ever be vended. `whole_bucket = true` stands for every key.
  EOT
  type = map(object({
    prefixes     = optional(list(string), [])
    whole_bucket = optional(bool, false)
  }))
  nullable = false

  validation {
    condition     = length(var.buckets) > 0
    error_message = "Name at least one bucket."
  }

  validation {
    condition     = alltrue([for bucket in keys(var.buckets) : can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", bucket))])
    error_message = "A bucket's name has 3 to 63 lower case letters, digits, dots or hyphens."
  }

  validation {
    condition     = alltrue([for entry in values(var.buckets) : entry.whole_bucket != (length(entry.prefixes) > 0)])
    error_message = "Give each bucket either prefixes or whole_bucket = true."
  }

  validation {
    # A wildcard or a policy variable in a prefix would open more than its text says.
    condition = alltrue(flatten([
      for entry in values(var.buckets) : [
        for prefix in entry.prefixes :
        can(regex("^[^*?$\\\\/]+(/[^*?$\\\\/]+)*$", prefix)) && !can(regex("(^|/)[.]{1,2}(/|$)", prefix))
      ]
    ]))
    error_message = "A prefix is a directory such as sales/orders: no slash at either end, no empty, . or .. segment, none of * ? $ \\."
  }
}

variable "broker_role_arns" {
  description = "Roles of the brokers that may assume this role (output role_arn of the broker module), from any account."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.broker_role_arns) > 0
    error_message = "Name the role of at least one broker."
  }

  validation {
    condition     = alltrue([for arn in var.broker_role_arns : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "Each is the ARN of one role (or, outside AWS, one user): arn:aws:iam::123456789012:role/name. Accounts and wildcards are refused."
  }
}

variable "external_id" {
  description = "A value that the broker presents when it assumes the role; keeps anybody else who can use the broker's account from pointing it at this role."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9+=,.@:/_-]{16,}$", var.external_id)) && length(var.external_id) <= 1224
    error_message = "An external id has 16 to 1224 letters, digits or +=,.@:/_- characters; `openssl rand -hex 16` makes one."
  }
}

variable "kms_key_arns" {
  description = "Keys that encrypt the objects (SSE-KMS), if any. The key's own policy must also let this role decrypt."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.kms_key_arns : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", arn))])
    error_message = "Each is the ARN of one key: arn:aws:kms:eu-west-1:123456789012:key/… Aliases and wildcards are refused."
  }
}

variable "region" {
  description = "Region of the buckets; the provider's region when left out."
  type        = string
  default     = null
}

variable "list_bare_prefix" {
  description = "Also allow listing a directory's name without its slash, which shows the names of its siblings. Some Hadoop readers probe it."
  type        = bool
  default     = false
  nullable    = false
}

variable "max_session_duration" {
  description = "Longest life of a vended credential in seconds. A broker that itself runs under a role is limited to 3600 by role chaining."
  type        = number
  default     = 3600
  nullable    = false

  validation {
    condition     = var.max_session_duration >= 3600 && var.max_session_duration <= 43200
    error_message = "AWS allows 3600 to 43200 seconds."
  }
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary of the role, where the account demands one."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of the role."
  type        = map(string)
  default     = {}
  nullable    = false
}
