# The broker on ECS Fargate behind a load balancer, with its catalog in PostgreSQL. Nothing here holds a
# long-lived cloud key: the tasks run under a role, which may assume the data roles it was given and nothing else.

data "aws_partition" "current" {}

data "aws_region" "current" {}

data "aws_caller_identity" "current" {}

data "aws_vpc" "this" {
  id = var.vpc_id
}

locals {
  port       = 8080
  account    = data.aws_caller_identity.current.account_id
  region     = data.aws_region.current.name
  partition  = data.aws_partition.current.partition
  data_roles = distinct([for entry in var.storage : entry.aws.role_arn if entry.aws != null])

  # Only the keys that are set: the broker refuses a section of another cloud.
  storage = [
    for entry in var.storage : merge(
      { location = entry.location },
      entry.aws == null ? {} : { aws = { for key, value in entry.aws : key => value if value != null } },
      entry.azure == null ? {} : { azure = { for key, value in entry.azure : key => value if value != null } },
      entry.gcp == null ? {} : { gcp = { for key, value in entry.gcp : key => value if value != null } },
    )
  ]

  environment = merge(
    {
      LAKEPASS_SERVER__HOST       = "0.0.0.0"
      LAKEPASS_SERVER__PORT       = tostring(local.port)
      LAKEPASS_SERVER__PUBLIC_URL = "https://${var.domain_name}"
      LAKEPASS_SERVER__LOG_FORMAT = "json"
      # The load balancer's addresses are its subnets', which may lie in a range the VPC was given later.
      LAKEPASS_SERVER__TRUSTED_PROXIES = jsonencode(distinct(concat(
        [data.aws_vpc.this.cidr_block], data.aws_vpc.this.cidr_block_associations[*].cidr_block,
      )))
      LAKEPASS_CREDENTIALS__LIFETIME = var.credential_lifetime
      LAKEPASS_STORAGE               = jsonencode(local.storage)
      AWS_REGION                     = local.region
    },
    var.environment,
  )

  # With commands to run first, a shell does so and then becomes the broker; otherwise the image's own entry point.
  setup = length(var.setup_commands) == 0 ? [] : [join(" && ", concat(
    [for command in var.setup_commands : "lakepass ${join(" ", [for word in command : "'${word}'"])}"],
    ["exec lakepass serve"],
  ))]
}

# One key for the log, the secrets and the database.
data "aws_iam_policy_document" "key" {
  # checkov:skip=CKV_AWS_109: a key policy's resource is the key itself, written as *
  # checkov:skip=CKV_AWS_111: the same
  # checkov:skip=CKV_AWS_356: the same
  statement {
    sid       = "AccountAdministersThroughIam"
    actions   = ["kms:*"] # the form AWS gives: without it nobody could administer the key
    resources = ["*"]     # in a key policy, the key itself

    principals {
      type        = "AWS"
      identifiers = ["arn:${local.partition}:iam::${local.account}:root"]
    }
  }

  statement {
    sid       = "LogsEncrypt"
    actions   = ["kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey"]
    resources = ["*"] # in a key policy, the key itself

    principals {
      type        = "Service"
      identifiers = ["logs.${local.region}.${data.aws_partition.current.dns_suffix}"]
    }

    condition {
      test     = "ArnEquals"
      variable = "kms:EncryptionContext:aws:logs:arn"
      values   = ["arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/lakepass/${var.name}"]
    }
  }
}

resource "aws_kms_key" "this" {
  description         = "lakepass ${var.name}: log, secrets and database"
  enable_key_rotation = true
  policy              = data.aws_iam_policy_document.key.json
  tags                = var.tags
}

resource "aws_kms_alias" "this" {
  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.this.key_id
}
