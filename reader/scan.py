"""A scan: which rows and columns of a snapshot are wanted, which files may hold them, and the rows.

A scan plans on batches of live files (`FileSource.file_batches`): partition values and statistics drop files
that cannot match. What is left is read by `data.reading`, several files at once, or cut into tasks that
pickle and are read elsewhere with a credential of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from typing import Any, Literal, Protocol, SupportsIndex, cast

import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.data.layout import Mapping
from lakepass.reader.data.projection import output_columns, unmapped
from lakepass.reader.data.reading import ROW_COMMIT_VERSION, ROW_ID, ReadPlan, ScanFile
from lakepass.reader.data.scan_files import length_of, scan_files, split
from lakepass.reader.data.skipping import FileSkipping
from lakepass.reader.data.streaming import Done, count_rows, stream
from lakepass.reader.errors import CorruptTableError, FilterError, UnsupportedTableError
from lakepass.reader.expressions.tree import Predicate
from lakepass.reader.expressions.tuples import FilterTuples, parse_tuples
from lakepass.reader.location import Location
from lakepass.reader.outputs import Outputs
from lakepass.reader.schema import check_column_mapping, parse_schema
from lakepass.reader.storage import Storages
from lakepass.reader.types import StructType

Filter = str | FilterTuples

TASK_BYTES = 128 * 1024 * 1024
_UNIT_BYTES = 64 * 1024 * 1024
"""Larger files are read in pieces, so that one file keeps all cores busy."""


class FileSource(Protocol):
    """Whatever can say which files are live: a `Snapshot`, or the sharing client in url mode."""

    @property
    def version(self) -> int: ...  # noqa: D102
    @property
    def protocol(self) -> Any: ...  # noqa: D102
    @property
    def metadata(self) -> Any: ...  # noqa: D102
    @property
    def storages(self) -> Storages: ...  # noqa: D102
    @property
    def root(self) -> Location: ...  # noqa: D102
    def resolve(self, path: str) -> str:
        """The full path of a file that the log names."""
        ...

    def file_batches(
        self, *, stats: pa.Schema | Literal["json"] | None = None, tags: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The live files."""
        ...


