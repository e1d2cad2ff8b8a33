# The broker as planned, with a mocked provider: what is private, what is spread, what each role may do.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111111111111" }
  }
  mock_data "aws_region" {
    defaults = { name = "eu-west-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }
  mock_data "aws_vpc" {
    defaults = { cidr_block = "10.0.0.0/16", cidr_block_associations = [{ association_id = "a", cidr_block = "10.0.0.0/16", state = "associated" }, { association_id = "b", cidr_block = "100.64.0.0/16", state = "associated" }] }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111111111111:role/mocked" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:eu-west-1:111111111111:key/mocked" }
  }
  mock_resource "aws_secretsmanager_secret" {
    defaults = { arn = "arn:aws:secretsmanager:eu-west-1:111111111111:secret:mocked" }
  }
  mock_resource "aws_lb" {
    defaults = { arn = "arn:aws:elasticloadbalancing:eu-west-1:111111111111:loadbalancer/app/mocked/1", arn_suffix = "app/mocked/1", dns_name = "mocked.elb.amazonaws.com", zone_id = "Z1" }
  }
  mock_resource "aws_lb_target_group" {
    defaults = { arn = "arn:aws:elasticloadbalancing:eu-west-1:111111111111:targetgroup/mocked/1", arn_suffix = "targetgroup/mocked/1" }
  }
  mock_resource "aws_ecs_task_definition" {
    defaults = { arn = "arn:aws:ecs:eu-west-1:111111111111:task-definition/mocked:1" }
  }
}

variables {
  vpc_id                   = "vpc-1"
  private_subnet_ids       = ["subnet-a", "subnet-b"]
  load_balancer_subnet_ids = ["subnet-a", "subnet-b"]
  allowed_cidr_blocks      = ["10.0.0.0/8"]
  domain_name              = "share.example.com"
  certificate_arn          = "arn:aws:acm:eu-west-1:111111111111:certificate/1"
  image                    = "111111111111.dkr.ecr.eu-west-1.amazonaws.com/lakepass@sha256:0000000000000000000000000000000000000000000000000000000000000000"
  database_password        = "local-password-of-a-test-0000"
  admin_token_sha256       = "0000000000000000000000000000000000000000000000000000000000000000"
  storage = [
    { location = "s3://lake/sales", aws = { role_arn = "arn:aws:iam::222222222222:role/data", external_id = "0123456789abcdef", region = "eu-west-1" } },
    { location = "s3://lake/hr", aws = { role_arn = "arn:aws:iam::222222222222:role/data", external_id = "0123456789abcdef" } },
    { location = "gs://lake/", gcp = { service_account = "reader@project.iam.gserviceaccount.com" } },
  ]
}

run "private_and_spread" {
  command = apply

  assert {
    condition     = aws_lb.this.internal && !aws_db_instance.this.publicly_accessible && !aws_ecs_service.this.network_configuration[0].assign_public_ip
    error_message = "Nothing is public unless asked for."
  }

  assert {
    condition     = aws_db_instance.this.multi_az && aws_db_instance.this.storage_encrypted && aws_db_instance.this.backup_retention_period == 14 && aws_db_instance.this.deletion_protection
    error_message = "The database stands in two zones, encrypted, backed up and protected."
  }

  assert {
    condition     = aws_ecs_service.this.desired_count == 2 && aws_appautoscaling_target.this.min_capacity == 2 && aws_appautoscaling_target.this.max_capacity == 6
    error_message = "Two replicas always run."
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.this["few-replicas"].threshold == 2 && aws_cloudwatch_metric_alarm.this["few-replicas"].dimensions == tomap({ ClusterName = "lakepass", ServiceName = "lakepass" })
    error_message = "Somebody hears when fewer run."
  }

  assert {
    condition     = aws_lb_listener.https.protocol == "HTTPS" && aws_lb_listener.https.ssl_policy == "ELBSecurityPolicy-TLS13-1-2-2021-06" && length(aws_acm_certificate.this) == 0
    error_message = "TLS 1.2 or newer with the given certificate."
  }

  assert {
    condition     = [for rule in aws_vpc_security_group_ingress_rule.load_balancer : [rule.cidr_ipv4, rule.from_port, rule.to_port]] == [["10.0.0.0/8", 443, 443]]
    error_message = "The load balancer takes TLS from the allowed ranges only."
  }
}

