# What the variables refuse, before anything is planned.

mock_provider "aws" {
  override_data {
    target = data.aws_iam_policy_document.trust
    values = { json = "{}" }
  }
  override_data {
    target = data.aws_iam_policy_document.access
    values = { json = "{}" }
  }
}

variables {
  buckets          = { lake = { prefixes = ["sales"] } }
  broker_role_arns = ["arn:aws:iam::111111111111:role/broker"]
  external_id      = "0123456789abcdef"
}

run "whole_account_refused" {
  command = plan
  variables {
    broker_role_arns = ["arn:aws:iam::111111111111:root"]
  }
  expect_failures = [var.broker_role_arns]
}

run "no_broker_refused" {
  command = plan
  variables {
    broker_role_arns = []
  }
  expect_failures = [var.broker_role_arns]
}

run "wildcard_prefix_refused" {
  command = plan
  variables {
    buckets = { lake = { prefixes = ["sales/*"] } }
  }
  expect_failures = [var.buckets]
}

run "policy_variable_refused" {
  command = plan
  variables {
    buckets = { lake = { prefixes = ["$${aws:username}"] } }
  }
  expect_failures = [var.buckets]
}

run "trailing_slash_refused" {
  command = plan
  variables {
    buckets = { lake = { prefixes = ["sales/"] } }
  }
  expect_failures = [var.buckets]
}

run "dots_refused" {
  command = plan
  variables {
    buckets = { lake = { prefixes = ["sales/../hr"] } }
  }
  expect_failures = [var.buckets]
}

run "empty_prefix_refused" {
  command = plan
  variables {
    buckets = { lake = { prefixes = [""] } }
  }
  expect_failures = [var.buckets]
}

run "bucket_without_a_choice_refused" {
  command = plan
  variables {
    buckets = { lake = {} }
  }
  expect_failures = [var.buckets]
}

run "short_external_id_refused" {
  command = plan
  variables {
    external_id = "short"
  }
  expect_failures = [var.external_id]
}

run "key_alias_refused" {
  command = plan
  variables {
    kms_key_arns = ["arn:aws:kms:eu-west-1:111111111111:alias/*"]
  }
  expect_failures = [var.kms_key_arns]
}

run "long_session_refused" {
  command = plan
  variables {
    max_session_duration = 86400
  }
  expect_failures = [var.max_session_duration]
}

run "storage_for_the_broker" {
  command = apply

  variables {
    region  = "eu-west-1"
    buckets = { lake = { prefixes = ["sales", "hr"] }, open = { whole_bucket = true } }
  }

  assert {
    condition     = [for entry in output.storage : entry.location] == ["s3://lake/sales", "s3://lake/hr", "s3://open/"]
    error_message = "Every directory has its entry."
  }

  assert {
    condition     = alltrue([for entry in output.storage : entry.aws.role_arn == aws_iam_role.this.arn && entry.aws.external_id == "0123456789abcdef" && entry.aws.region == "eu-west-1"])
    error_message = "Every entry names the role and how to assume it."
  }
}
