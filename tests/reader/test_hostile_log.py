"""A log is data from another company. Whatever it holds: a DeltaError that names the file, or the right
answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakepass.reader import DeltaError, Table
from lakepass.reader.errors import (
    CorruptTableError,
    FileMissingError,
    PathRefusedError,
    UnsupportedTableError,
)
from lakepass.reader.location import Location
from lakepass.reader.log import lines as log_lines
from lakepass.reader.paths import resolve
from lakepass.reader.storage import TooLargeError
from tests.reader.log_folder import SCHEMA, LogFolder, add, lines, metadata, protocol, remove, vector

STATE = (protocol(), metadata())
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "table")


PATHS_THAT_LEAVE = [
    "../x.parquet",
    "a/../../x.parquet",
    "%2E%2E/x.parquet",
    "a/%2e%2e/%2e%2e/x.parquet",
    "..%2Fx.parquet",
    "./x.parquet",
    "a/./x.parquet",
    "//host/x.parquet",
    "file:x.parquet",
    "file://host/x.parquet",
    "http://example.com/x.parquet",
    "https://example.com/x.parquet",
    "ftp://example.com/x",
    "hdfs://nn/x",
    "data:text/plain,x",
    "javascript:x",
    "a%00b.parquet",
    "a\x00b.parquet",
    "a%0Ab.parquet",
    "a\x7fb.parquet",
    "",
    "a/",
    "%",
    "%FF.parquet",
    "x" * 9000,
]


@pytest.mark.parametrize("path", [path for path in PATHS_THAT_LEAVE if path != "%"])
def test_paths_that_are_refused_wherever_the_table_is(path: str) -> None:
    for root in (
        "/data/table",
        "s3://lake/table",
        "abfss://c@a.dfs.core.windows.net/table",
        "gs://lake/table",
    ):
        with pytest.raises(PathRefusedError, match="Refused"):
            resolve(Location.parse(root), path)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "file:///etc/passwd",
        "file:/data/tables/secret",
        "s3://other/table/x.parquet",
        "s3://lake/table2/x.parquet",
        "s3://lake/x.parquet",
        "s3://lake/tabl%65/../x",
        "gs://lake/table/x.parquet",
        "abfss://c@a.dfs.core.windows.net/table/x",
    ],
)
def test_paths_outside_the_root_are_not_opened(path: str) -> None:
    table = Table("s3://lake/table")
    with pytest.raises(PathRefusedError, match="Refused"):
        table._source.storages.storage_for(resolve(table.location, path))


def test_a_remote_table_cannot_name_local_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret.parquet"
    secret.write_bytes(b"secret")
    table = Table("s3://lake/table")
    for path in (str(secret), secret.as_uri(), f"file:{secret}"):
        with pytest.raises(PathRefusedError):
            table._source.storages.storage_for(resolve(table.location, path))


def test_a_sibling_with_the_same_beginning_is_outside(folder: LogFolder) -> None:
    folder.create()
    storages = folder.table()._source.storages
    with pytest.raises(PathRefusedError):
        storages.storage_for(f"file://{folder.path}2/x.parquet")


def test_an_auxiliary_location_opens_that_location_alone(folder: LogFolder, tmp_path: Path) -> None:
    folder.create()
    (tmp_path / "aux").mkdir()
    (tmp_path / "aux" / "x").write_bytes(b"data")
    (tmp_path / "other").write_bytes(b"data")
    storages = folder.table(auxiliary={str(tmp_path / "aux"): None})._source.storages
    path = f"file://{tmp_path}/aux/x"
    assert storages.storage_for(path).read(path) == b"data"
    with pytest.raises(PathRefusedError):
        storages.storage_for(f"file://{tmp_path}/other")
    with pytest.raises(PathRefusedError):
        storages.storage_for(f"file://{tmp_path}/aux/../other")


@pytest.mark.parametrize("what", ["file", "directory", "log"])
def test_links_out_of_a_local_table(folder: LogFolder, tmp_path: Path, what: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.json").write_text(lines(STATE))
    folder.create()
    storage = folder.table()._source.storage
    if what == "file":
        (folder.path / "link").symlink_to(outside / "x.json")
        path = f"file://{folder.path}/link"
    elif what == "directory":
        (folder.path / "part=1").symlink_to(outside)
        path = f"file://{folder.path}/part=1/x.json"
    else:
        (folder.log / f"{1:020d}.json").symlink_to(outside / "x.json")
        with pytest.raises(PathRefusedError, match="link"):
            folder.table().snapshot()
        return
    with pytest.raises(PathRefusedError, match="link"):
        storage.read(path)
    with pytest.raises(PathRefusedError, match="link"):
        storage.open(path)


def test_a_link_that_stays_inside_is_fine(folder: LogFolder) -> None:
    folder.create()
    (folder.path / "real").write_bytes(b"data")
    (folder.path / "link").symlink_to(folder.path / "real")
    assert folder.table()._source.storage.read(f"file://{folder.path}/link") == b"data"


DAMAGED_COMMITS: dict[str, str | bytes] = {
    "cut off": '{"add":{"path":"x","partitionValues":{},"si',
    "not JSON": "<html></html>",
    "a bare null": 'null\n{"add":{"path":"x"}}',
    "a null after an object": '{"add":{"path":"x"}} null',
    "a number": "5",
    "a list": "[1,2,3]",
    "text": '"hello"',
    "binary": bytes(range(256)),
    "not UTF-8": b'{"add":{"path":"\xff\xfe","partitionValues":{}}}',
    "an add without a path": '{"add":{"size":1}}',
    "a path that is a number": '{"add":{"path":5}}',
    "a path that is an object": '{"add":{"path":{"a":1}}}',
    "a size that is text": '{"add":{"path":"x","size":"ten"}}',
    "a size beyond 64 bits": '{"add":{"path":"x","size":99999999999999999999999999}}',
    "a vector that is text": '{"add":{"path":"x","deletionVector":"v"}}',
    "a vector whose offset is huge": json.dumps(add("x", deletionVector={**vector("v"), "offset": 2**40})),
    "a vector whose cardinality is text": json.dumps(
        add("x", deletionVector={**vector("v"), "cardinality": "a"})
    ),
    "partition values that are a list": '{"add":{"path":"x","partitionValues":[1,2]}}',
    "a remove without a path": '{"remove":{"deletionTimestamp":1}}',
    "protocol that is text": '{"protocol":"1"}',
    "protocol without versions": '{"protocol":{}}',
    "protocol with a version of text": '{"protocol":{"minReaderVersion":"1","minWriterVersion":2}}',
    "protocol whose features are a map": (
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":{}}}'
    ),
    "protocol 3 without features": '{"protocol":{"minReaderVersion":3,"minWriterVersion":7}}',
    "metadata that is a list": '{"metaData":[]}',
    "metadata whose schema is an object": '{"metaData":{"schemaString":{}}}',
    "metadata whose configuration is text": '{"metaData":{"schemaString":"{}","configuration":"x"}}',
    "metadata whose partition columns are numbers": (
        '{"metaData":{"schemaString":"{}","partitionColumns":[1]}}'
    ),
    "deep nesting": '{"x":' + "[" * 100_000 + "]" * 100_000 + "}\n{",
}


@pytest.mark.parametrize("name", DAMAGED_COMMITS)
def test_a_damaged_commit_names_itself(folder: LogFolder, name: str) -> None:
    folder.create(add("a")).raw(f"{1:020d}.json", DAMAGED_COMMITS[name])
    with pytest.raises(DeltaError) as told:
        list(folder.table().snapshot().file_batches(stats="json", tags=True))
    assert "00000000000000000001.json" in str(told.value) or "reader version 3" in str(told.value)
    assert folder.files(0) == ["a"], "the versions before it are not affected"


def test_a_bare_null_does_not_crash_the_process(folder: LogFolder) -> None:
    """Arrow's JSON reader dies of it, so this runs in a process of its own."""
    folder.create().raw(f"{1:020d}.json", '{"add":{"path":"x"}}\nnull\n')
    code = (
        "from tests.reader.log_folder import live; from lakepass.reader import Table;"
        f" live(Table({str(folder.path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "CorruptTableError" in done.stderr


def test_nested_statistics_do_not_crash_the_process(folder: LogFolder) -> None:
    texts = [
        "null",
        "[" * 100_000,
        '{"numRecords":1}null',
        '{"numRecords":{"a":1}}',
        '{"numRecords":\n1}',
        "\ud7ff",
        "",
    ]
    folder.create(*(add(f"f{number}", stats=text) for number, text in enumerate(texts)))
    wanted = pa.schema([("numRecords", pa.int64())])
    (batch,) = folder.table().snapshot().file_batches(stats=wanted)
    numbers = [row["stats"] and row["stats"]["numRecords"] for row in batch.to_pylist()]
    assert numbers == [None, None, None, None, 1, None, None]


@pytest.mark.parametrize("feature", ["unknownFeature", "redirectReaderWriter-preview", "", "a" * 5000])
def test_features_nobody_knows_are_named(folder: LogFolder, feature: str) -> None:
    folder.create(features=["deletionVectors", feature])
    with pytest.raises(UnsupportedTableError) as told:
        folder.table().snapshot()
    assert told.value.features == (feature,)
    assert feature[:100] in str(told.value)
    assert len(str(told.value)) < 1000


@pytest.mark.parametrize("version", [4, 99, 2**40, -1])
def test_reader_versions_nobody_knows(folder: LogFolder, version: int) -> None:
    folder.commit(0, {"protocol": {"minReaderVersion": version, "minWriterVersion": 7}}, metadata())
    with pytest.raises(UnsupportedTableError, match=f"version {version}"):
        folder.table().snapshot()


def test_a_format_that_is_not_parquet(folder: LogFolder) -> None:
    changed = metadata()
    changed["metaData"]["format"]["provider"] = "orc"
    folder.commit(0, protocol(), changed)
    with pytest.raises(UnsupportedTableError, match="orc"):
        folder.table().snapshot()


def checkpointed(folder: LogFolder) -> Path:
    folder.create(add("a"))
    file = folder.checkpoint(0, *STATE, add("a"))
    (folder.log / f"{0:020d}.json").unlink()
    return file


@pytest.mark.parametrize("damage", ["cut", "zeros", "garbage", "text", "footer", "middle"])
def test_a_damaged_checkpoint_names_itself(folder: LogFolder, damage: str) -> None:
    file = checkpointed(folder)
    data = file.read_bytes()
    middle = len(data) // 3
    file.write_bytes(
        {
            "cut": data[: len(data) // 2],
            "zeros": bytes(len(data)),
            "garbage": bytes(255 - byte for byte in data),
            "text": b"not a parquet file",
            "footer": data[:-12] + b"\xff\xff\xff\x7f" + data[-8:],
            "middle": data[:4] + b"\xff" * middle + data[4 + middle :],
        }[damage]
    )
    with pytest.raises(DeltaError, match=r"checkpoint\.parquet"):
        folder.files()


def rewritten(file: Path, **columns: pa.Array[Any]) -> None:
    table = pq.read_table(file)
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)
    pq.write_table(table, file)


def test_a_checkpoint_whose_add_is_not_a_struct(folder: LogFolder) -> None:
    rewritten(checkpointed(folder), add=pa.array(["x", "y", "z"]))
    assert folder.files() == [], "a column that is not what the protocol says holds no file actions"


def test_a_checkpoint_whose_fields_have_other_types(folder: LogFolder) -> None:
    wrong = pa.array(
        [None, None, {"path": "x", "size": "ten"}], pa.struct([("path", pa.string()), ("size", pa.string())])
    )
    rewritten(checkpointed(folder), add=wrong)
    with pytest.raises(CorruptTableError, match="wrong type"):
        folder.files()


def test_a_checkpoint_with_narrower_integers_is_read(folder: LogFolder) -> None:
    narrow = pa.array(
        [None, None, {"path": "x", "size": 5}], pa.struct([("path", pa.large_string()), ("size", pa.int16())])
    )
    rewritten(checkpointed(folder), add=narrow)
    assert folder.files() == ["x"]


def test_a_checkpoint_with_an_add_without_a_path(folder: LogFolder) -> None:
    folder.create()
    folder.checkpoint(0, *STATE, {"add": {"size": 5}})
    with pytest.raises(CorruptTableError, match="without a path"):
        folder.files()


def test_a_checkpoint_without_metadata(folder: LogFolder) -> None:
    folder.create(add("a")).checkpoint(0, protocol(), add("a"))
    with pytest.raises(CorruptTableError, match="no metaData action"):
        folder.files()


def test_a_log_without_protocol(folder: LogFolder) -> None:
    folder.commit(0, metadata(), add("a"))
    with pytest.raises(CorruptTableError, match="no protocol action"):
        folder.files()


@pytest.mark.parametrize(
    "path",
    ["../../secret.parquet", "/etc/passwd", "s3://other/x.parquet", "a/b.parquet", "s/b.parquet", "..", ""],
)
def test_sidecars_elsewhere_are_refused(folder: LogFolder, path: str) -> None:
    folder.create(features=["v2Checkpoint"])
    top = [{"checkpointMetadata": {"version": 0}}, protocol("v2Checkpoint"), metadata()]
    top.append({"sidecar": {"path": path, "sizeInBytes": 10, "modificationTime": 1}})
    folder.checkpoint(0, *top, name=f"checkpoint.{UUID}.parquet")
    with pytest.raises((PathRefusedError, CorruptTableError), match="sidecar"):
        folder.files()


def test_a_missing_sidecar_is_named(folder: LogFolder) -> None:
    folder.create(features=["v2Checkpoint"])
    missing = {"sidecar": {"path": "gone.parquet", "sizeInBytes": 10, "modificationTime": 1}}
    top = [{"checkpointMetadata": {"version": 0}}, protocol("v2Checkpoint"), metadata(), missing]
    folder.checkpoint(0, *top, name=f"checkpoint.{UUID}.parquet")
    with pytest.raises(FileMissingError, match=r"gone\.parquet"):
        folder.files()


def test_a_line_without_an_end_is_refused_before_it_is_held(
    folder: LogFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is what is tested, with small sizes; the file is sparse."""
    monkeypatch.setattr(log_lines, "PIECE", 1 << 16)
    monkeypatch.setattr(log_lines, "MAX_LINE", 1 << 18)
    endless = folder.log / f"{1:020d}.json"
    folder.create()
    with endless.open("wb") as file:
        file.write(b'{"add":{"path":"')
        file.truncate(5 << 30)
    with pytest.raises(CorruptTableError, match="a line of more than"):
        folder.table().snapshot()


def test_an_enormous_hint_is_ignored(folder: LogFolder) -> None:
    folder.create(add("a"))
    with (folder.log / "_last_checkpoint").open("wb") as file:
        file.truncate(3 << 30)
    assert folder.files() == ["a"]


def test_an_enormous_checksum_is_ignored(folder: LogFolder) -> None:
    folder.create(add("a"))
    with (folder.log / f"{0:020d}.crc").open("wb") as file:
        file.truncate(3 << 30)
    assert folder.files() == ["a"]


def test_reads_are_bounded(folder: LogFolder) -> None:
    folder.create()
    with (folder.path / "big").open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(TooLargeError, match="more than"):
        folder.table()._source.storage.read(f"file://{folder.path}/big")


def test_a_version_number_at_the_end_of_the_range(folder: LogFolder) -> None:
    folder.commit(2**63 - 1, *STATE)
    with pytest.raises(DeltaError, match="version 0"):
        folder.table().snapshot()


def test_a_schema_that_is_damaged(folder: LogFolder) -> None:
    folder.commit(0, protocol(), metadata(schema=SCHEMA[:-5]))
    with pytest.raises(CorruptTableError, match="schema"):
        _ = folder.table().snapshot().schema


def test_two_partition_columns_of_one_name(folder: LogFolder) -> None:
    folder.commit(0, protocol(), metadata(["p", "p"]), add("x", partitionValues={"p": "1"}))
    (batch,) = folder.table().snapshot().file_batches()
    assert dict(batch.column("partition_values")[0].as_py()) == {"p": "1"}


def test_text_in_errors_is_bounded(folder: LogFolder) -> None:
    folder.create(remove("x" * 100_000), add("y" * 100_000))
    snapshot = folder.table().snapshot()
    with pytest.raises(PathRefusedError) as told:
        snapshot.resolve("y" * 100_000)
    assert len(str(told.value)) < 1000


COMMIT = lines([add("a", partitionValues={"p": "1"}, stats='{"numRecords":1}'), remove("b"), *STATE]).encode()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_bytes_in_a_commit(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(COMMIT)
    for _ in range(data.draw(st.integers(1, 8))):
        where = data.draw(st.integers(0, len(content) - 1))
        content[where : where + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    folder = (
        LogFolder(tmp_path_factory.mktemp("fuzz") / "table")
        .create(add("a"))
        .raw(f"{1:020d}.json", bytes(content))
    )
    _read_or_refuse(folder)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=300),
    name=st.sampled_from([f"{1:020d}.json", "_last_checkpoint", f"{0:020d}.crc"]),
)
def test_any_bytes_in_the_log(tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str) -> None:
    folder = LogFolder(tmp_path_factory.mktemp("fuzz") / "table").create(add("a")).raw(name, content)
    _read_or_refuse(folder)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_bytes_in_a_checkpoint(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = LogFolder(tmp_path_factory.mktemp("fuzz") / "table")
    file = folder.checkpoint(0, *STATE, *(add(f"f{number}") for number in range(20)))
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(content))
    _read_or_refuse(folder)


def _read_or_refuse(folder: LogFolder) -> None:
    try:
        snapshot = folder.table().snapshot()
        list(snapshot.file_batches(stats="json", tags=True))
        list(snapshot.file_batches(stats=pa.schema([("numRecords", pa.int64())])))
        _ = snapshot.domain_metadata, snapshot.transactions, snapshot.timestamp_ms
    except DeltaError:
        pass
