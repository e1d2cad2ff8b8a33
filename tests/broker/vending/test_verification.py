"""`lakepass verify`: passes what is sound, and finds what leaks, on every store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from lakepass.broker.audit.trail import Filter, latest
from lakepass.broker.catalog.shares import TableDefinition
from lakepass.broker.catalog.store import Catalog
from lakepass.broker.config import Settings
from lakepass.broker.vending.azure_scope import SasScope
from lakepass.broker.vending.verification.checks import Verdict
from lakepass.broker.vending.verification.end import verify_end
from lakepass.broker.vending.verification.probe import Probe, Refused, probe_for
from lakepass.cli.main import app
from lakepass.reader.credentials import AwsKeys, AzureSas, Credential
from lakepass.reader.location import Location
from tests.broker.vending import s3_scene
from tests.clouds.azurite import Azurite
from tests.clouds.gcs import Gcs
from tests.clouds.ministack import Ministack
from tests.clouds.seaweedfs import SeaweedFS

TABLE = Path(__file__).parents[2] / "tables" / "plain" / "delta"


@dataclass
class Deployment:
    """A configuration with two tables in one bucket, orders and items, and what is in the bucket."""

    file: Path
    seed: Callable[[Path, str], None]
    place: Callable[[str], str]
    contents: Callable[[], Any]
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> Result:
        environment = {**self.environment, "COLUMNS": "200"}
        return CliRunner().invoke(app, ["verify", *arguments, "--config", str(self.file)], env=environment)

    def verdicts(self, *arguments: str) -> tuple[int, dict[str, str]]:
        """The exit code, and the verdict on each attempt at the first table."""
        result = self.run(*arguments, "--json")
        checks = json.loads(result.stdout)[0]["checks"]
        return result.exit_code, {check["what"]: check["verdict"] for check in checks}

    def share(self, name: str, path: str, **options: Any) -> None:
        catalog = Catalog(Settings.load(self.file))
        if not any(share.name == "sales" for share in catalog.shares.all()):
            catalog.shares.add("sales")
        definition = TableDefinition(name, self.place(path), access_modes=["dir"], **options)
        catalog.shares.add_table("sales", "eu", definition)
        catalog.close()


def _deployment(
    folder: Path, storage: dict[str, Any], seed: Any, place: Any, contents: Any, **environment: str
) -> Deployment:
    file = folder / "lakepass.yaml"
    content = {"database": f"sqlite:///{folder / 'catalog.db'}", "storage": [storage]}
    file.write_text(yaml.safe_dump(content))
    made = Deployment(file, seed, place, contents, environment)
    made.seed(TABLE, made.place("t/orders"))
    made.seed(TABLE, made.place("t/items"))
    made.share("orders", "t/orders")
    made.share("items", "t/items")
    return made


def _s3(scene: s3_scene.S3Scene, seed: Any, folder: Path) -> Deployment:
    aws = scene.settings.model_dump(exclude_none=True)
    assert scene.settings.secret_access_key is not None
    aws |= {"secret_access_key": scene.settings.secret_access_key.get_secret_value(), "kms_keys": []}
    root = f"s3://{scene.bucket}/"
    return _deployment(
        folder, {"location": root, "aws": aws}, seed, lambda path: f"{root}{path}", scene.contents
    )


@pytest.fixture
def on_ministack(ministack: Ministack, tmp_path: Path) -> Deployment:
    return _s3(s3_scene.on_ministack(ministack), ministack.seed, tmp_path)


@pytest.fixture
def on_seaweedfs(seaweedfs: SeaweedFS, tmp_path: Path) -> Deployment:
    return _s3(s3_scene.on_seaweedfs(seaweedfs), seaweedfs.seed, tmp_path)


@pytest.fixture
def on_azure(azurite: Azurite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    for name, value in azurite.identity.items():
        monkeypatch.setenv(name, value)
    container = azurite.create_container()

    def contents() -> list[str]:
        return sorted(azurite.service(plain=True).get_container_client(container).list_blob_names())

    storage = {"location": azurite.location(container, ""), "azure": {"endpoint": azurite.plain_endpoint}}
    yield _deployment(
        tmp_path, storage, azurite.seed, lambda path: azurite.location(container, path), contents
    )


@pytest.fixture
def on_gcs(gcs: Gcs, tmp_path: Path) -> Deployment:
    bucket = gcs.create_bucket()
    client: Any = gcs.client()

    def contents() -> list[str]:
        return sorted(blob.name for blob in client.list_blobs(bucket))

    settings = {
        "key_file": str(gcs.key_files["broker"]),
        "endpoint": gcs.endpoint,
        "token_endpoint": gcs.token_endpoint,
    }
    storage = {"location": f"gs://{bucket}/", "gcp": settings}
    return _deployment(tmp_path, storage, gcs.seed, lambda path: f"gs://{bucket}/{path}", contents)


STORES = ["on_ministack", "on_seaweedfs", "on_azure", "on_gcs"]


@pytest.fixture(params=STORES)
def deployment(request: pytest.FixtureRequest) -> Deployment:
    made: Deployment = request.getfixturevalue(request.param)
    return made


def test_a_sound_deployment_passes(deployment: Deployment) -> None:
    before = deployment.contents()
    result = deployment.run("sales.eu.orders")
    assert result.exit_code == 0, result.output
    assert "sales.eu.orders: sound" in result.output
    assert "1 table verified" in result.output
    code, verdicts = deployment.verdicts("sales.eu.orders")
    assert code == 0
    assert set(verdicts.values()) == {"ok"}
    for attempt in (
        "open the table",
        "read a row",
        "list the whole bucket",
        "list the parent t/",
        "has an end",
    ):
        assert attempt in verdicts
    assert any(what.startswith("read t/items/") for what in verdicts), "another table's real object is tried"
    assert sum(what.startswith(("write", "delete", "copy")) for what in verdicts) >= 6
    assert deployment.contents() == before


def test_all_tables(on_ministack: Deployment) -> None:
    result = on_ministack.run("--all")
    assert result.exit_code == 0
    assert "2 tables verified" in result.output
    catalog = Catalog(Settings.load(on_ministack.file))
    rows = latest(catalog.engine, Filter(recipient="lakepass-verify"), 10)
    catalog.close()
    assert {(row.table, row.interface, str(row.outcome)) for row in rows} == {
        ("sales.eu.orders", "verify", "vended"),
        ("sales.eu.items", "verify", "vended"),
    }


def wide_policy(location: Location, **_options: Any) -> str:
    resources = [f"arn:aws:s3:::{location.bucket}", f"arn:aws:s3:::{location.bucket}/*"]
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": resources}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def wide_sas(location: Location, **_options: Any) -> SasScope:
    return SasScope(location.account, location.bucket, None, "https,http", permissions="rwdl")


def wide_boundary(location: Location, **_options: Any) -> dict[str, Any]:
    rule = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{location.bucket}",
        "availablePermissions": ["inRole:roles/storage.objectAdmin"],
    }
    return {"accessBoundary": {"accessBoundaryRules": [rule]}}


WIDE = {
    "on_ministack": ("aws.session_policy", wide_policy),
    "on_seaweedfs": ("aws.session_policy", wide_policy),
    "on_azure": ("azure.sas_scope", wide_sas),
    "on_gcs": ("gcp.access_boundary", wide_boundary),
}


@pytest.mark.parametrize("store", STORES)
def test_a_leak_is_found(store: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scope is widened on purpose, as a broken vendor would: bucket-wide and writable."""
    deployment: Deployment = request.getfixturevalue(store)
    before = deployment.contents()
    name, scope = WIDE[store]
    monkeypatch.setattr(f"lakepass.broker.vending.{name}", scope)
    code, verdicts = deployment.verdicts("sales.eu.orders")
    assert code == 1
    leaks = {what for what, verdict in verdicts.items() if verdict == "leak"}
    assert {"list the whole bucket", "list the parent t/", "list a sibling t/orders2/"} <= leaks
    for verb in ("read t/items/", "write", "delete", "copy"):
        assert any(what.startswith(verb) for what in leaks), verb
    assert verdicts["open the table"] == "ok"
    assert deployment.contents() == before, "what an attack wrote is taken away again"
    assert "NOT SOUND" in deployment.run("sales.eu.orders").output


