"""Every fixture table, three ways: Delta's own reader, the data source, the rows Spark wrote down."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakepass.spark_conf import register
from lakepass.spark_conf.source import bare
from tests.spark_conf.comparing import sorted_rows
from tests.tables.fixtures import fixture, names, place

WITH_CHANGES = [name for name in names() if "changes" in fixture(name).expected]
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


@pytest.mark.parametrize("name", names())
def test_rows_and_types_equal_those_of_delta_itself(source: SparkSession, name: str, tmp_path: Path) -> None:
    table = place(name, tmp_path)
    if table.auxiliary is not None:
        pytest.skip("files outside the directory need a share that declares them: see test_shared_tables")
    native = source.read.format("lakepass").load(str(table.path))
    assert native.schema == bare(StructType.fromJson(table.expected["schema"]))
    assert sorted_rows(native) == sorted_rows(table.rows())
    if table.earlier is not None:
        earlier = source.read.format("lakepass").option("versionAsOf", table.earlier).load(str(table.path))
        assert sorted_rows(earlier) == sorted_rows(table.rows(table.earlier))


@pytest.mark.parametrize("name", WITH_CHANGES)
def test_changes_equal_those_of_delta_itself(source: SparkSession, name: str, tmp_path: Path) -> None:
    table = place(name, tmp_path)
    window = table.expected["changes"]
    native = (
        source.read.format("lakepass")
        .option("readChangeFeed", "true")
        .option("startingVersion", window["starting_version"])
        .option("endingVersion", window["ending_version"])
        .load(str(table.path))
    )
    assert sorted_rows(native) == sorted_rows(table.changes())


def test_the_schema_stays_that_of_the_rows(source: SparkSession, tmp_path: Path) -> None:
    """A DataFrame is of the version it was loaded at, whatever is committed before it is read."""
    table = place("schema_evolution", tmp_path)
    log = table.path / "_delta_log"
    files = [file for file in log.iterdir() if file.is_file()]
    newer = {
        file: file.read_bytes() for file in files if not file.name.startswith(("0" * 20, "0" * 19 + "1"))
    }
    for file in newer:
        file.unlink()
    frame = source.read.format("lakepass").load(str(table.path))
    for file, content in newer.items():
        file.write_bytes(content)
    assert frame.columns == ["id", "s"]
    assert sorted_rows(frame) == sorted_rows(table.rows(1))
