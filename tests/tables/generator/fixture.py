"""How a fixture table is written: by Spark, in a neutral temporary folder, with the rows Spark reads back beside it.

A definition is a function that gets a `Fixture` and runs SQL on it. What follows is the same for every table: commit
files get the modification time that their commit states, Spark reads the latest and one earlier version (and the
changes, the row ids), and everything is copied into `tests/tables/<name>`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

PLACEHOLDER = "file:///LAKEPASS_FIXTURE"
"""Stands in committed logs for the folder that holds a table; `tests.tables.fixtures` puts the real one in."""


@dataclass
class Fixture:
    """A table being written; `sql` knows it as `{t}`."""

    spark: SparkSession
    name: str
    home: Path
    notes: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """Where the table lies while it is written."""
        return self.home / "delta"

    @property
    def log(self) -> Path:
        return self.path / "_delta_log"

    def sql(self, text: str, **names: object) -> DataFrame:
        """Run a statement, with `{t}` for the table."""
        return self.spark.sql(text.format(t=f"delta.`{self.path}`", **names))

    def append(self, rows: DataFrame, files: int = 1, **options: str) -> None:
        """Append rows as that many files."""
        rows.repartition(files).write.format("delta").mode("append").options(**options).save(str(self.path))

    def read(self, version: int | None = None) -> DataFrame:
        """The table by Spark, at a version."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(str(self.path))

    def latest(self) -> int:
        """The newest version in the log."""
        return int(self.sql("DESCRIBE HISTORY {t} LIMIT 1").collect()[0]["version"])

    def forget(self) -> None:
        """Drop what Spark remembers of the log, after files were changed under it."""
        jvm: Any = self.spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def checkpoint(self) -> None:
        """Write a checkpoint at the latest version."""
        self.forget()
        jvm: Any = self.spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
            self.spark._jsparkSession, str(self.path)
        ).checkpoint()

    def commit(self, version: int) -> list[dict[str, Any]]:
        """The actions of a commit."""
        text = (self.log / f"{version:020}.json").read_text()
        return [json.loads(line) for line in text.splitlines() if line]

    def rewrite_commit(self, version: int, actions: list[dict[str, Any]]) -> None:
        """Put other actions in the place of a commit's, where Spark cannot be made to write them."""
        text = "".join(
            json.dumps(action, separators=(",", ":"), ensure_ascii=False) + "\n" for action in actions
        )
        (self.log / f"{version:020}.json").write_text(text)
        # The checksum holds a copy of the files' actions, which would now contradict the commit.
        for checksum in self.log.glob("*.crc"):
            checksum.unlink()
        self.forget()

    @contextmanager
    def conf(self, settings: Mapping[str, str]) -> Iterator[None]:
        """Session settings for the time of a block."""
        for key, value in settings.items():
            self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key in settings:
                self.spark.conf.unset(key)


@dataclass(frozen=True)
class Definition:
    """What to write, and what to have Spark read back."""

    name: str
    write: Callable[[Fixture], None]
    about: str
    earlier: int | None
    changes: tuple[int, int] | None
    row_tracking: bool


DEFINITIONS: dict[str, Definition] = {}


def define(
    *, earlier: int | None, changes: tuple[int, int] | None = None, row_tracking: bool = False
) -> Callable[[Callable[[Fixture], None]], Callable[[Fixture], None]]:
    """Register a definition under its function's name; its docstring says what is in the table."""

    def register(write: Callable[[Fixture], None]) -> Callable[[Fixture], None]:
        name = write.__name__
        about = " ".join((write.__doc__ or "").split())
        DEFINITIONS[name] = Definition(name, write, about, earlier, changes, row_tracking)
        return write

    return register


