"""The public delta-sharing client reads every kind of table from the broker, with the right rows."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import delta_sharing  # type: ignore[import-untyped]  # it has no types
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.broker.lake import Lake
from tests.tables.fixtures import fixture


@pytest.fixture(scope="module")
def profile(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "reader.share"
    path.write_text(json.dumps(dict(lake.profile)))
    return path


def _same_rows(got: pd.DataFrame, expected: pa.Table, *, blank: bool = False) -> None:
    """The rows are the expected ones, each value of each, in whatever order."""
    assert list(got.columns) == expected.column_names
    assert _counted(got, expected, blank) == _counted(expected.to_pandas(), expected, blank)


def _counted(frame: pd.DataFrame, expected: pa.Table, blank: bool) -> Counter[tuple[Any, ...]]:
    columns = [[_value(value, blank) for value in frame[name]] for name in frame.columns]
    # The client holds times in 64 bits of nanoseconds: years 1677 to 2262. Beyond them it has another time.
    key = expected.column_names[0]
    for at, name in enumerate(expected.column_names):
        if pa.types.is_timestamp(expected.schema.field(name).type):
            pairs = zip(expected.column(key).to_pylist(), expected.column(name).to_pylist(), strict=True)
            beyond = {row for row, time in pairs if time is not None and not 1677 < time.year < 2262}
            rows = zip(frame[key], columns[at], strict=True)
            columns[at] = ["beyond" if row in beyond else value for row, value in rows]
    return Counter(zip(*columns, strict=True))


def _value(value: Any, blank: bool) -> Any:
    """A value as both sides write it: pandas has one null for all, and times with and without a zone."""
    if isinstance(value, np.ndarray | list | tuple):
        return tuple(_value(each, blank) for each in value)
    if isinstance(value, dict):
        return tuple(sorted((key, _value(each, blank)) for key, each in value.items()))
    if value is None or value is pd.NaT or value is pd.NA or value != value:
        return None
    if blank and value in ("", b""):
        return None
    if isinstance(value, pd.Timestamp | datetime):
        stamp = pd.Timestamp(value)
        return (stamp if stamp.tzinfo is None else stamp.tz_convert("UTC").tz_localize(None)).isoformat()
    if isinstance(value, np.generic):
        return value.item()
    return value


def test_lists(lake: Lake, profile: Path) -> None:
    client = delta_sharing.SharingClient(str(profile))
    assert [share.name for share in client.list_shares()] == ["late", "nohistory", "share"]
    names = {table.name for table in client.list_all_tables()}
    assert {"plain", "deletion_vectors", "change_feed"} <= names


TABLES = (
    "plain",
    "checkpoint_classic",
    "partitioned",
    "schema_evolution",
    "deletion_vectors",
    "deletion_vectors_inline",
    "deletion_vectors_partitioned",
    "mapping_name",
    "mapping_id",
    "mapping_deletion_vectors",
)


@pytest.mark.parametrize("table", TABLES)
def test_rows(profile: Path, table: str) -> None:
    got = delta_sharing.load_as_pandas(f"{profile}#share.tables.{table}")
    expected = fixture(table).rows()
    if table == "schema_evolution":
        # In parquet format the client gives a struct the fields that it has in the file.
        got, expected = got.drop(columns="s"), expected.drop_columns("s")
    # The files of this one hold their partition's values, too: the client takes empty texts from them.
    _same_rows(got, expected, blank=table == "partitioned")


@pytest.mark.parametrize("table", TABLES)
def test_rows_in_delta_format(profile: Path, table: str) -> None:
    got = delta_sharing.load_as_pandas(f"{profile}#share.tables.{table}", use_delta_format=True)
    _same_rows(got, fixture(table).rows())


@pytest.mark.parametrize("table", ["plain", "deletion_vectors", "mapping_deletion_vectors"])
def test_a_limit(profile: Path, table: str) -> None:
    got = delta_sharing.load_as_pandas(f"{profile}#share.tables.{table}", limit=7)
    expected = fixture(table).rows()
    assert len(got) == 7
    given = _counted(got, expected, blank=False)
    assert given <= _counted(expected.to_pandas(), expected, blank=False)


@pytest.mark.parametrize("table", [name for name in TABLES if fixture(name).earlier is not None])
@pytest.mark.parametrize("delta", [None, True])
def test_time_travel(profile: Path, table: str, delta: bool | None) -> None:
    url, earlier = f"{profile}#share.tables.{table}", fixture(table).earlier
    if table == "schema_evolution" and not delta:
        return  # as above
    expected = fixture(table).rows(earlier)
    got = delta_sharing.load_as_pandas(url, version=earlier, use_delta_format=delta)
    _same_rows(got, expected, blank=table == "partitioned")


def test_schema_and_version(profile: Path) -> None:
    url = f"{profile}#share.tables.plain"
    assert delta_sharing.get_table_version(url) == fixture("plain").latest
    assert delta_sharing.get_table_protocol(url).min_reader_version == 1
    logged = json.loads(delta_sharing.get_table_metadata(url).schema_string)
    assert [field["name"] for field in logged["fields"]] == fixture("plain").rows().column_names


def test_changes(profile: Path) -> None:
    got = delta_sharing.load_table_changes_as_pandas(
        f"{profile}#share.tables.change_feed", starting_version=0
    )
    _same_changes(got, fixture("change_feed").changes())


# The client's kernel reads no feed with in-commit timestamps, nor one in which the schema changes.
@pytest.mark.parametrize(
    ("table", "start", "end"), [("change_feed_deletion_vectors", 2, 6), ("change_feed", 0, 6)]
)
def test_changes_in_delta_format(profile: Path, table: str, start: int, end: int) -> None:
    expected = fixture(table).changes()
    versions = pc.field("_commit_version")
    expected = expected.filter((versions >= start) & (versions <= end))
    got = delta_sharing.load_table_changes_as_pandas(
        f"{profile}#share.tables.{table}", starting_version=start, ending_version=end, use_delta_format=True
    )
    _same_changes(got, expected)


def _same_changes(got: pd.DataFrame, expected: pa.Table) -> None:
    """Commit times are those of the files in the store, which were put there for the test."""
    assert set(got.columns) == set(expected.column_names)
    expected = expected.drop_columns("_commit_timestamp")
    assert expected.num_rows > 0
    _same_rows(got[expected.column_names], expected)