run "container" {
  command = apply

  assert {
    condition     = local.container.readonlyRootFilesystem && local.container.user == "10001:10001" && local.container.linuxParameters.capabilities.drop == ["ALL"]
    error_message = "The container has a read-only file system, no root and no capability."
  }

  assert {
    condition = toset([for secret in jsondecode(aws_ecs_task_definition.this.container_definitions)[0].secrets : secret.name]) == toset([
      "LAKEPASS_DATABASE", "LAKEPASS_ADMIN__TOKEN_SHA256",
    ])
    error_message = "Both secrets come from the secret store."
  }

  assert {
    condition     = !strcontains(aws_ecs_task_definition.this.container_definitions, "local-password-of-a-test-0000")
    error_message = "The password never stands in the task definition."
  }

  assert {
    condition = jsondecode(local.environment.LAKEPASS_STORAGE) == [
      { location = "s3://lake/sales", aws = { role_arn = "arn:aws:iam::222222222222:role/data", external_id = "0123456789abcdef", region = "eu-west-1", kms_keys = [], list_bare_prefix = false } },
      { location = "s3://lake/hr", aws = { role_arn = "arn:aws:iam::222222222222:role/data", external_id = "0123456789abcdef", kms_keys = [], list_bare_prefix = false } },
      { location = "gs://lake/", gcp = { service_account = "reader@project.iam.gserviceaccount.com" } },
    ]
    error_message = "The storage entries reach the broker as they are: ${local.environment.LAKEPASS_STORAGE}"
  }

  assert {
    condition     = jsondecode(local.environment.LAKEPASS_SERVER__TRUSTED_PROXIES) == ["10.0.0.0/16", "100.64.0.0/16"]
    error_message = "Every range of the VPC may hold the load balancer: ${local.environment.LAKEPASS_SERVER__TRUSTED_PROXIES}"
  }

  assert {
    condition     = tolist(local.data_roles) == tolist(["arn:aws:iam::222222222222:role/data"])
    error_message = "The broker may assume the data roles of its storage, each once."
  }
}

run "managed_certificate" {
  command = plan

  variables {
    certificate_arn = null
    zone_id         = "Z123"
  }

  assert {
    condition     = length(aws_acm_certificate.this) == 1 && length(aws_route53_record.this) == 1
    error_message = "With a zone, the certificate and the name are managed."
  }
}

run "no_tls_refused" {
  command = plan
  variables {
    certificate_arn = null
  }
  expect_failures = [var.certificate_arn]
}

run "open_to_all_by_accident_refused" {
  command = plan
  variables {
    allowed_cidr_blocks = ["0.0.0.0/0"]
  }
  expect_failures = [var.allowed_cidr_blocks]
}

run "one_zone_refused" {
  command = plan
  variables {
    private_subnet_ids = ["subnet-a"]
  }
  expect_failures = [var.private_subnet_ids]
}

run "one_replica_refused" {
  command = plan
  variables {
    min_replicas = 1
  }
  expect_failures = [var.min_replicas]
}

run "latest_refused" {
  command = plan
  variables {
    image = "registry.example.com/lakepass:latest"
  }
  expect_failures = [var.image]
}

run "weak_password_refused" {
  command = plan
  variables {
    database_password = "short"
  }
  expect_failures = [var.database_password]
}

run "token_instead_of_hash_refused" {
  command = plan
  variables {
    admin_token_sha256 = "the-token-itself"
  }
  expect_failures = [var.admin_token_sha256]
}

run "secret_in_environment_refused" {
  command = plan
  variables {
    environment = { LAKEPASS_DATABASE = "postgresql://user:password@host/name" }
  }
  expect_failures = [var.environment]
}

run "impossible_size_refused" {
  command = plan
  variables {
    cpu    = 1024
    memory = 16384
  }
  expect_failures = [var.memory]
}

run "more_memory_than_fargate_has_refused" {
  command = plan
  variables {
    cpu    = 4096
    memory = 32768
  }
  expect_failures = [var.memory]
}

run "largest_size_taken" {
  command = plan
  variables {
    cpu    = 8192
    memory = 61440
  }
}

run "name_a_database_cannot_have_refused" {
  command = plan
  variables {
    name = "lake--pass"
  }
  expect_failures = [var.name]
}

run "name_a_load_balancer_cannot_have_refused" {
  command = plan
  variables {
    name = "internal-share"
  }
  expect_failures = [var.name]
}

run "trial_can_be_made_again" {
  command = plan
  variables {
    deletion_protection = false
  }
  assert {
    condition     = aws_secretsmanager_secret.database.recovery_window_in_days == 0 && aws_secretsmanager_secret.admin.recovery_window_in_days == 0
    error_message = "A destroyed trial leaves no secret whose name is taken."
  }
}
