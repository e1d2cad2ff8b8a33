"""Every table with known contents gives exactly them: the public ones, and the fixtures that Spark wrote."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakepass.reader.table import Table
from tests.reader.rows import as_spark_json, from_variants, loaded, multiset
from tests.tables import fixtures

PUBLIC = Path(__file__).resolve().parents[2].parent / "shared" / "tables"


def _public_names() -> list[str]:
    return sorted(each.parent.name for each in PUBLIC.glob("*/expected"))


def _expected(folder: Path) -> pa.Table:
    files = sorted(folder.rglob("*.parquet"))
    return pa.concat_tables([pq.ParquetFile(each).read() for each in files], promote_options="permissive")


@pytest.mark.parametrize("name", _public_names() or [pytest.param("none", marks=pytest.mark.skip)])
def test_a_public_table_has_its_expected_rows(name: str, shared_tables: Path) -> None:
    expected = _expected(shared_tables / name / "expected")
    scan = Table(shared_tables / name / "delta").snapshot().scan()
    rows = scan.to_arrow()
    assert sorted(rows.schema.names) == sorted(expected.schema.names)
    assert multiset(rows) == multiset(expected)
    assert scan.count() == expected.num_rows


@pytest.fixture(params=fixtures.names())
def fixture(request: pytest.FixtureRequest, tmp_path: Path) -> fixtures.Fixture:
    return fixtures.place(request.param, tmp_path)


def _table(fixture: fixtures.Fixture) -> Table:
    auxiliary: dict[Any, None] = {str(fixture.auxiliary): None} if fixture.auxiliary else {}
    return Table(fixture.path, auxiliary=auxiliary)


def _same(rows: pa.Table, expected: pa.Table, fixture: fixtures.Fixture) -> None:
    variants = set(fixture.expected["json_columns"])
    assert sorted(rows.schema.names) == sorted(expected.schema.names)
    plain = [name for name in expected.schema.names if name not in variants]
    assert multiset(rows, plain) == multiset(expected, plain)
    if not variants:
        return
    key = plain[0]
    ours = {row[key]: row for row in rows.to_pylist()}
    for row in expected.to_pylist():
        for name in variants:
            value = as_spark_json(from_variants(ours[row[key]][name]))
            wanted = loaded(row[name])
            if isinstance(wanted, dict) and set(wanted) == {"value"}:
                value = {"value": value}
            assert _alike(value, wanted), (name, value, wanted)


def _alike(value: Any, wanted: Any) -> bool:
    """Spark's JSON leaves out what is null at the top of a struct, and shortens single-precision numbers."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        kept = {key: each for key, each in value.items() if each is not None or key in wanted}
        return kept.keys() == wanted.keys() and all(_alike(kept[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list) and isinstance(value, list):
        return len(value) == len(wanted) and all(map(_alike, value, wanted))
    if isinstance(wanted, float) and isinstance(value, float):
        return math.isclose(value, wanted, rel_tol=1e-7)
    return bool(value == wanted) or (value is None and wanted == {})


def test_a_fixture_has_the_rows_that_spark_reads(fixture: fixtures.Fixture) -> None:
    snapshot = _table(fixture).snapshot()
    scan = snapshot.scan()
    assert scan.schema.equals(snapshot.schema, check_metadata=True)
    expected = fixture.rows()
    _same(scan.to_arrow(), expected, fixture)
    assert scan.count() == expected.num_rows


def test_a_fixture_has_its_earlier_rows(fixture: fixtures.Fixture) -> None:
    if fixture.earlier is None:
        return
    rows = _table(fixture).snapshot(fixture.earlier).scan().to_arrow()
    _same(rows, fixture.rows(fixture.earlier), fixture)


def test_a_fixture_has_the_changes_that_spark_reads(fixture: fixtures.Fixture) -> None:
    wanted = fixture.expected.get("changes")
    if wanted is None:
        return
    changes = _table(fixture).changes(wanted["starting_version"], wanted["ending_version"])
    expected = fixture.changes()
    _same(changes.to_arrow(), expected, fixture)
    assert changes.count() == expected.num_rows


def test_a_fixture_has_the_row_ids_that_spark_reads(fixture: fixtures.Fixture) -> None:
    if not (fixture.home / "expected" / "row_tracking").exists():
        return
    rows = _table(fixture).snapshot().scan(row_tracking=True).to_arrow()
    names = {"row_id": "_row_id", "row_commit_version": "_row_commit_version"}
    renamed = rows.rename_columns([names.get(name, name) for name in rows.schema.names])
    _same(renamed, fixture.row_tracking(), fixture)


def test_tasks_together_give_the_rows_of_the_scan(fixture: fixtures.Fixture) -> None:
    import pickle

    scan = _table(fixture).snapshot().scan()
    tasks = pickle.loads(pickle.dumps(scan.tasks(target_bytes=500)))
    parts = [task.to_arrow() for task in tasks]
    whole = pa.concat_tables(parts) if parts else scan.schema.empty_table()
    assert multiset(whole) == multiset(scan.to_arrow())
