"""The fixture tables are what they say: their logs name the features, and expectations lie beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tables.fixtures import Fixture, fixture, names, place

READER_FEATURES = {
    "deletion_vectors": "deletionVectors",
    "deletion_vectors_partitioned": "deletionVectors",
    "deletion_vectors_inline": "deletionVectors",
    "mapping_deletion_vectors": "columnMapping",
    "checkpoint_v2_parquet": "v2Checkpoint",
    "checkpoint_v2_json": "v2Checkpoint",
    "type_widening": "typeWidening",
    "timestamp_ntz": "timestampNtz",
    "variant": "variantType",
    "variant_shredded": "variantShredding",
    "everything": "v2Checkpoint",
}


def actions(table: Fixture) -> list[dict[str, Any]]:
    files = sorted(file for file in (table.path / "_delta_log").glob("*.json") if file.stem.isdigit())
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", names())
def test_expectations_are_beside_each_table(name: str) -> None:
    table = fixture(name)
    columns = [field["name"] for field in table.expected["schema"]["fields"]]
    stated = [column for column in columns if column not in table.expected["void_columns"]]
    assert table.rows().column_names == stated
    assert table.rows().num_rows == table.expected["rows"]["latest"]
    if table.earlier is not None:
        assert table.rows(table.earlier).num_rows == table.expected["rows"][f"v{table.earlier}"]
    if "changes" in table.expected:
        assert "_change_type" in table.changes().column_names


@pytest.mark.parametrize(("name", "feature"), READER_FEATURES.items())
def test_a_table_has_the_feature_it_is_for(name: str, feature: str) -> None:
    protocols = [action["protocol"] for action in actions(fixture(name)) if "protocol" in action]
    features = protocols[-1].get("readerFeatures", [])
    assert feature in features or f"{feature}-preview" in features


def test_inline_vectors_are_inline() -> None:
    kinds = {
        action["add"]["deletionVector"]["storageType"]
        for action in actions(fixture("deletion_vectors_inline"))
        if "deletionVector" in action.get("add", {})
    }
    assert kinds == {"i"}


def test_absolute_paths_lead_to_the_copy(tmp_path: Path) -> None:
    table = place("auxiliary", tmp_path)
    assert table.auxiliary is not None
    prefix = table.auxiliary.as_uri()
    absolute = [
        action["add"]["path"]
        for action in actions(table)
        if action.get("add", {}).get("path", "").startswith("file:")
    ]
    assert len(absolute) == 6
    assert all(path.startswith(prefix) for path in absolute)


def test_a_copy_has_the_times_its_commits_state(tmp_path: Path) -> None:
    table = place("plain", tmp_path)
    for version in range(table.latest + 1):
        file = table.path / "_delta_log" / f"{version:020}.json"
        stated = next(
            json.loads(line)["commitInfo"]["timestamp"]
            for line in file.read_text().splitlines()
            if "commitInfo" in line
        )
        assert file.stat().st_mtime_ns // 1_000_000 == stated
