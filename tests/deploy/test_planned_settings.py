"""What Terraform plans for the broker's container is what the broker takes: its settings, its commands."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shlex
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from lakepass.broker.config import Settings
from lakepass.broker.errors import NotFound
from lakepass.broker.serving import KEEP_ALIVE
from tests.clouds.postgres import Postgres
from tests.deploy.terraform import MODULES, Terraform, copied

pytestmark = [pytest.mark.terraform, pytest.mark.slow]

CODE = secrets.token_hex(24)
# What the mocked provider leaves to chance, as the clouds would give it.
KNOWN = {
    "aws": """
        mock_data "aws_caller_identity" { defaults = { account_id = "111111111111" } }
        mock_data "aws_vpc" { defaults = { cidr_block = "10.42.0.0/16" } }
        mock_resource "aws_iam_role" { defaults = { arn = "arn:aws:iam::111111111111:role/mocked" } }
        mock_resource "aws_acm_certificate" {
          defaults = {
            domain_validation_options = [{
              domain_name          = "share.example.com", resource_record_name = "_x.share.example.com",
              resource_record_type = "CNAME", resource_record_value = "_y.example.com"
            }]
          }
        }
    """,
    "azure": 'source = "../mocks"',
    "gcp": 'source = "../mocks"',
}
PROVIDER = {"aws": "aws", "azure": "azurerm", "gcp": "google"}


# A cloud stays on one worker: its example is applied once.
_PARAMS = [pytest.param(cloud, marks=pytest.mark.xdist_group(f"planned-{cloud}")) for cloud in sorted(KNOWN)]


@pytest.fixture(scope="module", params=_PARAMS)
def planned(
    request: pytest.FixtureRequest, terraform: Terraform, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """The settings and the commands of the example's broker, as an applied (mocked) example shows them."""
    cloud: str = request.param
    folder = copied(f"{cloud}/fullstack", tmp_path_factory.mktemp(cloud))
    # Outputs that show what the module hands to its container.
    broker = folder.parent / "broker" / "outputs.tf"
    broker.write_text(
        broker.read_text()
        + 'output "shown" { value = { environment = local.environment, setup = local.setup } }\n'
    )
    (folder / "shown.tf").write_text('output "shown" { value = module.broker.shown }\n')
    own = (folder / "tests" / "fullstack.tftest.hcl").read_text()
    variables = re.search(r"^variables \{\n.*?^\}", own, re.MULTILINE | re.DOTALL)
    assert variables is not None
    given = re.sub(r"  activation_code .*", f'  activation_code = "{CODE}"', variables[0])
    (folder / "tests" / "fullstack.tftest.hcl").write_text(
        f'mock_provider "{PROVIDER[cloud]}" {{\n{KNOWN[cloud]}\n}}\n{given}\n'
        'run "applied" {\n  command = apply\n  assert {\n    condition = output.shown == null\n'
        '    error_message = "shown:${nonsensitive(base64encode(jsonencode(output.shown)))}:shown"\n  }\n}\n'
    )
    terraform.init(folder)
    ran = terraform.run(folder, "test", "-json")
    return _decoded(ran.output)


def _decoded(output: str) -> Any:
    shown = re.search(r"shown:([A-Za-z0-9+/=]+):shown", output)
    assert shown is not None, output
    return json.loads(base64.b64decode(shown[1]))


def test_the_load_balancer_lets_go_of_a_connection_first() -> None:
    """Else it would send requests down connections that the broker is closing, and answer 502 itself."""
    idle = re.search(
        r"^  idle_timeout +=\s*(\d+)", (MODULES / "aws/broker/network.tf").read_text(), re.MULTILINE
    )

    assert idle is not None
    assert int(idle[1]) < KEEP_ALIVE


def test_the_broker_takes_its_settings(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in planned["environment"].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(
        "LAKEPASS_DATABASE", "postgresql://lakepass:local-password@10.0.0.1:5432/lakepass?sslmode=require"
    )
    monkeypatch.setenv("LAKEPASS_ADMIN__TOKEN_SHA256", "0" * 64)

    settings = Settings.load()

    assert settings.server.host == "0.0.0.0"
    assert settings.server.log_format == "json"
    assert settings.server.trusted_proxies
    assert len(settings.storage) == 1
    entry = settings.storage[0]
    assert (entry.aws and entry.aws.role_arn) or entry.azure or (entry.gcp and entry.gcp.service_account)


def test_its_commands_set_up_the_demo_on_all_replicas_at_once(
    planned: Any, postgres: Postgres, tmp_path: Path
) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("LAKEPASS_")
    } | planned["environment"]
    environment |= {
        "LAKEPASS_DATABASE": postgres.create_database(),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    (script,) = planned["setup"]
    assert script.endswith(" && exec lakepass serve")

    replicas = [
        subprocess.Popen(
            ["/bin/sh", "-c", script.removesuffix(" && exec lakepass serve")],
            env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for replica in replicas:
        output, _ = replica.communicate()
        assert replica.returncode == 0, output
        assert CODE not in output

    from lakepass.broker.catalog.store import Catalog

    catalog = Catalog(Settings(database=environment["LAKEPASS_DATABASE"]))
    assert [row[:2] for row in catalog.recipients.grants()] == [("demo", "demo")]
    location = catalog.shares.table("demo", "default", "trips").location
    assert location in shlex.split(script)
    assert sha256(CODE.encode()).hexdigest() in script
    assert catalog.recipients.activate(CODE).recipient == "demo"
    with pytest.raises(NotFound):
        catalog.recipients.activate(CODE)
    catalog.close()
