variable "project" {
  description = "Project that holds the data; the service account is made in it."
  type        = string
  nullable    = false
}

variable "account_id" {
  description = "Id of the service account that the broker impersonates to read the data."
  type        = string
  default     = "lakepass-data-access"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.account_id))
    error_message = "6 to 30 lower case letters, digits or hyphens, beginning with a letter."
  }
}

variable "buckets" {
  description = <<-EOT
    What may be read: bucket name to directories, without leading or trailing slash. A vended credential opens one
    table's directory below these; nothing outside them can ever be vended. `whole_bucket = true` stands for every object.
    Buckets need uniform bucket-level access, without which conditions do not count.
  EOT
  type = map(object({
    prefixes     = optional(list(string), [])
    whole_bucket = optional(bool, false)
  }))
  nullable = false

  validation {
    condition     = length(var.buckets) > 0 && alltrue([for bucket in keys(var.buckets) : can(regex("^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$", bucket))])
    error_message = "Name at least one bucket: lower case letters, digits, dots, hyphens or underscores."
  }

  validation {
    condition     = alltrue([for entry in values(var.buckets) : entry.whole_bucket != (length(entry.prefixes) > 0)])
    error_message = "Give each bucket either prefixes or whole_bucket = true."
  }

  validation {
    # Quotes and backslashes could end the text inside the condition.
    condition = alltrue(flatten([
      for entry in values(var.buckets) : [
        for prefix in entry.prefixes :
        can(regex("^[^\"'\\\\/[:cntrl:]]+(/[^\"'\\\\/[:cntrl:]]+)*$", prefix)) && !can(regex("(^|/)[.]{1,2}(/|$)", prefix))
      ]
    ]))
    error_message = "A prefix is a directory such as sales/orders: no slash at either end, no empty, . or .. segment, no quote or backslash."
  }

  validation {
    # A condition takes at most 12 logical operators; each directory needs two terms.
    condition     = alltrue([for entry in values(var.buckets) : length(entry.prefixes) <= 6])
    error_message = "Google allows 12 operators in a condition, which is six directories of a bucket: name a common parent, or use the module twice."
  }
}

variable "broker_service_accounts" {
  description = "E-mail addresses of the brokers' service accounts (output service_account of the broker module), by a name of your choice; from any project."
  type        = map(string)
  nullable    = false

  validation {
    condition     = length(var.broker_service_accounts) > 0
    error_message = "Name the service account of at least one broker."
  }

  validation {
    condition     = alltrue([for email in values(var.broker_service_accounts) : can(regex("^[a-z0-9-]+@[a-z0-9.:-]+[.]gserviceaccount[.]com$", email))])
    error_message = "Each is the address of a service account: name@project.iam.gserviceaccount.com."
  }
}
