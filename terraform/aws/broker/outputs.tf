output "url" {
  description = "Address of the broker; recipients' profiles hold it followed by /delta-sharing."
  value       = "https://${var.domain_name}"
}

output "role_arn" {
  description = "Role the broker runs under: `broker_role_arns` of the data-access modules."
  value       = aws_iam_role.broker.arn
}

output "load_balancer_dns_name" {
  description = "What the domain name should point at when no zone was given."
  value       = aws_lb.this.dns_name
}

output "log_group_name" {
  description = "CloudWatch log group of the broker."
  value       = aws_cloudwatch_log_group.this.name
}

output "database_secret_arn" {
  description = "Secret with the database's address, for backups and for one-off tasks."
  value       = aws_secretsmanager_secret.database.arn
}
