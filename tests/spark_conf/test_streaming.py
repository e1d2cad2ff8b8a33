"""Streams of a table: everything once, in pieces, across restarts, and a clear stop where it cannot go on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from lakepass.spark_conf import register
from lakepass.spark_conf.errors import SparkReadError
from lakepass.spark_conf.options import Options
from lakepass.spark_conf.source import LakepassDataSource
from lakepass.spark_conf.streaming import StreamReader
from tests.spark_conf.comparing import sorted_rows
from tests.tables.fixtures import Fixture, place

pytestmark = pytest.mark.spark


class Stream:
    """A stream from a table into parquet files, and its checkpoint."""

    def __init__(self, spark: SparkSession, table: Path, folder: Path, **options: Any) -> None:
        self.spark = spark
        self.table = table
        self.folder = folder
        self.options = {name: str(value) for name, value in options.items()}

    def run(self) -> list[int]:
        """Read what is there; gives the number of rows of each batch."""
        frame = self.spark.readStream.format("lakepass").options(**self.options).load(str(self.table))
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .option("path", str(self.folder / "out"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    def rows(self) -> list[str]:
        return sorted_rows(self.spark.read.parquet(str(self.folder / "out")))


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


@pytest.fixture
def growing(tmp_path: Path) -> Fixture:
    """A table of six commits of ten rows each, then a delete."""
    return place("checkpoint_multipart", tmp_path)


def hold_back(table: Fixture, after: int) -> list[tuple[Path, Path]]:
    """Take away what came after a version; gives where to put it back."""
    log = table.path / "_delta_log"
    kept = {f"{version:020}" for version in range(after + 1)}
    moved = []
    (table.home / "held").mkdir()
    for file in list(log.iterdir()):
        if file.is_file() and file.name[:20] not in kept:
            target = table.home / "held" / file.name
            shutil.move(file, target)
            moved.append((target, file))
    return moved


def test_a_stream_reads_each_file_once_across_restarts(
    source: SparkSession, growing: Fixture, tmp_path: Path
) -> None:
    held = hold_back(growing, 3)
    stream = Stream(source, growing.path, tmp_path / "sink")
    stream.run()
    assert len(stream.rows()) == 30
    for place_now, place_before in held:
        if place_before.name.startswith(("0" * 19 + "4", "0" * 19 + "5")):
            shutil.move(place_now, place_before)
    stream.run()
    assert len(stream.rows()) == 50
    stream.run()
    rows = stream.rows()
    assert len(rows) == len(set(rows)) == 50


def test_a_limit_of_files_makes_more_batches(source: SparkSession, growing: Fixture, tmp_path: Path) -> None:
    hold_back(growing, 5)
    stream = Stream(source, growing.path, tmp_path / "sink", maxFilesPerTrigger=2)
    assert stream.run() == [20, 20, 10]
    assert len(set(stream.rows())) == 50


def test_a_stream_from_a_version(source: SparkSession, growing: Fixture, tmp_path: Path) -> None:
    hold_back(growing, 5)
    stream = Stream(source, growing.path, tmp_path / "sink", startingVersion=4)
    stream.run()
    assert len(stream.rows()) == 20


def test_a_delete_stops_a_stream_unless_it_is_passed_over(
    source: SparkSession, growing: Fixture, tmp_path: Path
) -> None:
    with pytest.raises(StreamingQueryException, match=r"Version 7 .* skipChangeCommits=true"):
        Stream(source, growing.path, tmp_path / "stops", startingVersion=1).run()
    stream = Stream(source, growing.path, tmp_path / "goes", startingVersion=1, skipChangeCommits=True)
    stream.run()
    assert len(stream.rows()) == 60


def test_rows_of_an_older_schema_are_read_as_the_new_one(source: SparkSession, tmp_path: Path) -> None:
    table = place("schema_evolution", tmp_path)
    hold_back(table, 3)
    stream = Stream(source, table.path, tmp_path / "sink", startingVersion=0)
    stream.run()
    assert stream.rows() == sorted_rows(source.read.format("lakepass").load(str(table.path)))


def test_a_change_of_schema_stops_a_stream(source: SparkSession, tmp_path: Path) -> None:
    table = place("schema_evolution", tmp_path)
    held = hold_back(table, 1)
    options = Options.parse({"path": str(table.path)})
    schema = LakepassDataSource({"path": str(table.path)}).schema()
    reader = StreamReader(options, 1, schema)
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadAllAvailable())
    assert len(reader.partitions(start, first)) == 1
    for place_now, place_before in held:
        shutil.move(place_now, place_before)
    second = reader.latestOffset(first, ReadAllAvailable())
    with pytest.raises(SparkReadError, match=r"changes at version 2\. Restart"):
        reader.partitions(first, second)


def test_a_stream_of_changes(source: SparkSession, tmp_path: Path) -> None:
    table = place("change_feed_deletion_vectors", tmp_path)
    stream = Stream(source, table.path, tmp_path / "sink", readChangeFeed=True, startingVersion=2)
    stream.run()
    window = table.expected["changes"]
    assert window["starting_version"] == 2
    assert stream.rows() == sorted_rows(table.changes())
