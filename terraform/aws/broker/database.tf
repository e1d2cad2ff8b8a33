# The catalog and the audit: PostgreSQL in two zones, encrypted, reachable by the broker's tasks only.

resource "aws_db_subnet_group" "this" {
  name       = var.name
  subnet_ids = var.private_subnet_ids
  tags       = var.tags
}

resource "aws_db_parameter_group" "this" {
  name_prefix = "${var.name}-"
  family      = "postgres${var.database_version}"
  tags        = var.tags

  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }

  parameter {
    name  = "log_statement"
    value = "ddl"
  }

  parameter {
    name  = "log_min_duration_statement"
    value = "1000"
  }

  lifecycle {
    create_before_destroy = true
  }
}

data "aws_iam_policy_document" "monitoring_trust" {
  statement {
    sid     = "RdsReportsMetrics"
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["monitoring.rds.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role" "monitoring" {
  name               = "${var.name}-db-monitoring"
  assume_role_policy = data.aws_iam_policy_document.monitoring_trust.json
  tags               = var.tags
}

resource "aws_iam_role_policy_attachment" "monitoring" {
  role       = aws_iam_role.monitoring.name
  policy_arn = "arn:${local.partition}:iam::aws:policy/service-role/AmazonRDSEnhancedMonitoringRole"
}

resource "aws_db_instance" "this" {
  # checkov:skip=CKV_AWS_161: the broker logs in with a password from the secret store; a second way in that nothing uses would be more to guard
  # checkov:skip=CKV_AWS_293: on by default; a variable, so that a trial can be destroyed
  # checkov:skip=CKV2_AWS_30: DDL and slow statements are logged; logging every query would put recipients' names in a second place beside the audit
  # checkov:skip=CKV2_AWS_60: the tags are copied; the check does not read variables
  identifier     = var.name
  engine         = "postgres"
  engine_version = var.database_version
  instance_class = var.database_instance_class
  db_name        = "lakepass"
  username       = "lakepass"
  port           = 5432

  password_wo         = var.database_password
  password_wo_version = var.secrets_version

  multi_az               = true
  db_subnet_group_name   = aws_db_subnet_group.this.name
  vpc_security_group_ids = [aws_security_group.database.id]
  publicly_accessible    = false
  parameter_group_name   = aws_db_parameter_group.this.name
  ca_cert_identifier     = "rds-ca-rsa2048-g1"

  storage_type          = "gp3"
  allocated_storage     = var.database_storage_gb
  max_allocated_storage = 10 * var.database_storage_gb
  storage_encrypted     = true
  kms_key_id            = aws_kms_key.this.arn

  backup_retention_period   = var.backup_retention_days
  copy_tags_to_snapshot     = true
  deletion_protection       = var.deletion_protection
  skip_final_snapshot       = !var.deletion_protection
  final_snapshot_identifier = var.deletion_protection ? "${var.name}-final" : null
  delete_automated_backups  = false

  auto_minor_version_upgrade      = true
  enabled_cloudwatch_logs_exports = ["postgresql", "upgrade"]
  performance_insights_enabled    = true
  performance_insights_kms_key_id = aws_kms_key.this.arn
  monitoring_interval             = 60
  monitoring_role_arn             = aws_iam_role.monitoring.arn

  tags = var.tags
}
