# The policies as planned, statement by statement. The provider is real and plans without calling AWS.

provider "aws" {
  region                      = "eu-west-1"
  access_key                  = "local"
  secret_key                  = "local"
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}

variables {
  buckets = {
    lake = { prefixes = ["sales/orders", "hr"] }
    open = { whole_bucket = true }
  }
  broker_role_arns = ["arn:aws:iam::111111111111:role/broker", "arn:aws:iam::222222222222:role/other"]
  external_id      = "0123456789abcdef"
  kms_key_arns     = ["arn:aws:kms:eu-west-1:333333333333:key/1234"]
}

run "trust" {
  command = plan

  assert {
    condition = jsondecode(aws_iam_role.this.assume_role_policy).Statement == [
      {
        Sid       = "BrokerAssumesWithExternalId"
        Effect    = "Allow"
        Action    = "sts:AssumeRole"
        Principal = { AWS = ["arn:aws:iam::222222222222:role/other", "arn:aws:iam::111111111111:role/broker"] }
        Condition = { StringEquals = { "sts:ExternalId" = "0123456789abcdef" } }
      },
      {
        Sid       = "BrokerNamesTheRecipient"
        Effect    = "Allow"
        Action    = "sts:SetSourceIdentity"
        Principal = { AWS = ["arn:aws:iam::222222222222:role/other", "arn:aws:iam::111111111111:role/broker"] }
      },
    ]
    error_message = "The trust policy is not the one that was agreed: ${aws_iam_role.this.assume_role_policy}"
  }
}

run "access" {
  command = plan

  assert {
    condition = jsondecode(aws_iam_role_policy.this.policy).Statement == [
      {
        Sid    = "ReadObjects"
        Effect = "Allow"
        Action = ["s3:GetObjectVersion", "s3:GetObject"]
        Resource = [
          "arn:aws:s3:::open/*",
          "arn:aws:s3:::lake/sales/orders/*",
          "arn:aws:s3:::lake/hr/*",
        ]
      },
      {
        Sid       = "List${substr(sha256("lake"), 0, 12)}"
        Effect    = "Allow"
        Action    = "s3:ListBucket"
        Resource  = "arn:aws:s3:::lake"
        Condition = { StringLike = { "s3:prefix" = ["sales/orders/*", "hr/*"] } }
      },
      {
        Sid      = "ListWholeBuckets"
        Effect   = "Allow"
        Action   = "s3:ListBucket"
        Resource = "arn:aws:s3:::open"
      },
      {
        Sid       = "DecryptObjects"
        Effect    = "Allow"
        Action    = "kms:Decrypt"
        Resource  = "arn:aws:kms:eu-west-1:333333333333:key/1234"
        Condition = { StringEquals = { "kms:ViaService" = "s3.eu-west-1.amazonaws.com" } }
      },
    ]
    error_message = "The access policy is not the one that was agreed: ${aws_iam_role_policy.this.policy}"
  }
}

run "no_more_than_asked" {
  command = plan

  variables {
    buckets      = { lake = { prefixes = ["hr"] } }
    kms_key_arns = []
  }

  assert {
    condition     = [for statement in jsondecode(aws_iam_role_policy.this.policy).Statement : statement.Sid] == ["ReadObjects", "List${substr(sha256("lake"), 0, 12)}"]
    error_message = "A statement stands that nothing asked for: ${aws_iam_role_policy.this.policy}"
  }
}

run "bare_prefix_is_a_choice" {
  command = plan

  variables {
    buckets          = { lake = { prefixes = ["hr"] } }
    list_bare_prefix = true
  }

  assert {
    condition     = jsondecode(aws_iam_role_policy.this.policy).Statement[1].Condition.StringLike["s3:prefix"] == ["hr/*", "hr"]
    error_message = "list_bare_prefix adds the bare name and nothing else."
  }
}
