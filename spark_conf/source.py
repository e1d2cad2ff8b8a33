"""`spark.read.format("lakepass")`: the native reader on the executors, as a Python data source.

The driver opens the table, plans the scan and cuts it into tasks by bytes; each executor reads its tasks
and renews credentials by itself. What travels is a task: files, a projection, and where credentials are
asked for, which for a shared table is the profile's path or address. Neither the profile's token nor a
vended credential is in it.

Spark's filters are not taken (`pushFilters`). Spark keeps one plan for all reads of a DataFrame or a view:
what one query's filter skips would be missing from the next query, and from the other side of a join with
itself. The `filter` option is of the DataFrame as a whole, so what it skips is missing from nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lakepass.reader.table import Table
from lakepass.spark_conf.batches import spark_batches
from lakepass.spark_conf.errors import SparkReadError
from lakepass.spark_conf.options import Options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from lakepass.reader.changes import Changes
    from lakepass.reader.scan import ScanTask

FORMAT = "lakepass"
_SMALL_BYTES = 32 * 1024 * 1024
_SMALL_FILES = 64
_MOST_TOGETHER = 4
_ENOUGH = 32

CHANGE_FIELDS = (
    StructField("_change_type", StringType()),
    StructField("_commit_version", LongType()),
    StructField("_commit_timestamp", TimestampType()),
)


def register(spark: SparkSession) -> None:
    """Make `format("lakepass")` known to a session, also over Spark Connect."""
    spark.dataSource.register(LakepassDataSource)


class TaskPartition(InputPartition):
    """One task of a scan."""

    def __init__(self, task: ScanTask) -> None:
        super().__init__(None)
        self.task = task


class LakepassDataSource(DataSource):
    """A table by the native reader."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.parsed = Options.parse(options)
        self.version: int | None = self.parsed.version
        """Fixed when the schema is read, so that the rows are of the version the schema is of."""

    @classmethod
    def name(cls) -> str:
        """What users write after `format`."""
        return FORMAT

    def schema(self) -> StructType:
        """The table's columns, as Delta's own reader tells them, or those of the `columns` option."""
        table = self.parsed.reference.open()
        if self.parsed.change_feed and (self.parsed.ending_version, self.parsed.ending_timestamp) != (
            None,
            None,
        ):
            # A feed that ends has the columns of the version it ends at.
            return table_schema(changes_asked(table, self.parsed).metadata.schema_string, self.parsed)
        snapshot = table.snapshot(self.parsed.version, self.parsed.timestamp)
        self.version = snapshot.version
        if self.parsed.filter is not None:
            snapshot.scan(filter=self.parsed.filter)  # a filter that cannot be is told here, not in a plan
        return table_schema(snapshot.metadata.schema_string, self.parsed)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of a batch."""
        return BatchReader(self.parsed, self.version, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader of a stream."""
        if self.parsed.filter is not None:
            raise SparkReadError("A stream takes no filter option: use where(…) on the stream.")
        try:
            from lakepass.spark_conf.streaming import StreamReader
        except ImportError:  # PySpark before 4.2 has no limits of a micro-batch
            raise SparkReadError(
                "A stream by the lakepass data source needs PySpark 4.2 or newer. stream_table with Delta's "
                "own reader works with this one."
            ) from None
        return StreamReader(self.parsed, self.version, schema)


class BatchReader(DataSourceReader):
    """Plans on the driver, reads on the executors."""

    def __init__(self, options: Options, version: int | None, schema: StructType) -> None:
        self.options = options
        self.version = version
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """The scan's tasks."""
        table = self.options.reference.open()
        columns = read_columns(self.schema)
        if self.options.change_feed:
            return plan(changes_asked(table, self._until_known(), columns), self.options)
        timestamp = self.options.timestamp if self.version is None else None
        snapshot = table.snapshot(self.version, timestamp)
        return plan(snapshot.scan(columns, self.options.filter), self.options)

    def _until_known(self) -> Options:
        """The options, with an end for a feed that has none: the version that the schema is of."""
        options = self.options
        if options.ending_version is None and options.ending_timestamp is None:
            return replace(options, ending_version=self.version)
        return options

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        return read_task(partition, self.schema)


def changes_asked(table: Table, options: Options, columns: Sequence[str] | None = None) -> Changes:
    """The change feed that the options ask for."""
    changes: Changes = table.changes(
        starting_version=options.starting_version,
        ending_version=options.ending_version,
        starting_timestamp=options.starting_timestamp,
        ending_timestamp=options.ending_timestamp,
        columns=columns,
        filter=options.filter,
    )
    return changes


def plan(scan: Any, options: Options) -> Sequence[InputPartition]:
    """A scan's tasks as partitions: of `partitionBytes`, or as large as leaves work for every core.

    A planner in Python does not know how many cores there are. It cuts the scan into small tasks, by bytes
    and, since opening a file takes time too, by files; from `_ENOUGH` on it puts several into one, up to the
    size that Spark's own readers use.
    """
    if options.partition_bytes is not None:
        return [TaskPartition(task) for task in scan.tasks(options.partition_bytes)]
    tasks: list[ScanTask] = [
        replace(task, files=task.files[at : at + _SMALL_FILES])
        for task in scan.tasks(_SMALL_BYTES)
        for at in range(0, len(task.files), _SMALL_FILES)
    ]
    together = min(max(len(tasks) // _ENOUGH, 1), _MOST_TOGETHER)
    joined: list[ScanTask] = []
    for index, task in enumerate(tasks):
        if index % together and joined[-1].plan is task.plan:
            joined[-1] = replace(joined[-1], files=(*joined[-1].files, *task.files))
        else:
            joined.append(task)
    return [TaskPartition(task) for task in joined]


def read_task(partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a partition as Spark takes them."""
    if not isinstance(partition, TaskPartition):  # Spark's stand-in for a scan without tasks
        return iter(())
    return spark_batches(partition.task.to_reader(), arrow_schema(schema))


def arrow_schema(schema: StructType) -> pa.Schema:
    """Spark's own Arrow schema for the rows."""
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # before PySpark 4.2 it takes no zone, and UTC is what it gives
        return to_arrow_schema(schema)


def read_columns(schema: StructType) -> list[str]:
    """The columns to ask the reader for: void ones are in no file."""
    return [field.name for field in schema.fields if field.dataType.typeName() != "void"]


def table_schema(schema_string: str, options: Options) -> StructType:
    """A table's schema as Spark's, narrowed to the `columns` option, with the columns of a change feed."""
    whole = bare(StructType.fromJson(json.loads(schema_string)))
    assert isinstance(whole, StructType)
    fields = list(whole.fields)
    if options.columns is not None:
        by_name = {field.name.casefold(): field for field in fields}
        missing = [name for name in options.columns if name.casefold() not in by_name]
        if missing:
            raise SparkReadError(
                f"{options.reference.text} has no column {missing[0]!r}; it has "
                f"{', '.join(whole.fieldNames())}."
            )
        fields = [by_name[name.casefold()] for name in options.columns]
    if options.change_feed:
        fields += CHANGE_FIELDS
    return StructType(fields)


def bare(kind: DataType) -> DataType:
    """The type without what Delta keeps in fields for itself (mapping, widening, generation)."""
    if isinstance(kind, StructType):
        return StructType(
            [
                StructField(
                    field.name,
                    bare(field.dataType),
                    field.nullable,
                    {name: value for name, value in field.metadata.items() if name == "comment"},
                )
                for field in kind.fields
            ]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(bare(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(bare(kind.keyType), bare(kind.valueType), kind.valueContainsNull)
    return kind
