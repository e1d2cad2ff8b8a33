"""The structural check is worth having only if it fails on what is wrong: each mutation must be caught."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.deploy.schemas.slice import VALUES, VERSIONS, slice_path
from tests.deploy.terraform import Terraform, copied

pytestmark = pytest.mark.terraform

# module, file, text, what it becomes: one of each kind of mistake that a schema and known values can show.
MUTATIONS = {
    "unknown argument": (
        "azure/data-access",
        "main.tf",
        'principal_type       = "ServicePrincipal"',
        'principal_kind       = "ServicePrincipal"',
    ),
    "missing argument": (
        "gcp/data-access",
        "main.tf",
        '  role               = "roles/iam.serviceAccountTokenCreator"\n',
        "",
    ),
    "wrong type": (
        "aws/broker",
        "service.tf",
        "health_check_grace_period_seconds  = 60",
        'health_check_grace_period_seconds  = "a minute"',
    ),
    "unknown resource type": (
        "gcp/broker",
        "service.tf",
        'resource "google_cloud_run_v2_service"',
        'resource "google_cloud_run_v3_service"',
    ),
    "reference to an attribute that does not exist": (
        "azure/broker",
        "outputs.tf",
        "azurerm_user_assigned_identity.broker.principal_id",
        "azurerm_user_assigned_identity.broker.object_id",
    ),
    "block where it does not belong": (
        "aws/broker",
        "service.tf",
        "  deployment_circuit_breaker {",
        "  deployment_breaker {",
    ),
    "block too often": (
        "gcp/broker",
        "database.tf",
        "    ip_configuration {",
        "    ip_configuration {}\n\n    ip_configuration {",
    ),
    "required block missing": ("gcp/broker", "secrets.tf", "  replication {", "  rotation {"),
    "computed attribute set": (
        "azure/broker",
        "main.tf",
        'name                = "${var.name}-broker"',
        'name = "${var.name}-broker"\n  principal_id = "me"',
    ),
    "value that is none of an enumeration": (
        "gcp/broker",
        "service.tf",
        'egress = "PRIVATE_RANGES_ONLY"',
        'egress = "private-ranges-only"',
    ),
    "name the cloud would refuse": (
        "azure/broker",
        "secrets.tf",
        'name             = "admin-token-sha256"',
        'name             = "admin_token_sha256"',
    ),
    "secret in an attribute that the state keeps": (
        "azure/broker",
        "secrets.tf",
        "value_wo         = var.admin_token_sha256",
        "value            = var.admin_token_sha256",
    ),
}


@pytest.mark.parametrize("mistake", sorted(MUTATIONS))
def test_a_mistake_is_caught(mistake: str, terraform: Terraform, tmp_path: Path) -> None:
    module, name, text, mutated = MUTATIONS[mistake]
    folder = copied(module, tmp_path)
    file = folder / name
    assert text in file.read_text(), "the mutation no longer applies"
    file.write_text(file.read_text().replace(text, mutated, 1))

    ran = terraform.run(folder, "init", "-backend=false", "-input=false", f"-plugin-dir={terraform.mirror}")
    assert ran.code == 0, ran.output
    report = json.loads(terraform.run(folder, "validate", "-json").output)

    assert not report["valid"], f"{mistake} went unseen"


@pytest.mark.slow
def test_a_mocked_id_of_another_form_is_caught(terraform: Terraform, tmp_path: Path) -> None:
    """As the real provider would: what a resource is given is checked, mocked or not."""
    folder = copied("azure/broker", tmp_path)
    mocks = folder.parent / "mocks" / "azurerm.tfmock.hcl"
    mocks.write_text(mocks.read_text().replace('/providers/Microsoft.App/managedEnvironments/e"', '/e"', 1))
    terraform.init(folder)

    ran = terraform.run(folder, "test", "-no-color")

    assert ran.code != 0
    assert "azurerm_container_app.container_app_environment_id cannot be" in ran.output


def test_known_values_are_of_arguments_that_exist() -> None:
    """A misspelt argument would check nothing."""
    types = {
        name: schema["block"]
        for provider in VERSIONS
        for name, schema in json.loads(slice_path(provider).read_text())["resource_schemas"].items()
    }

    for argument in json.loads(VALUES.read_text()):
        type_name, *blocks, name = argument.split(".")
        block = types[type_name]
        for inner in blocks:
            block = block["block_types"][inner]["block"]
        assert name in block["attributes"], argument