def build(spark: SparkSession, definition: Definition, scratch: Path, target: Path) -> None:
    """Write one table and its expectations, and put them in the place of the committed ones."""
    home = scratch / definition.name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    fixture = Fixture(spark, definition.name, home)
    definition.write(fixture)
    stamp_commits(fixture.log)
    fixture.forget()
    expected: dict[str, Any] = {"name": definition.name, "about": definition.about, "notes": fixture.notes}
    latest = fixture.latest()
    versions = {"latest": latest}
    current = fixture.read()
    write_rows(current, home / "expected/latest")
    if definition.earlier is not None:
        versions["earlier"] = definition.earlier
        write_rows(fixture.read(definition.earlier), home / f"expected/v{definition.earlier}")
    expected["versions"] = versions
    expected["schema"] = json.loads(current.schema.json())
    expected["partition_columns"] = fixture.sql("DESCRIBE DETAIL {t}").collect()[0]["partitionColumns"]
    expected["json_columns"] = [
        column.name for column in current.schema.fields if contains(column.dataType, T.VariantType)
    ]
    expected["void_columns"] = [
        column.name for column in current.schema.fields if contains(column.dataType, T.NullType)
    ]
    if definition.changes is not None:
        start, end = definition.changes
        expected["changes"] = {"starting_version": start, "ending_version": end}
        changes = spark.read.format("delta").option("readChangeFeed", "true")
        changes = changes.option("startingVersion", start).option("endingVersion", end)
        write_rows(changes.load(str(fixture.path)), home / "expected/changes")
    if definition.row_tracking:
        tracked = current.select(
            "*",
            F.col("_metadata.row_id").alias("_row_id"),
            F.col("_metadata.row_commit_version").alias("_row_commit_version"),
        )
        write_rows(tracked, home / "expected/row_tracking")
    expected["rows"] = {
        folder.name: sum(count_rows(file) for file in folder.glob("*.parquet"))
        for folder in sorted((home / "expected").iterdir())
    }
    (home / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
    publish(home, target / definition.name)


def stamp_commits(log: Path) -> None:
    """Give each commit file the modification time its commit states: Delta takes a version's time from there."""
    for file in log.glob("*.json"):
        if not file.stem.isdigit():
            continue
        for line in file.read_text().splitlines():
            info = json.loads(line).get("commitInfo") if line else None
            if info:
                os.utime(file, ns=(info["timestamp"] * 1_000_000,) * 2)


def write_rows(rows: DataFrame, folder: Path) -> None:
    """Spark's rows as one parquet file: variants as JSON text, void columns left out."""
    columns = []
    for column in rows.schema.fields:
        quoted = F.col(f"`{column.name}`")
        if contains(column.dataType, T.NullType):
            continue
        if isinstance(column.dataType, T.VariantType):
            quoted = F.to_json(quoted).alias(column.name)
        elif contains(column.dataType, T.VariantType):
            quoted = F.to_json(F.struct(quoted.alias("value"))).alias(column.name)
        columns.append(quoted)
    # Data files keep Spark's default, INT96; expectations are in a type that every reader takes without rounding.
    spark = rows.sparkSession
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    rows.select(*columns).coalesce(1).write.mode("overwrite").option("compression", "zstd").parquet(
        str(folder)
    )
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    for file in folder.iterdir():
        if file.suffix == ".parquet" and not file.name.startswith("."):
            file.rename(folder / "rows.parquet")
        else:
            file.unlink()


def contains(data_type: T.DataType, wanted: type[T.DataType]) -> bool:
    """Whether a type is, or holds, the wanted one."""
    if isinstance(data_type, wanted):
        return True
    if isinstance(data_type, T.StructType):
        return any(contains(child.dataType, wanted) for child in data_type.fields)
    if isinstance(data_type, T.ArrayType):
        return contains(data_type.elementType, wanted)
    if isinstance(data_type, T.MapType):
        return contains(data_type.keyType, wanted) or contains(data_type.valueType, wanted)
    return False


def count_rows(file: Path) -> int:
    """Rows in a parquet file, from its footer."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(file).num_rows)


def publish(home: Path, target: Path) -> None:
    """Copy a finished table, without Hadoop's checksum files and with no path of this machine in its log."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(
        home, target, ignore=lambda _, names: [n for n in names if n.startswith(".") and n.endswith(".crc")]
    )
    for file in [*target.rglob("_delta_log/*.json"), *target.rglob("_delta_log/*.crc")]:
        text = file.read_text()
        portable = text.replace(f"file://{home}", PLACEHOLDER).replace(f"file:{home}", PLACEHOLDER)
        file.write_text(portable.replace(str(home), PLACEHOLDER))
