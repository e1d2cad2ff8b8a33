from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from lakepass.reader import Table
from tests.reader.written import Written, field
from tests.tables import fixtures

FOLDER = fixtures.fixture("mapping_deletion_vectors").path


def test_polars_is_lazy_and_reads_what_a_query_names() -> None:
    table = Table(FOLDER)
    rows = table.to_arrow()
    frame = table.polars()
    assert frame.collect_schema().names() == rows.schema.names
    first = rows.schema.names[0]
    assert frame.select(first).collect().to_series().to_list() == rows.column(first).to_pylist()
    assert frame.head(2).collect().height == 2
    assert frame.filter(pl.col(first).is_not_null()).select(pl.len()).collect().item() == sum(
        value is not None for value in rows.column(first).to_pylist()
    )


def test_columns_and_rows_that_a_lazy_query_does_not_name_are_not_read(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long"), field("unfit", "long")])
    for start in (0, 10):
        written.add(pa.table({"id": range(start, start + 10), "unfit": ["no number"] * 10}))
    gone = written.add(pa.table({"id": [20], "unfit": ["x"]}))
    scan = written.table().snapshot().scan()
    gone.unlink()
    frame = scan.to_polars(lazy=True)
    assert isinstance(frame, pl.LazyFrame)
    assert frame.select("id").head(3).collect().get_column("id").to_list() == [0, 1, 2]
    with pytest.raises(Exception, match="stores the column 'unfit'"):
        frame.head(3).collect()


def test_a_predicate_and_a_limit_of_polars_keep_their_order() -> None:
    table = Table(FOLDER)
    first = table.snapshot().schema.names[0]
    values = table.to_arrow([first]).column(first).to_pylist()
    half = sorted(value for value in values if value is not None)[len(values) // 2]
    frame = table.polars().filter(pl.col(first) >= half).head(3).collect()
    assert frame.height == min(3, sum(value is not None and value >= half for value in values))


def test_a_relation_can_be_queried_again() -> None:
    connection = duckdb.connect()
    scan = Table(FOLDER).snapshot().scan()
    for relation in (Table(FOLDER).duckdb(connection), scan.to_duckdb(connection)):
        for _ in range(2):
            assert relation.aggregate("count(*)").fetchall() == [(scan.count(),)]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_our_filter_goes_along(engine: str) -> None:
    table = Table(FOLDER)
    first = table.snapshot().schema.names[0]
    kept = table.snapshot().scan(filter=f"{first} is null").count()
    if engine == "polars":
        assert table.polars(f"{first} is null").collect().height == kept
    else:
        assert len(table.duckdb(filter=f"{first} is null").fetchall()) == kept