class Scan(Outputs):
    """The rows of a table at a version, from `Snapshot.scan`; read when an output is asked for.

    >>> import tempfile, pyarrow as pa
    >>> from deltalake import write_deltalake
    >>> from lakepass.reader import Table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_deltalake(folder, pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}))
    ...     scan = Table(folder).snapshot().scan(columns=["name"], filter="id > 1")
    ...     print(scan.to_arrow().to_pydict(), scan.count())
    {'name': ['b', 'c']} 2
    """

    def __init__(
        self,
        source: FileSource,
        columns: Sequence[str] | None = None,
        filter: Filter | Predicate | None = None,
        limit: int | None = None,
        row_tracking: bool = False,
    ) -> None:
        self._source = source
        self.limit = parse_limit(limit)
        mapping = mapping_mode(source.protocol, source.metadata)
        table = table_columns(source.metadata.schema_string, mapping)
        self.filter = parse_filter(filter, table)
        output = output_columns(table, columns)
        tracking = _tracking(source, table) if row_tracking else None
        fields = [each.field for each in output]
        if tracking is not None:
            fields += [pa.field(ROW_ID, pa.int64()), pa.field(ROW_COMMIT_VERSION, pa.int64())]
        partitions = partition_columns(source.metadata.partition_columns, table)
        self.schema = pa.schema(fields)
        self.plan = ReadPlan(
            table, mapping, partitions, output, self.filter, tracking, self.schema, source.storages
        )

    def __repr__(self) -> str:
        return f"Scan(version={self._source.version}, columns={self.schema.names})"

    def files(self) -> pa.Table:
        """The files that may hold wanted rows, with what the log says about each.

        `partition_values` are by logical name, as in the log; `num_records` counts deleted rows too.

        >>> from lakepass.reader import Table
        >>> files = Table("orders").snapshot().scan(filter="day = date'9999-12-31'").files()
        >>> dict(files.column("partition_values")[0].as_py())["day"], files.column("num_records").to_pylist()
        ('9999-12-31', [1])
        """
        physical = {each.physical_name: each.name for each in self.plan.table.fields}
        batches = []
        for batch, _, _ in self._batches_of_files(records=True):
            stats = batch.column("stats")
            columns = {name: batch.column(name) for name in batch.schema.names if name != "stats"}
            columns["partition_values"] = _renamed(columns["partition_values"], physical)
            columns["num_records"] = pc.struct_field(stats, "numRecords")
            batches.append(pa.RecordBatch.from_pydict(columns))
        return pa.Table.from_batches(batches) if batches else _no_files()

    def tasks(self, target_bytes: int = TASK_BYTES) -> list[ScanTask]:
        """The scan cut into shares of about `target_bytes`, which pickle; large files are split.

        A limit holds for each task: whoever reads several stops by itself.

        >>> import pickle
        >>> from lakepass.reader import Table
        >>> tasks = Table("orders").snapshot().scan().tasks(target_bytes=1)
        >>> sum(pickle.loads(pickle.dumps(task)).to_arrow().num_rows for task in tasks)
        5
        """
        tasks: list[ScanTask] = []
        share: list[ScanFile] = []
        filled = 0
        for file in self._pieces(target_bytes):
            size = length_of(file)
            if share and filled + size > target_bytes:
                tasks.append(ScanTask(self.plan, tuple(share), self.limit))
                share, filled = [], 0
            share.append(file)
            filled += size
        if share:
            tasks.append(ScanTask(self.plan, tuple(share), self.limit))
        return tasks

    def count(self) -> int:
        """How many rows there are: from the log where it tells exactly, else by reading what is needed.

        >>> from lakepass.reader import Table
        >>> Table("orders").snapshot().scan(filter="value >= 'e'").count()
        2
        """
        total = 0
        unknown: list[ScanFile] = []
        for batch, partitions, whole in self._batches_of_files(records=True):
            records = pc.struct_field(batch.column("stats"), "numRecords")
            deleted = pc.fill_null(pc.struct_field(batch.column("deletion_vector"), "cardinality"), 0)
            live = pc.subtract(records, deleted)
            # What cannot be a number of rows is not believed.
            plausible = pc.fill_null(pc.greater_equal(live, pa.scalar(0, pa.int64())), False)
            known = pc.and_(plausible, pa.array(whole))
            total += pc.sum(live.filter(known)).as_py() or 0
            rest = pc.invert(known)
            kept = {name: array.filter(rest) for name, array in partitions.items()}
            missing = batch.filter(rest)
            unknown.extend(self._scan_files(missing, kept, whole[rest.to_numpy(zero_copy_only=False)]))
        if unknown and (self.limit is None or total < self.limit):
            left = None if self.limit is None else self.limit - total
            total += count_rows(((self.plan, file) for file in unknown), left)
        return total if self.limit is None else min(total, self.limit)

    def _stream(self, *, depth: int | None, done: Done | None) -> Iterator[pa.RecordBatch]:
        files = ((self.plan, file) for file in self._pieces(_UNIT_BYTES))
        return stream(files, self.limit, depth=depth, done=done)

    def narrowed(self, columns: list[str] | None, limit: int | None) -> Scan:
        """The same rows with only these of the columns, and no more rows than `limit`."""
        scan = copy(self)
        if limit is not None:
            scan.limit = limit if self.limit is None else min(limit, self.limit)
        if columns is not None and self.plan.row_tracking is None:
            output = tuple(each for each in self.plan.output if each.name in columns)
            scan.schema = pa.schema([each.field for each in output])
            scan.plan = replace(self.plan, output=output, schema=scan.schema)
        return scan

    def _total_bytes(self) -> int:
        return sum(pc.sum(batch.column("size")).as_py() or 0 for batch, _, _ in self._batches_of_files())

    def _pieces(self, target_bytes: int) -> Iterator[ScanFile]:
        for batch, partitions, whole in self._batches_of_files():
            for file in self._scan_files(batch, partitions, whole):
                yield from split(file, target_bytes)

    def _batches_of_files(
        self, *, records: bool = False
    ) -> Iterator[tuple[pa.RecordBatch, dict[str, Any], Any]]:
        """Batches of files that may match, their partition values, and which of them match as a whole."""
        skipping = self._skipping
        for batch in self._source.file_batches(stats=skipping.stats_schema(records=records)):
            partitions = skipping.partition_arrays(batch)
            wanted, whole = skipping.decide(batch, partitions)
            if not wanted.all():
                mask = pa.array(wanted)
                batch = batch.filter(mask)  # noqa: PLW2901 - the same files, fewer
                partitions = {name: array.filter(mask) for name, array in partitions.items()}
                whole = whole[wanted]
            if batch.num_rows:
                yield batch, partitions, whole

    @cached_property
    def _skipping(self) -> FileSkipping:
        return FileSkipping(self.filter, self.plan.table, self.plan.partition_columns)

    def _scan_files(
        self, batch: pa.RecordBatch, partitions: dict[str, Any], whole: Any
    ) -> Iterator[ScanFile]:
        return scan_files(batch, partitions, whole, self._source.resolve)


