"""The public delta-sharing client reads every kind of table from the broker, with the right rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import delta_sharing  # type: ignore[import-untyped]  # it has no types
import pandas as pd
import pytest

from tests.broker.lake import Lake
from tests.tables.fixtures import fixture


@pytest.fixture(scope="module")
def profile(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "reader.share"
    path.write_text(json.dumps(dict(lake.profile)))
    return path


def _same_ids(got: pd.DataFrame, expected: Any) -> None:
    """The rows are the expected ones, told by their first column and their number of columns."""
    wanted: pd.DataFrame = expected.to_pandas()
    key = wanted.columns[0]
    assert sorted(got[key].tolist()) == sorted(wanted[key].tolist())
    assert list(got.columns) == list(wanted.columns)


def test_lists(lake: Lake, profile: Path) -> None:
    client = delta_sharing.SharingClient(str(profile))
    assert [share.name for share in client.list_shares()] == ["late", "nohistory", "share"]
    names = {table.name for table in client.list_all_tables()}
    assert {"plain", "deletion_vectors", "change_feed"} <= names


@pytest.mark.parametrize(
    "table",
    ["plain", "checkpoint_classic", "deletion_vectors", "mapping_deletion_vectors"],
)
def test_rows(profile: Path, table: str) -> None:
    _same_ids(delta_sharing.load_as_pandas(f"{profile}#share.tables.{table}"), fixture(table).rows())


@pytest.mark.parametrize(
    "table",
    [
        "partitioned",
        "schema_evolution",
        "deletion_vectors_inline",
        "deletion_vectors_partitioned",
        "mapping_name",
        "mapping_id",
    ],
)
def test_row_counts(profile: Path, table: str) -> None:
    got = delta_sharing.load_as_pandas(f"{profile}#share.tables.{table}")
    assert len(got) == fixture(table).rows().num_rows


def test_a_plain_table_in_delta_format(profile: Path) -> None:
    got = delta_sharing.load_as_pandas(f"{profile}#share.tables.plain", use_delta_format=True)
    _same_ids(got, fixture("plain").rows())


@pytest.mark.parametrize("table", ["plain", "deletion_vectors"])
def test_a_limit(profile: Path, table: str) -> None:
    assert len(delta_sharing.load_as_pandas(f"{profile}#share.tables.{table}", limit=7)) == 7


@pytest.mark.parametrize("table", ["plain", "deletion_vectors"])
def test_time_travel(profile: Path, table: str) -> None:
    earlier = fixture(table).earlier
    assert earlier is not None
    got = delta_sharing.load_as_pandas(f"{profile}#share.tables.{table}", version=earlier)
    _same_ids(got, fixture(table).rows(earlier))


def test_schema_and_version(profile: Path) -> None:
    url = f"{profile}#share.tables.plain"
    assert delta_sharing.get_table_version(url) == fixture("plain").latest
    assert delta_sharing.get_table_protocol(url).min_reader_version == 1
    assert "id" in delta_sharing.get_table_metadata(url).schema_string


def test_changes(profile: Path) -> None:
    expected = fixture("change_feed").changes().to_pandas()
    got = delta_sharing.load_table_changes_as_pandas(
        f"{profile}#share.tables.change_feed", starting_version=0
    )
    assert len(got) == len(expected)
    for column in ("_change_type", "_commit_version"):
        assert got[column].value_counts().to_dict() == expected[column].value_counts().to_dict()
    assert sorted(got["id"].tolist()) == sorted(expected["id"].tolist())


# The client's kernel reads no feed with in-commit timestamps, nor one in which the schema changes.
@pytest.mark.parametrize(
    ("table", "start", "end"), [("change_feed_deletion_vectors", 2, 6), ("change_feed", 0, 6)]
)
def test_changes_in_delta_format(profile: Path, table: str, start: int, end: int) -> None:
    expected = fixture(table).changes().to_pandas()
    expected = expected[expected["_commit_version"].between(start, end)]
    got = delta_sharing.load_table_changes_as_pandas(
        f"{profile}#share.tables.{table}", starting_version=start, ending_version=end, use_delta_format=True
    )
    assert len(got) == len(expected) > 0
    assert got["_change_type"].value_counts().to_dict() == expected["_change_type"].value_counts().to_dict()
