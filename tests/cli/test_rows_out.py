"""Rows in the formats that the command line writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakepass.cli.rows_out import write_rows
from lakepass.reader import Table
from tests.tables import fixtures


def written(name: str, target: Path) -> list[dict[str, Any]]:
    write_rows(Table(fixtures.fixture(name).path).snapshot().scan(), str(target), None)
    if target.suffix == ".csv":
        with target.open(newline="") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in target.read_text().splitlines()]


def test_what_is_not_finite_is_told_from_null(tmp_path: Path) -> None:
    double: pa.ChunkedArray[Any] = Table(fixtures.fixture("plain").path).to_arrow(["double"]).column("double")
    texts = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    expected = [texts.get(str(value), value) for value in double.to_pylist()]
    found = [row["double"] for row in written("plain", tmp_path / "out.jsonl")]
    assert found == expected
    assert {"-Infinity", "NaN"} <= set(found)


@pytest.mark.parametrize("name", ["variant", "variant_shredded"])
def test_variants_are_written_as_what_they_hold(tmp_path: Path, name: str) -> None:
    table = Table(fixtures.fixture(name).path)
    expected = dict(zip(table.to_arrow(["id"]).column("id").to_pylist(), table.to_pandas()["v"], strict=True))
    rows = written(name, tmp_path / "out.jsonl")
    held = {row["id"]: row["v"] for row in rows}
    assert held.keys() == expected.keys()
    assert held[1] == json.loads(json.dumps(expected[1], default=str))
    texts = {int(row["id"]): row["v"] for row in written(name, tmp_path / "out.csv")}
    assert json.loads(texts[1]) == held[1]


def test_maps_with_text_keys_are_objects_and_others_pairs(tmp_path: Path) -> None:
    table = Table(fixtures.fixture("nested").path).to_arrow()
    rows = written("nested", tmp_path / "out.jsonl")
    for name in table.schema.names:
        kind: Any = table.schema.field(name).type
        if pa.types.is_map(kind):
            container = dict if pa.types.is_string(kind.key_type) else list
            assert all(isinstance(row[name], container) for row in rows if row[name] is not None)
            lengths = [None if one is None else len(one) for one in table.column(name).to_pylist()]
            assert [None if row[name] is None else len(row[name]) for row in rows] == lengths
