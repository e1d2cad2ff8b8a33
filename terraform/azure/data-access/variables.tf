variable "storage_account_name" {
  description = "Storage account that holds the data, with hierarchical namespace (Data Lake Storage Gen2)."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]{3,24}$", var.storage_account_name))
    error_message = "An account's name has 3 to 24 lower case letters and digits."
  }
}

variable "resource_group_name" {
  description = "Resource group of the storage account."
  type        = string
  nullable    = false
}

variable "containers" {
  description = "Containers that may be read. A vended credential opens one table's directory below these; nothing outside them can ever be vended."
  type        = set(string)
  nullable    = false

  validation {
    condition     = length(var.containers) > 0 && alltrue([for name in var.containers : can(regex("^[a-z0-9](-?[a-z0-9])+$", name)) && length(name) >= 3 && length(name) <= 63])
    error_message = "Name at least one container: 3 to 63 lower case letters, digits or single hyphens."
  }
}

variable "broker_principal_ids" {
  description = "Object ids of the brokers' managed identities (output principal_id of the broker module), by a name of your choice."
  type        = map(string)
  nullable    = false

  validation {
    condition     = length(var.broker_principal_ids) > 0
    error_message = "Name the identity of at least one broker."
  }

  validation {
    condition     = alltrue([for id in values(var.broker_principal_ids) : can(regex("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", id))])
    error_message = "Each is an object id such as 00000000-0000-0000-0000-000000000000 (not the client id)."
  }
}
