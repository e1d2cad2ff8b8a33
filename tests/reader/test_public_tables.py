"""The public tables: each opens with the files it should have, or is refused for what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakepass.reader import Table
from lakepass.reader.errors import CorruptTableError, DeltaError, NotATableError, UnsupportedTableError
from tests.reader.log_folder import live, paths_of
from tests.tables.fixtures import fixture, names, place

RECORDS = pa.schema([("numRecords", pa.int64())])
REFUSED: dict[str, tuple[type[DeltaError], str]] = {
    "deltalog-invalid-protocol-version": (UnsupportedTableError, "version 99"),
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata": (CorruptTableError, "no metaData"),
    "deltalog-state-reconstruction-without-protocol": (CorruptTableError, "no protocol"),
    "no-delta-log-folder": (NotATableError, "not a Delta table"),
    "versions-not-contiguous": (CorruptTableError, "version 1"),
    # Its log has no metaData action at all; what its commits say can still be read one by one, see below.
    "data-reader-absolute-paths-escaped-chars": (CorruptTableError, "no metaData"),
}


def test_every_public_table_opens_or_is_refused(shared_tables: Path) -> None:
    seen = 0
    for home in sorted(each for each in shared_tables.iterdir() if (each / "delta").is_dir()):
        seen += 1
        table = Table(home / "delta")
        if home.name in REFUSED:
            kind, text = REFUSED[home.name]
            with pytest.raises(kind, match=text):
                table.snapshot()
            continue
        snapshot = table.snapshot()
        files = paths_of(snapshot)
        assert len(files) == len(set(files)) or "dv" in home.name, home.name
        expected = sorted((home / "expected").glob("*.parquet"))
        if expected:
            columns = {name for file in expected for name in pq.read_schema(file).names}
            assert set(snapshot.schema.names) == columns, home.name
            rows = sum(pq.read_metadata(file).num_rows for file in expected)
            assert (rows == 0) <= (not files or any((home / "delta").rglob("*.bin"))), home.name
    assert seen > 40


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("canonicalized-paths-normal-a", []),
        ("canonicalized-paths-special-b", []),
        ("delete-re-add-same-file-different-transactions", ["bar", "foo"]),
        ("log-replay-special-characters-a", []),
        ("update-deleted-directory", sorted(str(number) for number in range(1, 11))),
    ],
)
def test_known_files(shared_tables: Path, name: str, files: list[str]) -> None:
    assert live(Table(shared_tables / name / "delta")) == files


def test_a_table_without_metadata_shows_its_commits(shared_tables: Path) -> None:
    log = shared_tables / "data-reader-absolute-paths-escaped-chars" / "delta"
    found = [
        str(path).rsplit("/", 1)[-1]
        for commit in Table(log).commit_actions(0)
        for path in commit.adds.column("path").to_pylist()
    ]
    assert found == ["foo.snappy.parquet", "bar%2Dbar.snappy.parquet"]


@pytest.mark.parametrize("name", names())
def test_fixture_tables_at_every_version(name: str, tmp_path: Path) -> None:
    """Counted from statistics and deletion vectors, the files of each version hold Spark's rows."""
    table = place(name, tmp_path)
    auxiliary = {str(table.auxiliary): None} if table.auxiliary else None
    opened = Table(table.path, auxiliary=auxiliary)
    for version in {table.latest, table.earlier} - {None}:
        snapshot = opened.snapshot(version)
        rows = 0
        for batch in snapshot.file_batches(stats=RECORDS):
            for row in batch.to_pylist():
                rows += row["stats"]["numRecords"]
                rows -= (row["deletion_vector"] or {"cardinality": 0})["cardinality"]
        assert rows == table.rows(version).num_rows
        texts = [
            text
            for batch in snapshot.file_batches(stats="json")
            for text in batch.column("stats").to_pylist()
        ]
        assert rows <= sum(json.loads(str(text))["numRecords"] for text in texts)
    history = opened.history()
    assert history[0].version == fixture(name).latest
    times = [entry.timestamp for entry in history]
    assert times == sorted(times, reverse=True)
    for entry in history[:3]:
        if all(entry.version >= each.version for each in history[-1:]):
            assert opened.version_at(entry.timestamp) == entry.version
