"""AWS `data-access`, applied for real on a local AWS that enforces what was applied.

The broker's own vendor then vends from the role it made, with the module's output as its configuration.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from lakepass.broker.config import StorageEntry
from lakepass.broker.vending import Grantee, vendor_for
from lakepass.broker.vending.aws_scope import session_policy
from lakepass.broker.vending.errors import CloudRefused
from lakepass.reader.credentials import AwsKeys
from lakepass.reader.location import Location
from tests.clouds.ministack import Ministack
from tests.deploy.terraform import MODULES, Terraform, copied

# One worker: the module is applied once.
pytestmark = [pytest.mark.terraform, pytest.mark.slow, pytest.mark.xdist_group("applied")]

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
DENIED = r"AccessDenied|Forbidden"
ANN = Grantee(recipient="ann", source_ranges=())


@dataclass(frozen=True)
class Applied:
    """What the module made, and who the broker is."""

    store: Ministack
    bucket: str
    storage: list[dict[str, Any]]
    role: str
    broker: AwsKeys
    policy: list[dict[str, Any]]

    def entry(self, **aws: Any) -> StorageEntry:
        """The module's first output as a setting, with the address of the local AWS and the broker's keys."""
        local = {
            "endpoint": self.store.endpoint,
            "sts_endpoint": self.store.endpoint,
            "path_style": True,
            "access_key_id": self.broker.access_key_id,
            "secret_access_key": self.broker.secret_access_key,
        }
        output = self.storage[0]
        return StorageEntry.model_validate({**output, "aws": {**output["aws"], **local, **aws}})


@pytest.fixture(scope="module")
def applied(
    ministack: Ministack, real_terraform: Terraform, tmp_path_factory: pytest.TempPathFactory
) -> Applied:
    bucket = ministack.create_bucket()
    broker_arn, broker = ministack.create_user()
    folder = tmp_path_factory.mktemp("apply")
    module = copied("aws/data-access", folder)
    (folder / "main.tf").write_text(
        f"""
        provider "aws" {{
          region                      = "{ministack.region}"
          access_key                  = "{ministack.root.access_key_id}"
          secret_key                  = "{ministack.root.secret_access_key}"
          skip_credentials_validation = true
          skip_requesting_account_id  = true
          skip_metadata_api_check     = true
          endpoints {{
            iam = "{ministack.endpoint}"
            sts = "{ministack.endpoint}"
          }}
        }}

        module "data_access" {{
          source           = "./{module.relative_to(folder)}"
          name             = "data-{secrets.token_hex(4)}"
          buckets          = {{ "{bucket}" = {{ prefixes = ["sales"] }} }}
          broker_role_arns = ["{broker_arn}"]
          external_id      = "local-external-id-0000"
          kms_key_arns     = ["{KEY}"]
        }}

        output "storage" {{ value = module.data_access.storage }}
        output "role" {{ value = module.data_access.role_arn }}
        """
    )
    real_terraform.init(folder)
    real_terraform.must(folder, "apply", "-auto-approve", "-input=false", "-no-color")
    output = real_terraform.json(folder, "output", "-json")
    role = output["role"]["value"]
    document = ministack.iam().get_role_policy(RoleName=role.rpartition("/")[2], PolicyName="read")
    statements = _statements(document["PolicyDocument"])
    # Nothing is destroyed: the local AWS ends with the run.
    return Applied(ministack, bucket, output["storage"]["value"], role, broker, statements)


def _statements(document: Any) -> list[dict[str, Any]]:
    parsed = json.loads(document) if isinstance(document, str) else document
    statements = parsed["Statement"]
    assert isinstance(statements, list)
    return statements


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_the_broker_vends_from_the_role_it_made(applied: Applied) -> None:
    applied.store.seed(MODULES / "demo-table" / "trips", f"s3://{applied.bucket}/sales/trips")
    applied.store.seed(MODULES / "demo-table" / "trips", f"s3://{applied.bucket}/sales/trips2")
    location = Location.parse(f"s3://{applied.bucket}/sales/trips")

    credential = vendor_for(applied.entry()).vend(location, ANN, timedelta(hours=1), "request")

    assert isinstance(credential.keys, AwsKeys)
    client = applied.store.s3(credential.keys)
    listed = client.list_objects_v2(Bucket=applied.bucket, Prefix="sales/trips/")["Contents"]
    log = next(item["Key"] for item in listed if "_delta_log" in item["Key"])
    assert client.get_object(Bucket=applied.bucket, Key=log)["Body"].read()
    for refused in (log.replace("trips/", "trips2/"), "sales/other"):
        with pytest.raises(ClientError, match=DENIED):
            client.get_object(Bucket=applied.bucket, Key=refused)
    with pytest.raises(ClientError, match=DENIED):
        client.put_object(Bucket=applied.bucket, Key=log, Body=b"")


def test_outside_the_given_directories_the_role_opens_nothing(applied: Applied) -> None:
    applied.store.seed(MODULES / "demo-table" / "trips", f"s3://{applied.bucket}/staff/trips")
    location = Location.parse(f"s3://{applied.bucket}/staff/trips")

    credential = vendor_for(applied.entry()).vend(location, ANN, timedelta(hours=1), "request")

    assert isinstance(credential.keys, AwsKeys)
    client = applied.store.s3(credential.keys)
    with pytest.raises(ClientError, match=DENIED):
        client.list_objects_v2(Bucket=applied.bucket, Prefix="staff/trips/")
    with pytest.raises(ClientError, match=DENIED):
        client.get_object(Bucket=applied.bucket, Key="staff/trips/_delta_log/00000000000000000000.json")


def test_verify_passes_with_the_role_it_made(applied: Applied, tmp_path: Path) -> None:
    """The provider's own proof, by the command, with the module's output as the configuration."""
    applied.store.seed(MODULES / "demo-table" / "trips", f"s3://{applied.bucket}/sales/verified")
    configuration = tmp_path / "lakepass.yaml"
    entry = applied.entry().model_dump(mode="json", exclude_none=True)
    entry["location"] = applied.storage[0]["location"]
    entry["aws"]["secret_access_key"] = applied.broker.secret_access_key
    configuration.write_text(
        yaml.safe_dump({"database": f"sqlite:///{tmp_path / 'catalog.db'}", "storage": [entry]})
    )

    def lakepass(*words: str) -> str:
        command = [sys.executable, "-m", "lakepass.cli.main", *words, "--config", str(configuration)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout

    lakepass("table", "add", "demo.x.trips", f"s3://{applied.bucket}/sales/verified", "--access", "url,dir")
    verified = lakepass("verify", "demo.x.trips", "--wait", "5", "--json")

    (report,) = json.loads(verified)
    assert report["sound"] is True, verified


def test_another_external_id_is_refused(applied: Applied) -> None:
    location = Location.parse(f"s3://{applied.bucket}/sales/trips")

    with pytest.raises(CloudRefused):
        vendor_for(applied.entry(external_id="another-external-id")).vend(
            location, ANN, timedelta(hours=1), "request"
        )


def test_nobody_else_assumes_the_role(applied: Applied) -> None:
    _, stranger = applied.store.create_user()

    with pytest.raises(ClientError, match="AccessDenied"):
        applied.store.assume(applied.role, stranger, external_id="local-external-id-0000")


@pytest.mark.parametrize("directory", ["sales", "sales/trips", "sales/a b/ü"])
def test_what_a_session_policy_asks_for_the_role_allows(applied: Applied, directory: str) -> None:
    location = Location.parse(f"s3://{applied.bucket}/{directory}")

    for asked in _statements(session_policy(location, kms_keys=[KEY])):
        for action in _list(asked["Action"]):
            for resource in _list(asked["Resource"]):
                assert any(_covers(given, action, resource, asked) for given in applied.policy), (
                    f"the role does not allow {action} on {resource}"
                )


def test_what_lies_outside_the_role_is_not_covered(applied: Applied) -> None:
    """The comparison above can fail: a sibling of the role's directory is not covered."""
    location = Location.parse(f"s3://{applied.bucket}/sales2")

    for asked in _statements(session_policy(location)):
        for action in _list(asked["Action"]):
            assert not any(_covers(given, action, asked["Resource"], asked) for given in applied.policy)


def _covers(given: dict[str, Any], action: str, resource: str, asked: dict[str, Any]) -> bool:
    """Whether a statement of the role allows all that `asked` means by `action` on `resource`.

    A `*` that is asked for is compared as a character, so only an equal or wider pattern covers it. Each
    condition of the role must also be a condition of what is asked, at least as narrow.
    """
    if given["Effect"] != "Allow" or action not in _list(given["Action"]):
        return False
    if not any(_matches(pattern, resource) for pattern in _list(given["Resource"])):
        return False
    wanted = asked.get("Condition", {})
    return all(
        all(
            any(_matches(pattern, value) for pattern in _list(patterns))
            for value in _list(wanted.get(test, {}).get(key, []))
        )
        and key in wanted.get(test, {})
        for test, conditions in given.get("Condition", {}).items()
        for key, patterns in conditions.items()
    )


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text) is not None
