"""Through our broker on three clouds, with credentials that last seconds.

Azure and Cloud Storage stand behind gates that carry out our reading of their rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from lakepass.reader import SharingClient, Table
from lakepass.reader.errors import UnsupportedTableError
from lakepass.reader.sharing import vended
from tests.broker.server import running_broker
from tests.clouds.azurite import Azurite
from tests.clouds.gcs import Gcs
from tests.clouds.ministack import Ministack
from tests.tables import fixtures

pytestmark = [pytest.mark.slow, pytest.mark.node]

FOLDER = fixtures.fixture("deletion_vectors_partitioned").path
CLOUDS = ("aws", "azure", "gcp")


@dataclass
class Sky:
    profile: dict[str, Any]


@pytest.fixture(scope="module")
def sky(ministack: Ministack, azurite: Azurite, gcs: Gcs) -> Iterator[Sky]:
    bucket, container, gcs_bucket = ministack.create_bucket(), azurite.create_container(), gcs.create_bucket()
    user, keys = ministack.create_user()
    locations = {
        "aws": f"s3://{bucket}/t",
        "azure": azurite.location(container, "t"),
        "gcp": f"gs://{gcs_bucket}/t",
    }
    ministack.seed(FOLDER, locations["aws"])
    azurite.seed(FOLDER, locations["azure"])
    gcs.seed(FOLDER, locations["gcp"])
    aws = {
        "role_arn": ministack.create_role(user, [bucket]),
        "endpoint": ministack.endpoint,
        "sts_endpoint": ministack.endpoint,
        "region": ministack.region,
        "path_style": True,
        "access_key_id": keys.access_key_id,
        "secret_access_key": keys.secret_access_key,
    }
    gcp = {
        "key_file": str(gcs.key_files["brief"]),
        "endpoint": gcs.endpoint,
        "token_endpoint": gcs.token_endpoint,
    }
    storage = [
        {"location": f"s3://{bucket}/", "aws": aws},
        {"location": azurite.location(container, ""), "azure": {"endpoint": azurite.plain_endpoint}},
        {"location": f"gs://{gcs_bucket}/", "gcp": gcp},
    ]
    config = {"credentials": {"lifetime": "4s"}}
    with running_broker(storage=storage, config=config, environment=dict(azurite.identity)) as broker:
        for cloud, location in locations.items():
            broker.share_table(f"s.d.{cloud}", location, modes=("url", "dir"))
        yield Sky(broker.recipient("ann", shares=["s"]))
    vended._providers.clear()


def in_order(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("access", ["dir", "url"])
def test_rows_on_each_cloud(sky: Sky, cloud: str, access: Any) -> None:
    table = SharingClient(sky.profile).table(f"s.d.{cloud}", access=access)
    assert table.access == access
    assert in_order(table.to_arrow()) == in_order(Table(FOLDER).to_arrow())


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_scan_outlives_its_credential(sky: Sky, cloud: str) -> None:
    table = SharingClient(sky.profile).table(f"s.d.{cloud}", access="dir")
    tasks = table.snapshot().scan().tasks(1 << 14)
    held = table.credential()
    pieces = []
    for task in tasks:
        pieces.append(task.to_arrow())
        time.sleep(6.0 / len(tasks))
    assert in_order(pa.concat_tables(pieces)) == in_order(Table(FOLDER).to_arrow())
    assert table.credential() != held


def test_deltalake_on_each_cloud(sky: Sky) -> None:
    client = SharingClient(sky.profile)
    assert client.table("s.d.aws", access="dir").deltalake().version() == Table(FOLDER).snapshot().version
    azure = client.table("s.d.azure", access="dir")
    options = azure.storage_options()
    assert options.expires_at is not None
    assert options["azure_storage_sas_token"] not in repr(options)
    with pytest.raises(UnsupportedTableError, match="own Google identity"):
        client.table("s.d.gcp", access="dir").deltalake()


@pytest.mark.parametrize(
    "variables",
    [
        {"AWS_ACCESS_KEY_ID": "machine", "AWS_SECRET_ACCESS_KEY": "machine", "AWS_SESSION_TOKEN": "machine"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE": "/dev/null", "AWS_ROLE_ARN": "arn:aws:iam::1:role/machine"},
        {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/machine"},
        {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9", "AWS_SKIP_SIGNATURE": "true"},
    ],
    ids=lambda each: next(iter(each)),
)
def test_the_machines_own_identity_never_stands_in_for_vended_keys(
    sky: Sky, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    table = SharingClient(sky.profile).table("s.d.aws", access="dir")
    assert in_order(table.to_arrow()) == in_order(Table(FOLDER).to_arrow())
    assert table.deltalake().version() == Table(FOLDER).snapshot().version


def test_deltalake_is_refused_where_it_would_take_the_machines_account_key(
    sky: Sky, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = SharingClient(sky.profile).table("s.d.azure", access="dir")
    monkeypatch.setenv("AZURE_SKIP_SIGNATURE", "true")
    assert in_order(table.to_arrow()) == in_order(Table(FOLDER).to_arrow())
    assert table.deltalake().version() == Table(FOLDER).snapshot().version
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "bWFjaGluZQ==")
    assert in_order(table.to_arrow()) == in_order(Table(FOLDER).to_arrow())
    with pytest.raises(UnsupportedTableError, match=r"AZURE_STORAGE_ACCOUNT_KEY.*Unset it"):
        table.deltalake()
