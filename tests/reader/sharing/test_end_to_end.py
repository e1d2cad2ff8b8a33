"""From a profile to rows through our broker, on an S3 that enforces what was vended."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakepass.reader import SharingClient, Table, load_as_arrow, load_as_pandas, load_as_polars
from lakepass.reader.errors import DeltaError
from tests.clouds.ministack import Ministack
from tests.reader.sharing.shared_s3 import SharedOnS3, sharing_on_s3
from tests.tables import fixtures

pytestmark = pytest.mark.slow

NAMES = [name for name in fixtures.names() if fixtures.fixture(name).auxiliary is None]


@pytest.fixture(scope="module")
def shared(ministack: Ministack) -> Iterator[SharedOnS3]:
    with sharing_on_s3(ministack) as running:
        for name in NAMES:
            running.add(name, fixtures.fixture(name).path)
        yield running


def in_order(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.parametrize("access", ["dir", "url"])
@pytest.mark.parametrize("name", NAMES)
def test_every_fixture_in_both_modes(shared: SharedOnS3, name: str, access: str) -> None:
    table = SharingClient(shared.profile).table(f"s.d.{name}", access=access)  # type: ignore[arg-type]  # a parameter
    assert table.access == access
    by_path = Table(fixtures.fixture(name).path)
    assert table.snapshot().schema == by_path.snapshot().schema
    assert in_order(table.to_arrow()) == in_order(by_path.to_arrow())


@pytest.mark.parametrize("access", ["dir", "url"])
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("change_feed")])
def test_changes_in_both_modes(shared: SharedOnS3, name: str, access: str) -> None:
    fixture = fixtures.fixture(name)
    start = fixture.expected.get("changes", {}).get("starting_version", 0)
    table = SharingClient(shared.profile).table(f"s.d.{name}", access=access)  # type: ignore[arg-type]  # a parameter
    by_path = Table(fixtures.fixture(name).path)
    plain = ["_commit_timestamp"]  # the objects' times are those of their upload
    found = table.changes(starting_version=start).to_arrow().drop_columns(plain)
    assert in_order(found) == in_order(by_path.changes(starting_version=start).to_arrow().drop_columns(plain))


def test_auto_takes_the_directory(shared: SharedOnS3, tmp_path: Path) -> None:
    client = SharingClient(shared.profile)
    table = client.table("s.d.plain")
    assert table.access == "dir"
    assert str(table.location) == f"s3://{shared.bucket}/plain"
    assert len(table.history()) == table.snapshot().version + 1


def test_the_listings_agree(shared: SharedOnS3) -> None:
    client = SharingClient(shared.profile)
    assert [share.name for share in client.shares()] == ["s"]
    assert [schema.name for schema in client.schemas("s")] == ["d"]
    assert {table.name for table in client.tables("s.d")} == set(NAMES)
    assert {str(table) for table in client.all_tables()} == {f"s.d.{name}" for name in NAMES}
    assert client.table_version("s.d.plain") == client.table("s.d.plain").snapshot().version


def test_one_call_loads_rows(shared: SharedOnS3, tmp_path: Path) -> None:
    reference = f"{shared.profile_file(tmp_path)}#s.d.plain"
    rows = Table(fixtures.fixture("plain").path).snapshot().scan().count()
    assert len(load_as_pandas(reference)) == rows
    assert load_as_arrow(reference, limit=2).num_rows == 2
    assert len(load_as_polars(reference, access="url")) == rows
    assert set(map(str, load_as_pandas(reference, arrow_types=True).dtypes)) & {
        "int64[pyarrow]",
        "string[pyarrow]",
    }


def test_deltalake_with_keys_that_it_renews(shared: SharedOnS3) -> None:
    table = SharingClient(shared.profile).table("s.d.checkpoint_classic")
    options = table.storage_options()
    assert "aws_container_credentials_full_uri" in options
    token_file = Path(options["aws_container_authorization_token_file"])
    assert token_file.stat().st_mode & 0o777 == 0o600
    assert shared.profile["bearerToken"] not in repr(options)
    found = table.deltalake().to_pyarrow_table()
    by_path = Table(fixtures.fixture("checkpoint_classic").path).to_arrow()
    assert found.num_rows == by_path.num_rows


def test_deltalake_is_refused_where_it_would_give_nulls(shared: SharedOnS3) -> None:
    table = SharingClient(shared.profile).table("s.d.mapping_name")
    with pytest.raises(DeltaError, match="NULLs"):
        table.deltalake()
    from deltalake import QueryBuilder

    query = QueryBuilder().register("t", table.deltalake(query_builder=True))
    assert pa.table(query.execute("select * from t").read_all()).num_rows == table.snapshot().scan().count()


def test_a_file_outside_every_location_is_refused(shared: SharedOnS3, ministack: Ministack) -> None:
    """A log that names another table's file: the vended credential never gets that far."""
    location = f"s3://{shared.bucket}/hostile"
    commits = sorted((fixtures.fixture("plain").path / "_delta_log").glob("0*.json"))
    lines = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    lines = [line for line in lines if line.keys() & {"protocol", "metaData", "add"}]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = f"s3://{shared.bucket}/plain/{line['add']['path']}"
    assert any("add" in line for line in lines)
    ministack.s3().put_object(
        Bucket=shared.bucket,
        Key="hostile/_delta_log/00000000000000000000.json",
        Body="\n".join(json.dumps(line) for line in lines).encode(),
    )
    shared.broker.share_table("s.d.hostile", location, modes=("dir",))
    with pytest.raises(DeltaError, match="Refused"):
        SharingClient(shared.profile).table("s.d.hostile").to_arrow()


def test_no_secret_is_logged_while_reading(shared: SharedOnS3, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for access in ("dir", "url"):
        SharingClient(shared.profile).table("s.d.plain", access=access).to_arrow()
    assert shared.profile["bearerToken"] not in caplog.text
    assert "Signature" not in caplog.text
