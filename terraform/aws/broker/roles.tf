# Two roles: ECS starts a task with the one (image, secrets, log), the broker runs under the other, which may do
# nothing but assume the data roles.

data "aws_iam_policy_document" "tasks_trust" {
  statement {
    sid     = "EcsRunsTasks"
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ecs-tasks.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }

    # The wildcard stands for the id of a task, which is not known before it runs.
    condition {
      test     = "ArnLike"
      variable = "aws:SourceArn"
      values   = ["arn:${local.partition}:ecs:${local.region}:${local.account}:*"]
    }
  }
}

resource "aws_iam_role" "broker" {
  name               = "${var.name}-broker"
  description        = "The lakepass broker: may assume the data roles it was given."
  assume_role_policy = data.aws_iam_policy_document.tasks_trust.json
  tags               = var.tags
}

data "aws_iam_policy_document" "broker" {
  statement {
    sid       = "AssumeDataRoles"
    actions   = ["sts:AssumeRole", "sts:SetSourceIdentity"]
    resources = local.data_roles
  }
}

resource "aws_iam_role_policy" "broker" {
  # Asked of the entries, not of their roles, which may not be known before they are made.
  count = anytrue([for entry in var.storage : entry.aws != null]) ? 1 : 0

  name   = "assume-data-roles"
  role   = aws_iam_role.broker.id
  policy = data.aws_iam_policy_document.broker.json
}

resource "aws_iam_role" "execution" {
  name               = "${var.name}-execution"
  description        = "Starts the lakepass broker's tasks."
  assume_role_policy = data.aws_iam_policy_document.tasks_trust.json
  tags               = var.tags
}

data "aws_iam_policy_document" "execution" {
  # checkov:skip=CKV_AWS_356: ecr:GetAuthorizationToken knows no resource
  statement {
    sid       = "ReadSecrets"
    actions   = ["secretsmanager:GetSecretValue"]
    resources = [aws_secretsmanager_secret.database.arn, aws_secretsmanager_secret.admin.arn]
  }

  statement {
    sid       = "DecryptSecrets"
    actions   = ["kms:Decrypt"]
    resources = [aws_kms_key.this.arn]
  }

  statement {
    sid     = "WriteLog"
    actions = ["logs:CreateLogStream", "logs:PutLogEvents"]
    # The wildcard stands for the streams of this one group.
    resources = ["${aws_cloudwatch_log_group.this.arn}:*"]
  }

  dynamic "statement" {
    for_each = local.registry == null ? [] : [local.registry]

    content {
      sid       = "PullImage"
      actions   = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
      resources = ["arn:${local.partition}:ecr:${statement.value.region}:${statement.value.account}:repository/${statement.value.repository}"]
    }
  }

  dynamic "statement" {
    for_each = local.registry == null ? [] : [true]

    content {
      sid       = "LogInToRegistry"
      actions   = ["ecr:GetAuthorizationToken"]
      resources = ["*"] # the action knows no resource
    }
  }
}

locals {
  # The parts of the image's name when it lies in ECR; an image of another registry needs no permission here.
  registry = try(
    regex("^(?P<account>[0-9]{12})[.]dkr[.]ecr[.](?P<region>[a-z0-9-]+)[.]amazonaws[.]com(?:[.]cn)?/(?P<repository>[^:@]+)", var.image),
    null,
  )
}

resource "aws_iam_role_policy" "execution" {
  name   = "start-tasks"
  role   = aws_iam_role.execution.id
  policy = data.aws_iam_policy_document.execution.json
}
