"""`url` mode reads what the log reads: the same rows, through the server's answers alone."""

from __future__ import annotations

import json
import logging
import pickle
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakepass.reader import DirectoryCache, SharingClient, Table, get_table_metadata, load_as_pandas
from lakepass.reader.errors import DeltaError, SharingError, VersionNotFoundError
from lakepass.reader.sharing.table import SharedTable
from lakepass.reader.sharing.urls import UrlSnapshot
from tests.reader.sharing.conftest import QUICK
from tests.reader.sharing.folder import FolderShare
from tests.reader.sharing.server import Asked, Reply, Server, ndjson
from tests.tables import fixtures

WITHOUT_AUXILIARY = [name for name in fixtures.names() if fixtures.fixture(name).auxiliary is None]


def opened(server: Server, name: str, **options: Any) -> SharedTable:
    return SharingClient(server.profile, patience=QUICK).table(f"s.d.{name}", **options)


def ids(table: pa.Table) -> list[int]:
    return sorted(row["id"] for row in table.to_pylist())


def in_order(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.parametrize("name", WITHOUT_AUXILIARY)
def test_every_fixture_reads_as_by_path(server: Server, share: FolderShare, name: str) -> None:
    folder = fixtures.fixture(name).path
    share.add("t", folder)
    table = opened(server, "t")
    by_path = Table(folder)
    assert table.access == "url"
    assert table.snapshot().version == by_path.snapshot().version
    assert table.snapshot().schema == by_path.snapshot().schema
    assert in_order(table.to_arrow()) == in_order(by_path.to_arrow())


@pytest.mark.parametrize("response_format", ["delta", "parquet", "delta,parquet"])
def test_every_accepted_format(server: Server, share: FolderShare, response_format: Any) -> None:
    folder = fixtures.fixture("partitioned").path
    share.add("t", folder)
    table = opened(server, "t", response_format=response_format)
    assert in_order(table.to_arrow()) == in_order(Table(folder).to_arrow())


def test_metadata_without_a_version_does_not_stop_a_read(server: Server, share: FolderShare) -> None:
    folder = fixtures.fixture("plain").path
    share.add("t", folder)
    told = Table(folder).snapshot().metadata
    metadata = {"metaData": {"id": told.id, "schemaString": told.schema_string, "partitionColumns": []}}
    answer = ndjson({"protocol": {"minReaderVersion": 1}}, metadata, version=None)
    server.on("GET", "/shares/s/schemas/d/tables/t/metadata", answer)
    assert in_order(opened(server, "t").to_arrow()) == in_order(Table(folder).to_arrow())


def test_calls_written_for_delta_sharing_work(server: Server, share: FolderShare, tmp_path: Path) -> None:
    folder = fixtures.fixture("plain").path
    share.add("t", folder)
    profile = tmp_path / "me.share"
    profile.write_text(json.dumps(server.profile))
    profile.chmod(0o600)
    url = f"{profile}#s.d.t"
    latest = Table(folder).snapshot()
    assert len(load_as_pandas(url, 2, None, None, None, True, True)) == 2
    typed = load_as_pandas(url, convert_in_batches=True, arrow_types=True)
    assert len(typed) == latest.scan().count()
    assert all(str(kind).endswith("[pyarrow]") for kind in typed.dtypes)
    assert get_table_metadata(url, use_delta_format=True).id == latest.metadata.id


def test_time_travel(server: Server, share: FolderShare) -> None:
    fixture = fixtures.fixture("schema_evolution")
    share.add("t", fixture.path)
    assert fixture.earlier is not None
    snapshot = opened(server, "t").snapshot(version=fixture.earlier)
    by_path = Table(fixture.path).snapshot(fixture.earlier)
    assert (snapshot.version, snapshot.schema) == (by_path.version, by_path.schema)
    assert in_order(snapshot.scan().to_arrow()) == in_order(by_path.scan().to_arrow())
    of_numpy: Any = np.int64(fixture.earlier)
    assert opened(server, "t").snapshot(of_numpy).version == fixture.earlier


def test_filters_go_along_as_hints_and_are_applied_here(server: Server, share: FolderShare) -> None:
    folder = fixtures.fixture("checkpoint_classic").path
    by_path = Table(folder)
    column = next(field.name for field in by_path.snapshot().schema if pa.types.is_integer(field.type))
    share.add("t", folder)
    values = by_path.to_arrow([column]).column(column).to_pylist()
    middle = sorted(value for value in values if value is not None)[len(values) // 2]
    rows = opened(server, "t").to_arrow(filter=f"{column} >= {middle}")
    assert in_order(rows) == in_order(by_path.to_arrow(filter=f"{column} >= {middle}"))
    sent = server.requests("/query")[0].fields
    assert sent["predicateHints"] == [f"{column} >= {middle}"]
    assert json.loads(sent["jsonPredicateHints"])["op"] == "greaterThanOrEqual"
    assert "limitHint" not in sent


def test_a_limit_is_a_hint_only_without_a_filter(server: Server, share: FolderShare) -> None:
    share.add("t", fixtures.fixture("checkpoint_classic").path)
    assert len(opened(server, "t").to_arrow(limit=3)) == 3
    assert server.requests("/query")[0].fields["limitHint"] == 3


def test_pages_are_followed(server: Server, share: FolderShare) -> None:
    folder = fixtures.fixture("checkpoint_classic").path
    share.page_files = 1
    share.add("t", folder)
    assert in_order(opened(server, "t").to_arrow()) == in_order(Table(folder).to_arrow())
    assert len(server.requests("/query")) > 1


@pytest.mark.parametrize("refreshing", [True, False])
@pytest.mark.parametrize("history", [True, False])
def test_a_scan_outlives_its_urls(
    server: Server, share: FolderShare, refreshing: bool, history: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lakepass.sharing")
    folder = fixtures.fixture("deletion_vectors").path
    share.refreshing, share.history = refreshing, history
    share.add("t", folder)
    scan = opened(server, "t").snapshot().scan()
    tasks = scan.tasks(4096)
    asked = len(server.requests("/query"))
    share.end_all_urls()
    rows = pa.concat_tables([task.to_arrow() for task in tasks])
    assert in_order(rows) == in_order(Table(folder).to_arrow())
    again = server.requests("/query")[asked:]
    assert any("refreshToken" in one.fields for one in again) == refreshing
    assert "have ended" in caplog.text
    assert "local-signature" not in caplog.text


def test_urls_about_to_end_are_replaced_before_use(server: Server, share: FolderShare) -> None:
    folder = fixtures.fixture("deletion_vectors").path
    share.url_life = 5.0
    share.add("t", folder)
    assert in_order(opened(server, "t").to_arrow()) == in_order(Table(folder).to_arrow())
    refused = [one for one in server.asked if one.path.startswith("/files/")]
    assert share.files_read == len(refused)
    assert len(server.requests("/query")) >= 2


def test_a_table_that_moved_on_is_read_at_its_version(
    server: Server, share: FolderShare, tmp_path: Path
) -> None:
    from deltalake import write_deltalake

    folder = tmp_path / "moving"
    write_deltalake(folder, pa.table({"id": [1, 2]}))
    share.add("t", folder)
    table = opened(server, "t")
    snapshot = table.snapshot()
    write_deltalake(folder, pa.table({"id": [3]}), mode="append")
    share.add("t", folder)
    assert ids(snapshot.scan().to_arrow()) == [1, 2]
    assert ids(table.to_arrow()) == [1, 2, 3]


def test_without_history_a_table_that_moved_on_is_an_error_not_other_rows(
    server: Server, share: FolderShare, tmp_path: Path
) -> None:
    from deltalake import write_deltalake

    folder = tmp_path / "moving"
    write_deltalake(folder, pa.table({"id": [1, 2]}))
    share.history = False
    share.add("t", folder)
    snapshot = opened(server, "t").snapshot()
    write_deltalake(folder, pa.table({"id": [3]}), mode="append")
    share.add("t", folder)
    with pytest.raises(VersionNotFoundError, match="Take a new snapshot"):
        snapshot.scan().to_arrow()


def test_a_query_that_is_answered_with_another_version_is_an_error(
    server: Server, share: FolderShare
) -> None:
    """A server found in the wild gives the latest version in its metadata and the first one's files."""
    folder = fixtures.fixture("plain").path
    share.add("t", folder)
    query = server._answers["POST", "/api/shares/s/schemas/d/tables/t/query"][0]
    assert callable(query)

    def first_version(asked: Asked) -> Reply:
        return query(replace(asked, body=json.dumps({**asked.fields, "version": 0}).encode()))

    server.on("POST", "/shares/s/schemas/d/tables/t/query", first_version)
    with pytest.raises(VersionNotFoundError, match=r"Version 6 of s.d.t was asked for .* answered with 0"):
        opened(server, "t").to_arrow()


def test_files_that_share_an_id_are_not_mistaken_for_each_other(server: Server, share: FolderShare) -> None:
    folder = fixtures.fixture("partitioned").path
    share.add("t", folder)
    query = server._answers["POST", "/api/shares/s/schemas/d/tables/t/query"][0]
    assert callable(query)

    def one_id(asked: Asked) -> Reply:
        answer = query(asked)
        lines = [json.loads(line) for line in answer.body.splitlines()]
        for line in lines:
            if "file" in line:
                line["file"]["id"] = ""
        return replace(answer, body=b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    server.on("POST", "/shares/s/schemas/d/tables/t/query", one_id)
    table = opened(server, "t")
    assert in_order(table.to_arrow()) == in_order(Table(folder).to_arrow())
    tasks = table.snapshot().scan().tasks(1)
    share.end_all_urls()
    with pytest.raises(SharingError, match="several files the id ''"):
        tasks[0].to_arrow()


def test_a_pickled_task_reads_elsewhere_and_holds_no_token(
    server: Server, share: FolderShare, tmp_path: Path
) -> None:
    folder = fixtures.fixture("deletion_vectors").path
    share.add("t", folder)
    profile = tmp_path / "me.share"
    profile.write_text(json.dumps(server.profile))
    profile.chmod(0o600)
    scan = SharingClient(profile, patience=QUICK).table("s.d.t").snapshot().scan()
    pickles = [pickle.dumps(task) for task in scan.tasks(4096)]
    assert all(server.profile["bearerToken"].encode() not in one for one in pickles)
    share.end_all_urls()
    rows = pa.concat_tables([pickle.loads(one).to_arrow() for one in pickles])
    assert in_order(rows) == in_order(Table(folder).to_arrow())


def test_signatures_do_not_show_in_errors(server: Server, share: FolderShare, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    shutil.copytree(fixtures.fixture("checkpoint_classic").path, folder)
    share.add("t", folder)
    table = opened(server, "t")
    for path in [path for _, path in server._answers if path.startswith("/files/")]:
        server.on("GET", f"/{path}", Reply(404))
    with pytest.raises(DeltaError) as caught:
        table.to_arrow()
    assert "local-signature" not in str(caught.value)
    assert "read it again" in str(caught.value)


def test_what_only_the_log_knows_is_refused(server: Server, share: FolderShare) -> None:
    share.add("t", fixtures.fixture("plain").path)
    table = opened(server, "t")
    snapshot = table.snapshot()
    assert isinstance(snapshot, UrlSnapshot)
    for ask in (table.history, table.storage_options, lambda: snapshot.timestamp_ms):
        with pytest.raises(DeltaError, match="access='dir'"):
            ask()


def test_an_unknown_table_says_so(server: Server) -> None:
    with pytest.raises(SharingError, match="shows what was granted to you"):
        opened(server, "nothing")


@pytest.mark.parametrize("broken", ["data", "vectors", "sizes", "scheme"])
def test_signatures_do_not_show_when_files_are_damaged(
    server: Server, share: FolderShare, broken: str
) -> None:
    folder = fixtures.fixture("deletion_vectors").path
    share.add("t", folder)
    ending = {"data": ".parquet", "vectors": ".bin"}.get(broken, "none")
    for path in [path for _, path in server._answers if path.endswith(ending)]:
        server.on("GET", f"/{path}", Reply(200, b"PAR1" * 100_000))
    query = server._answers["POST", "/api/shares/s/schemas/d/tables/t/query"][0]
    assert callable(query)

    def changed(asked: Asked) -> Reply:
        answer = query(asked)
        if broken == "sizes":
            return replace(answer, body=re.sub(rb'"size": \d+', b'"size": 9', answer.body))
        if broken == "scheme":
            return replace(answer, body=answer.body.replace(b"http://", b"ftp://"))
        return answer

    server.on("POST", "/shares/s/schemas/d/tables/t/query", changed)
    snapshot = opened(server, "t").snapshot()
    assert "ignature" not in repr(snapshot.scan().tasks())
    with pytest.raises(DeltaError) as caught:
        snapshot.scan().to_arrow()
    assert "part-" in str(caught.value) or "deletion_vector" in str(caught.value)
    assert "ignature" not in str(caught.value)


def _kept(server: Server, cache: DirectoryCache) -> SharedTable:
    return SharingClient(server.profile, patience=QUICK, cache=cache).table("s.d.t")


def test_kept_data_files_are_known_by_their_ids(server: Server, share: FolderShare, tmp_path: Path) -> None:
    folder = fixtures.fixture("partitioned").path
    share.add("t", folder)
    expected = in_order(Table(folder).to_arrow())
    assert in_order(_kept(server, DirectoryCache(tmp_path / "cache", data=True)).to_arrow()) == expected
    first = share.files_read
    assert first > 0
    share.end_all_urls()
    assert in_order(_kept(server, DirectoryCache(tmp_path / "cache", data=True)).to_arrow()) == expected
    assert share.files_read == first
    names = " ".join(file.name for file in (tmp_path / "cache").iterdir())
    assert re.fullmatch(r"((file|start)-[0-9a-f]{64} ?)+", names)
    assert in_order(_kept(server, DirectoryCache(tmp_path / "cache")).to_arrow()) == expected
    assert share.files_read > first


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "longer", "folder"])
def test_damaged_kept_files_are_fetched_again(
    server: Server, share: FolderShare, tmp_path: Path, damage: str
) -> None:
    folder = fixtures.fixture("partitioned").path
    share.add("t", folder)
    expected = in_order(Table(folder).to_arrow())
    assert in_order(_kept(server, DirectoryCache(tmp_path / "cache", data=True)).to_arrow()) == expected
    first = share.files_read
    for file in (tmp_path / "cache").glob("file-*"):
        data = file.read_bytes()
        middle = len(data) // 2
        if damage == "folder":
            file.unlink()
            file.mkdir()
            continue
        file.write_bytes(
            {
                "cut": data[:middle],
                "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
                "empty": b"",
                "longer": data + b"more",
            }[damage]
        )
    assert in_order(_kept(server, DirectoryCache(tmp_path / "cache", data=True)).to_arrow()) == expected
    if damage == "folder":  # cannot be replaced, so nothing is kept
        assert share.files_read > first
        return
    assert share.files_read == 2 * first
    assert in_order(_kept(server, DirectoryCache(tmp_path / "cache", data=True)).to_arrow()) == expected
    assert share.files_read == 2 * first


def test_many_readers_share_kept_files_within_the_bound(
    server: Server, share: FolderShare, tmp_path: Path
) -> None:
    folder = fixtures.fixture("partitioned").path
    share.add("t", folder)
    expected = in_order(Table(folder).to_arrow())
    largest = max(file.stat().st_size for file in folder.rglob("*.parquet"))
    limit = largest * 8

    def read(_: int) -> list[str]:
        return in_order(_kept(server, DirectoryCache(tmp_path / "cache", limit, data=True)).to_arrow())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(24))) == [expected] * 24
    assert sum(file.stat().st_size for file in (tmp_path / "cache").iterdir()) <= limit


def test_a_task_reads_with_the_kept_files_or_without(
    server: Server, share: FolderShare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fixtures.fixture("partitioned").path
    share.add("t", folder)
    profile = tmp_path / "me.share"
    profile.touch(mode=0o600)
    profile.write_text(json.dumps(server.profile))
    cache = DirectoryCache(tmp_path / "cache", data=True)
    client = SharingClient(profile, patience=QUICK, cache=cache)
    rows = client.table("s.d.t").to_arrow().num_rows
    tasks = pickle.dumps(client.table("s.d.t").snapshot().scan().tasks())
    first = share.files_read
    assert sum(task.count() for task in pickle.loads(tasks)) == rows
    assert share.files_read == first
    # Where there is no such directory and none can be made, tasks are read as ever.
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("a file")
    assert sum(task.to_arrow().num_rows for task in pickle.loads(tasks)) == rows
    assert share.files_read > first