def test_a_table_that_is_not_there_is_unreadable(deployment: Deployment) -> None:
    deployment.share("nothing", "t/nothing")
    code, verdicts = deployment.verdicts("sales.eu.nothing")
    assert code == 1
    assert "unreadable" in verdicts.values()
    assert "leak" not in verdicts.values()


def test_every_location_of_a_table_is_verified(on_ministack: Deployment) -> None:
    auxiliary = on_ministack.place("elsewhere/orders")
    on_ministack.seed(TABLE, auxiliary)
    on_ministack.share("wide", "t/orders", auxiliary_locations=[auxiliary])
    result = on_ministack.run("sales.eu.wide", "--json")
    assert result.exit_code == 0
    checks = json.loads(result.stdout)[0]["checks"]
    for place in (on_ministack.place("t/orders"), auxiliary):
        verdicts = {check["what"]: check["verdict"] for check in checks if check["location"] == place}
        assert verdicts["list the whole bucket"] == "ok"
        assert verdicts["has an end"] == "ok"
        assert sum(what.startswith(("write", "delete", "copy")) for what in verdicts) >= 6


def test_a_role_that_refuses_is_told(on_ministack: Deployment) -> None:
    content = yaml.safe_load(on_ministack.file.read_text())
    content["storage"][0]["aws"]["external_id"] = "wrong"
    on_ministack.file.write_text(yaml.safe_dump(content))
    code, verdicts = on_ministack.verdicts("sales.eu.orders")
    assert code == 1
    assert verdicts == {"vend a credential": "unreadable"}


