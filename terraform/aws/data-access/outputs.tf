output "storage" {
  description = "Entries for the broker's `storage` configuration, one per directory; input `storage` of the broker module."
  value       = local.storage

  # The role is of no use before its policy is attached.
  depends_on = [aws_iam_role_policy.this]
}

output "storage_yaml" {
  description = "The same, ready to paste into lakepass.yaml."
  value       = yamlencode({ storage = local.storage })
}

output "role_arn" {
  description = "ARN of the role, for a broker that is configured by hand and for the key policies of SSE-KMS keys."
  value       = aws_iam_role.this.arn
}
