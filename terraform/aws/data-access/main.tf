# A role that reads and lists the given directories, and does nothing else. The broker assumes it with a session
# policy for one table's directory, so a recipient's credential is the intersection of the two.

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  region  = coalesce(var.region, data.aws_region.current.name)
  buckets = { for bucket in keys(var.buckets) : bucket => "arn:${data.aws_partition.current.partition}:s3:::${bucket}" }

  # One entry per directory; the path is empty for a whole bucket.
  directories = flatten([
    for bucket, entry in var.buckets : [
      for prefix in(entry.whole_bucket ? [""] : entry.prefixes) : { bucket = bucket, prefix = prefix }
    ]
  ])

  storage = [
    for directory in local.directories : {
      location = "s3://${directory.bucket}/${directory.prefix}"
      aws = {
        role_arn         = aws_iam_role.this.arn
        external_id      = var.external_id
        region           = local.region
        kms_keys         = var.kms_key_arns
        list_bare_prefix = var.list_bare_prefix
      }
    }
  ]
}

data "aws_iam_policy_document" "trust" {
  statement {
    sid     = "BrokerAssumesWithExternalId"
    actions = ["sts:AssumeRole"]

    principals {
      type        = "AWS"
      identifiers = var.broker_role_arns
    }

    condition {
      test     = "StringEquals"
      variable = "sts:ExternalId"
      values   = [var.external_id]
    }
  }

  # Of no use without the statement above. The source identity carries the recipient into CloudTrail.
  statement {
    sid     = "BrokerNamesTheRecipient"
    actions = ["sts:SetSourceIdentity"]

    principals {
      type        = "AWS"
      identifiers = var.broker_role_arns
    }
  }
}

data "aws_iam_policy_document" "access" {
  statement {
    sid     = "ReadObjects"
    actions = ["s3:GetObject", "s3:GetObjectVersion"]

    # The wildcard stands for the keys below a directory; the slash before it keeps sales/orders from opening
    # sales/orders_old.
    resources = [
      for directory in local.directories :
      "${local.buckets[directory.bucket]}/${directory.prefix == "" ? "" : "${directory.prefix}/"}*"
    ]
  }

  dynamic "statement" {
    for_each = { for bucket, entry in var.buckets : bucket => entry if !entry.whole_bucket }

    content {
      # Statement ids take letters and digits only.
      sid       = "List${substr(sha256(statement.key), 0, 12)}"
      actions   = ["s3:ListBucket"]
      resources = [local.buckets[statement.key]]

      condition {
        test     = "StringLike"
        variable = "s3:prefix"
        # * stands for nothing as well, so this covers the directory itself.
        values = flatten([
          for prefix in statement.value.prefixes :
          concat(["${prefix}/*"], var.list_bare_prefix ? [prefix] : [])
        ])
      }
    }
  }

  dynamic "statement" {
    for_each = anytrue([for entry in values(var.buckets) : entry.whole_bucket]) ? [true] : []

    content {
      sid       = "ListWholeBuckets"
      actions   = ["s3:ListBucket"]
      resources = [for bucket, entry in var.buckets : local.buckets[bucket] if entry.whole_bucket]
    }
  }

  dynamic "statement" {
    for_each = length(var.kms_key_arns) > 0 ? [true] : []

    content {
      sid       = "DecryptObjects"
      actions   = ["kms:Decrypt"]
      resources = var.kms_key_arns

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["s3.${local.region}.${data.aws_partition.current.dns_suffix}"]
      }
    }
  }
}

resource "aws_iam_role" "this" {
  name                 = var.name
  description          = "Read access that a lakepass broker narrows to one table at a time."
  assume_role_policy   = data.aws_iam_policy_document.trust.json
  max_session_duration = var.max_session_duration
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags
}

resource "aws_iam_role_policy" "this" {
  name   = "read"
  role   = aws_iam_role.this.id
  policy = data.aws_iam_policy_document.access.json
}
