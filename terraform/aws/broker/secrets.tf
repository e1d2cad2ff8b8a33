# The two secrets a replica needs at its start. Both are written through write-only arguments, so that neither
# the state nor a plan ever holds them. A trial's are deleted at once: a name that waits to be restored cannot be used
# again.

resource "aws_secretsmanager_secret" "database" {
  # checkov:skip=CKV2_AWS_57: the password is changed by raising secrets_version, which also rolls the replicas; a rotation behind their back would cut them off
  name                    = "${var.name}/database"
  kms_key_id              = aws_kms_key.this.arn
  recovery_window_in_days = var.deletion_protection ? 30 : 0
  tags                    = var.tags
}

resource "aws_secretsmanager_secret_version" "database" {
  secret_id                = aws_secretsmanager_secret.database.id
  secret_string_wo         = "postgresql://${aws_db_instance.this.username}:${var.database_password}@${aws_db_instance.this.address}:${aws_db_instance.this.port}/${aws_db_instance.this.db_name}?sslmode=require"
  secret_string_wo_version = var.secrets_version
}

resource "aws_secretsmanager_secret" "admin" {
  # checkov:skip=CKV2_AWS_57: a hash of a token that only people hold; it is changed by raising secrets_version
  name                    = "${var.name}/admin-token-sha256"
  kms_key_id              = aws_kms_key.this.arn
  recovery_window_in_days = var.deletion_protection ? 30 : 0
  tags                    = var.tags
}

resource "aws_secretsmanager_secret_version" "admin" {
  secret_id                = aws_secretsmanager_secret.admin.id
  secret_string_wo         = var.admin_token_sha256
  secret_string_wo_version = var.secrets_version
}
