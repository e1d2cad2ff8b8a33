# What somebody should look at, each for a reason of its own.

locals {
  alarms = {
    # Counted by ECS: the load balancer counts healthy hosts zone by zone.
    few-replicas = {
      description = "Fewer replicas run than the service should always have."
      namespace   = "ECS/ContainerInsights"
      metric      = "RunningTaskCount"
      statistic   = "Minimum"
      comparison  = "LessThanThreshold"
      threshold   = var.min_replicas
      missing     = "breaching"
      dimensions  = { ClusterName = aws_ecs_cluster.this.name, ServiceName = aws_ecs_service.this.name }
    }
    unhealthy-replicas = {
      description = "A replica runs and does not answer the load balancer."
      namespace   = "AWS/ApplicationELB"
      metric      = "UnHealthyHostCount"
      statistic   = "Maximum"
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      missing     = "notBreaching"
      dimensions  = { LoadBalancer = aws_lb.this.arn_suffix, TargetGroup = aws_lb_target_group.this.arn_suffix }
    }
    errors = {
      description = "The broker answers requests with 5xx."
      namespace   = "AWS/ApplicationELB"
      metric      = "HTTPCode_Target_5XX_Count"
      statistic   = "Sum"
      comparison  = "GreaterThanThreshold"
      threshold   = 10
      missing     = "notBreaching"
      dimensions  = { LoadBalancer = aws_lb.this.arn_suffix, TargetGroup = aws_lb_target_group.this.arn_suffix }
    }
    database-cpu = {
      description = "The database is busy: every vend writes an audit row before it answers."
      namespace   = "AWS/RDS"
      metric      = "CPUUtilization"
      statistic   = "Average"
      comparison  = "GreaterThanThreshold"
      threshold   = 80
      missing     = "breaching"
      dimensions  = { DBInstanceIdentifier = aws_db_instance.this.identifier }
    }
    database-storage = {
      description = "Less than 2 GB are free: without room for the audit nothing is vended."
      namespace   = "AWS/RDS"
      metric      = "FreeStorageSpace"
      statistic   = "Minimum"
      comparison  = "LessThanThreshold"
      threshold   = 2000000000
      missing     = "breaching"
      dimensions  = { DBInstanceIdentifier = aws_db_instance.this.identifier }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  statistic           = each.value.statistic
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  treat_missing_data  = each.value.missing
  dimensions          = each.value.dimensions
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags
}
