"""Tables in local directories: the data source beside Delta itself, on public tables and one that grows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakepass.reader.errors import DeltaError
from lakepass.reader.table import Table
from lakepass.spark_conf import register
from tests.spark_conf.comparing import sorted_rows
from tests.tables.fixtures import place

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


@pytest.mark.slow
def test_public_tables_equal_delta_itself(source: SparkSession, shared_tables: Path) -> None:
    compared = []
    for table in sorted(folder / "delta" for folder in shared_tables.iterdir() if folder.is_dir()):
        try:
            expected = sorted_rows(source.read.format("delta").load(str(table)))
        except Exception:
            # What Delta's reader refuses, the native reader refuses or knows better; its own tests say which.
            continue
        frame = source.read.format("lakepass").load(str(table))
        assert sorted_rows(frame) == expected, table.parent.name
        compared.append(table.parent.name)
    assert len(compared) > 30


def test_a_table_that_cannot_be_read_is_told_in_words(source: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DeltaError) as native:
        Table(tmp_path).snapshot()
    with pytest.raises(Exception, match="is not a Delta table") as told:
        source.read.format("lakepass").load(str(tmp_path))
    assert str(native.value)[:60] in str(told.value)


def test_the_schema_stays_that_of_the_rows(source: SparkSession, tmp_path: Path) -> None:
    """A DataFrame is of the version it was loaded at, whatever is committed before it is read."""
    table = place("schema_evolution", tmp_path)
    files = [file for file in (table.path / "_delta_log").iterdir() if file.is_file()]
    older = ("0" * 20, "0" * 19 + "1")
    newer = {file: file.read_bytes() for file in files if not file.name.startswith(older)}
    for file in newer:
        file.unlink()
    frame = source.read.format("lakepass").load(str(table.path))
    for file, content in newer.items():
        file.write_bytes(content)
    assert frame.columns == ["id", "s"]
    assert sorted_rows(frame) == sorted_rows(table.rows(1))