@pytest.mark.slow
def test_the_real_end_is_waited_for(on_ministack: Deployment) -> None:
    content = yaml.safe_load(on_ministack.file.read_text())
    content["credentials"] = {"lifetime": "10s"}
    on_ministack.file.write_text(yaml.safe_dump(content))
    code, verdicts = on_ministack.verdicts("sales.eu.orders")
    assert verdicts["read after its end"] == "ok"
    assert set(verdicts.values()) == {"ok"}
    assert code == 0


def test_a_flat_account_is_reported_as_accepted(on_azure: Deployment) -> None:
    content = yaml.safe_load(on_azure.file.read_text())
    content["storage"][0]["azure"] |= {"hierarchical_namespace": False}
    on_azure.file.write_text(yaml.safe_dump(content))
    code, verdicts = on_azure.verdicts("sales.eu.orders")
    assert (code, verdicts) == (1, {"vend a credential": "unreadable"})
    content["storage"][0]["azure"] |= {"allow_container_scope": True}
    on_azure.file.write_text(yaml.safe_dump(content))
    code, verdicts = on_azure.verdicts("sales.eu.orders")
    assert code == 0
    assert verdicts["list the whole bucket"] == "accepted"
    assert not {"leak", "unreadable"} & set(verdicts.values())


def test_what_is_asked_for_wrongly(on_ministack: Deployment) -> None:
    assert on_ministack.run().exit_code == 2
    assert on_ministack.run("sales.eu.orders", "--all").exit_code == 2
    assert on_ministack.run("sales.eu.missing").exit_code != 0


class Remembering:
    """A store that refuses, or does not, after the end."""

    def __init__(self, refuses: bool) -> None:
        self.refuses = refuses

    def read(self, _name: str) -> None:
        if self.refuses:
            raise Refused("ExpiredToken")


@pytest.mark.parametrize(("refuses", "verdict"), [(True, Verdict.OK), (False, Verdict.LEAK)])
def test_a_store_that_goes_on_after_the_end(refuses: bool, verdict: Verdict) -> None:
    ended = Credential("s3://lake/t", AwsKeys("a", "b", "c"), datetime.now(UTC) - timedelta(seconds=3))
    probe: Any = Remembering(refuses)
    *_, last = verify_end(probe, "t/x", ended, wait=timedelta(seconds=1))
    assert (last.what, last.verdict) == ("read after its end", verdict)


def test_an_end_that_is_not_the_signatures_is_found() -> None:
    end = datetime(2100, 1, 1, tzinfo=UTC)
    credential = Credential(
        "abfss://x@y/z", AzureSas("se=2030-01-01T00%3A00%3A00Z&ske=2031-01-01T00%3A00%3A00Z"), end
    )
    probe: Any = None
    found = {check.what: check.verdict for check in verify_end(probe, None, credential, wait=timedelta(0))}
    assert found == {"has an end": "leak", "ends when its signature does": "leak"}


def test_probes_hide_their_secrets(ministack: Ministack) -> None:
    keys = AwsKeys("id", "local-secret", "local-token")
    probe: Probe = probe_for(Location.parse("s3://lake/t"), Credential("s3://lake/t", keys, None))
    assert "local-secret" not in repr(probe) + repr(probe.__dict__)
