# The whole as planned from nothing: what is not known before it is made must not be needed to plan.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111111111111" }
  }
  # The real provider reads what a mocked document holds.
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

variables {
  region              = "eu-west-1"
  domain_name         = "share.example.com"
  zone_id             = "Z123"
  image               = "111111111111.dkr.ecr.eu-west-1.amazonaws.com/lakepass:0.1.0"
  allowed_cidr_blocks = ["203.0.113.0/24"]
  database_password   = "local-password-of-a-test-0000"
  admin_token_sha256  = "0000000000000000000000000000000000000000000000000000000000000000"
  activation_code     = "local-activation-code-of-a-test-0000"
}

run "plans_from_nothing" {
  command = plan

  assert {
    condition     = toset(keys(aws_s3_object.table)) == fileset("${path.module}/../../demo-table", "**") && length(aws_s3_object.table) >= 2
    error_message = "The demo table is uploaded whole."
  }

  assert {
    condition     = output.activation_link == "https://share.example.com/activate/local-activation-code-of-a-test-0000"
    error_message = "The activation link is known."
  }

  assert {
    condition     = output.table == "s3://lakepass-demo-demo-111111111111/trips"
    error_message = "The table's directory is the one that data-access opens: ${output.table}"
  }
}