@dataclass(frozen=True)
class ScanTask(Outputs):
    """A share of a scan's files. Pickles without secrets: storages are pickled as references."""

    plan: ReadPlan
    files: tuple[ScanFile, ...]
    limit: int | None = None

    @property
    def schema(self) -> pa.Schema:  # type: ignore[override]  # a plain attribute elsewhere
        """Of the rows."""
        return self.plan.schema

    def count(self) -> int:
        """How many rows there are, by reading."""
        return count_rows(((self.plan, file) for file in self.files), self.limit)

    def _stream(self, *, depth: int | None, done: Done | None) -> Iterator[pa.RecordBatch]:
        return stream(((self.plan, file) for file in self.files), self.limit, depth=depth, done=done)

    def _total_bytes(self) -> int:
        return sum(length_of(each) for each in self.files)


def parse_limit(limit: SupportsIndex | None) -> int | None:
    """A number of rows; NumPy's integers are numbers too.

    >>> parse_limit(3)
    3
    """
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, SupportsIndex) or index(limit) < 0:
        raise FilterError(f"A limit is a number of rows, not {limit!r}.")
    return index(limit)


def parse_filter(text: Filter | Predicate | None, table: StructType) -> Predicate | None:
    """A user's filter, bound to the table's columns."""
    if text is None:
        return None
    if isinstance(text, str):
        # sqlglot is only loaded by those who write SQL.
        from lakepass.reader.expressions.sql import parse_sql

        return parse_sql(text, table)
    if isinstance(text, list | tuple):
        return parse_tuples(text, table)
    if isinstance(text, Predicate):
        return text
    raise FilterError(f"A filter is SQL text or a list of tuples, not {type(text).__name__}.")


def mapping_mode(protocol: Any, metadata: Any) -> Mapping:
    """How columns are found in files. The property counts only where the protocol has column mapping."""
    supported = protocol.min_reader_version == 2 or (
        protocol.min_reader_version >= 3 and "columnMapping" in (protocol.reader_features or ())
    )
    mode = metadata.configuration.get("delta.columnMapping.mode", "none") if supported else "none"
    if mode not in ("none", "name", "id"):
        raise UnsupportedTableError(f"The table maps columns by {mode[:40]!r}; known are none, name and id.")
    return cast(Mapping, mode)


def table_columns(schema_string: str, mapping: Mapping) -> StructType:
    """The table's columns, checked for what the mapping needs."""
    table = parse_schema(schema_string)
    check_column_mapping(table, mapping)
    return unmapped(table) if mapping == "none" else table


def partition_columns(names: Sequence[str], table: StructType) -> tuple[str, ...]:
    """The partition columns by the names that the schema gives them."""
    found = []
    for name in names:
        field = table.find(name)
        if field is None:
            raise CorruptTableError(
                f"The table is partitioned by {name!r}, which its schema does not have. The metaData action "
                "in the log is damaged."
            )
        found.append(field.name)
    return tuple(found)


def _tracking(source: FileSource, table: StructType) -> tuple[str | None, str | None]:
    configuration = source.metadata.configuration
    if configuration.get("delta.enableRowTracking", "false").lower() != "true":
        raise UnsupportedTableError(
            "Row ids were asked for, but row tracking is not enabled for this version of the table "
            "(delta.enableRowTracking).",
            ("rowTracking",),
        )
    for name in (ROW_ID, ROW_COMMIT_VERSION):
        if table.find(name) is not None:
            raise FilterError(f"Row tracking would add a column {name!r}, and the table has one of its own.")
    return (
        configuration.get("delta.rowTracking.materializedRowIdColumnName"),
        configuration.get("delta.rowTracking.materializedRowCommitVersionColumnName"),
    )


def _renamed(values: Any, names: dict[str, str]) -> Any:
    """Partition values by logical name."""
    keys = values.keys
    known = pa.array(list(names), pa.string())
    logical = pa.array(list(names.values()), pa.string()).take(pc.index_in(keys, value_set=known))
    entries = pa.StructArray.from_arrays(
        [pc.coalesce(logical, keys), values.items], fields=[values.type.key_field, values.type.item_field]
    )
    return pa.Array.from_buffers(
        values.type, len(values), values.buffers()[:2], values.null_count, values.offset, children=[entries]
    )


def _no_files() -> pa.Table:
    from lakepass.reader.log.files import FILE_SCHEMA

    return FILE_SCHEMA.append(pa.field("num_records", pa.int64())).empty_table()


__all__ = ["FileSource", "Filter", "Scan", "ScanTask"]
