# From an empty account to a working share: a network, a bucket with a small Delta table, the broker, one recipient.
#
#   export TF_VAR_database_password=$(openssl rand -hex 24)
#   export TF_VAR_admin_token_sha256=$(printf %s "$ADMIN_TOKEN" | sha256sum | cut -d' ' -f1)
#   export TF_VAR_activation_code=$(openssl rand -hex 24)
#   terraform apply && terraform output -raw activation_link

terraform {
  required_version = ">= 1.11"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

provider "aws" {
  region = var.region
}

data "aws_caller_identity" "current" {}

locals {
  table = "trips"
  files = fileset("${path.module}/../../demo-table", "**")
}

# --- The data ---

resource "aws_s3_bucket" "lake" {
  # checkov:skip=CKV_AWS_18: a demo's bucket; access logs would need a second one
  # checkov:skip=CKV_AWS_144: a demo's bucket needs no copy in another region
  # checkov:skip=CKV_AWS_145: S3's own keys encrypt it; with a KMS key, data-access takes kms_key_arns
  # checkov:skip=CKV_AWS_21: the demo table is written once, by Terraform
  # checkov:skip=CKV2_AWS_61: nothing here ages
  # checkov:skip=CKV2_AWS_62: nothing listens to its events
  bucket        = "${var.name}-demo-${data.aws_caller_identity.current.account_id}"
  force_destroy = true
}

resource "aws_s3_bucket_public_access_block" "lake" {
  bucket                  = aws_s3_bucket.lake.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_object" "table" {
  # checkov:skip=CKV_AWS_186: the bucket's own encryption applies
  for_each = local.files

  bucket      = aws_s3_bucket.lake.id
  key         = each.value
  source      = "${path.module}/../../demo-table/${each.value}"
  source_hash = filemd5("${path.module}/../../demo-table/${each.value}")
}

module "data_access" {
  source = "../data-access"

  name             = "${var.name}-data-access"
  buckets          = { (aws_s3_bucket.lake.bucket) = { prefixes = [local.table] } }
  broker_role_arns = [module.broker.role_arn]
  region           = var.region
  # Not a secret: a value that no other deployment has.
  external_id = substr(sha256("${data.aws_caller_identity.current.account_id}/${var.region}/${var.name}"), 0, 32)
}

# --- The broker ---

module "broker" {
  source = "../broker"

  name                     = var.name
  vpc_id                   = aws_vpc.this.id
  private_subnet_ids       = aws_subnet.private[*].id
  load_balancer_subnet_ids = aws_subnet.public[*].id
  internet_facing          = true
  allowed_cidr_blocks      = var.allowed_cidr_blocks
  domain_name              = var.domain_name
  zone_id                  = var.zone_id
  image                    = var.image
  storage                  = module.data_access.storage
  database_password        = var.database_password
  admin_token_sha256       = var.admin_token_sha256
  deletion_protection      = false

  setup_commands = [
    ["share", "add", "demo", "--if-absent"],
    ["table", "add", "demo.default.${local.table}", module.data_access.storage[0].location, "--access", "url,dir", "--no-check", "--if-absent"],
    # The code's hash: who reads the task's definition cannot activate the recipient.
    ["recipient", "add", "demo", "--activation-sha256", nonsensitive(sha256(var.activation_code)), "--if-absent"],
    ["grant", "add", "demo", "demo", "--if-absent"],
  ]

  # The replicas' first secrets and images come through the NAT gateway.
  depends_on = [aws_route_table_association.private, aws_route.private]
}
