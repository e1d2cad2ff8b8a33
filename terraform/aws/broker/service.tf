# The replicas: Fargate tasks with a read-only file system, an unprivileged user and no capability.

resource "aws_cloudwatch_log_group" "this" {
  # checkov:skip=CKV_AWS_338: a year by default; a variable, because some must keep less
  name              = "/lakepass/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = aws_kms_key.this.arn
  tags              = var.tags
}

resource "aws_ecs_cluster" "this" {
  name = var.name
  tags = var.tags

  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

locals {
  container = merge({
    name                   = "broker"
    image                  = var.image
    essential              = true
    user                   = "10001:10001"
    readonlyRootFilesystem = true
    privileged             = false
    # The broker's streams may finish: its own shutdown timeout is 60 s.
    stopTimeout = 90

    portMappings = [{ containerPort = local.port, protocol = "tcp" }]
    environment = [
      for name, value in merge(local.environment, { SECRETS_VERSION = tostring(var.secrets_version) }) :
      { name = name, value = value }
    ]
    secrets = [
      { name = "LAKEPASS_DATABASE", valueFrom = aws_secretsmanager_secret.database.arn },
      { name = "LAKEPASS_ADMIN__TOKEN_SHA256", valueFrom = aws_secretsmanager_secret.admin.arn },
    ]
    linuxParameters = {
      initProcessEnabled = true
      capabilities       = { drop = ["ALL"] }
    }
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        "awslogs-group"         = aws_cloudwatch_log_group.this.name
        "awslogs-region"        = local.region
        "awslogs-stream-prefix" = "broker"
      }
    }
  }, length(local.setup) == 0 ? {} : { entryPoint = ["/bin/sh", "-c"], command = local.setup })
}

resource "aws_ecs_task_definition" "this" {
  family                   = var.name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  task_role_arn            = aws_iam_role.broker.arn
  execution_role_arn       = aws_iam_role.execution.arn
  container_definitions    = jsonencode([local.container])
  tags                     = var.tags

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = var.cpu_architecture
  }
}

resource "aws_ecs_service" "this" {
  name            = var.name
  cluster         = aws_ecs_cluster.this.id
  task_definition = aws_ecs_task_definition.this.arn
  launch_type     = "FARGATE"
  desired_count   = var.min_replicas
  propagate_tags  = "SERVICE"
  tags            = var.tags

  # New replicas answer before old ones go; a release that does not come up is rolled back.
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  health_check_grace_period_seconds  = 60
  availability_zone_rebalancing      = "ENABLED"

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = var.private_subnet_ids
    security_groups  = [aws_security_group.tasks.id]
    assign_public_ip = false
  }

  load_balancer {
    target_group_arn = aws_lb_target_group.this.arn
    container_name   = local.container.name
    container_port   = local.port
  }

  depends_on = [
    aws_lb_listener.https,
    aws_iam_role_policy.execution,
    aws_iam_role_policy.broker,
    aws_secretsmanager_secret_version.database,
    aws_secretsmanager_secret_version.admin,
  ]

  lifecycle {
    # Autoscaling moves it.
    ignore_changes = [desired_count]
  }
}

resource "aws_appautoscaling_target" "this" {
  service_namespace  = "ecs"
  resource_id        = "service/${aws_ecs_cluster.this.name}/${aws_ecs_service.this.name}"
  scalable_dimension = "ecs:service:DesiredCount"
  min_capacity       = var.min_replicas
  max_capacity       = var.max_replicas
}

resource "aws_appautoscaling_policy" "cpu" {
  name               = "${var.name}-cpu"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  resource_id        = aws_appautoscaling_target.this.resource_id
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value       = 60
    scale_in_cooldown  = 300
    scale_out_cooldown = 60

    predefined_metric_specification {
      predefined_metric_type = "ECSServiceAverageCPUUtilization"
    }
  }
}
