"""A stream of a table: what is in it at the start, then what each commit adds, each file exactly once.

An offset is a place in the table's history: a version, whether its whole snapshot or only its commit is
meant, and how many of its files came before. Spark writes offsets down before it reads, and asks for the
same range again after a failure; the range names the same files then, because a snapshot's files are put in
an order of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from lakepass.reader.log.changes import CommitActions
from lakepass.reader.log.files import FILE_SCHEMA
from lakepass.reader.scan import Scan
from lakepass.reader.snapshot import Snapshot
from lakepass.reader.table import Table
from lakepass.spark_conf.errors import SparkReadError
from lakepass.spark_conf.options import Options
from lakepass.spark_conf.source import bare, plan, read_columns, read_task, table_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, order=True)
class Offset:
    """All files before this place have been read: whole versions below, and `index` files of this one."""

    version: int
    index: int = 0
    snapshot: bool = False
    """Whether the files are those of the snapshot, not of the commit."""

    @classmethod
    def parse(cls, saved: dict[str, Any]) -> Offset:
        """An offset as Spark keeps it."""
        return cls(int(saved["version"]), int(saved["index"]), bool(saved["snapshot"]))


@dataclass(frozen=True)
class SomeFiles:
    """A part of a snapshot's or a commit's files, as the source of a scan."""

    snapshot: Snapshot
    files: pa.RecordBatch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.snapshot, name)

    def file_batches(
        self, *, stats: pa.Schema | Literal["json"] | None = None, tags: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The files; no filter is pushed into a stream, so nobody needs statistics."""
        assert stats is None or len(stats) == 0
        assert not tags
        yield self.files


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver; the executors read tasks as in a batch."""

    def __init__(self, options: Options, version: int | None, schema: StructType) -> None:
        self.options = options
        self.schema_version = version
        """The version that the schema is of; files of older ones are read as its schema has them."""
        self.schema = schema
        self._table: Table | None = None
        self._current: Snapshot | None = None
        self._last: int | None = None
        """The version that `availableNow` ends at."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None, "_current": None}

    @property
    def table(self) -> Table:
        """The table, opened once in the driver's process."""
        if self._table is None:
            self._table = self.options.reference.open()
        return self._table

    def initialOffset(self) -> dict[str, Any]:
        """The whole snapshot of now, unless the stream is to begin at a version or a time."""
        options = self.options
        if options.starting_version == -1:
            return asdict(Offset(self.table.snapshot().version + 1))
        if options.starting_version is not None:
            return asdict(Offset(options.starting_version))
        if options.starting_timestamp is not None:
            return asdict(Offset(self.table.version_from(options.starting_timestamp)))
        if options.change_feed:
            raise SparkReadError(
                "A stream of changes needs startingVersion (a version or latest) or startingTimestamp."
            )
        version = self.table.snapshot(options.version, options.timestamp).version
        return asdict(Offset(version, 0, True))

    def getDefaultReadLimit(self) -> ReadLimit:
        """`maxFilesPerTrigger`, if it was given."""
        if self.options.max_files is None or self.options.change_feed:
            return ReadAllAvailable()
        return ReadMaxFiles(self.options.max_files)

    def prepareForTriggerAvailableNow(self) -> None:
        """Do not go beyond what there is now."""
        self._last = self.table.snapshot().version

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes: to the latest version, or as many files as the limit allows."""
        begin = Offset.parse(start)
        latest = self.table.snapshot().version if self._last is None else self._last
        if not isinstance(limit, ReadMaxFiles):
            return asdict(max(begin, Offset(latest + 1)) if begin.version <= latest else begin)
        left = limit.max_files
        at = begin
        while at.version <= latest:
            files = self._files(at)
            remaining = files.num_rows - at.index
            if remaining > left:
                return asdict(Offset(at.version, at.index + left, at.snapshot))
            left -= remaining
            at = Offset(at.version + 1)
            if left == 0:
                break
        return asdict(at)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks between two offsets."""
        at, stop = Offset.parse(start), Offset.parse(end)
        if self.options.change_feed:
            return self._change_partitions(at, stop)
        found: list[InputPartition] = []
        while (at.version, at.index) < (stop.version, stop.index):
            files = self._files(at)
            upto = stop.index if at.version == stop.version else files.num_rows
            if upto > at.index:
                chosen = files.slice(at.index, upto - at.index)
                source = SomeFiles(self._schema_snapshot(), chosen)
                found += plan(Scan(source, columns=read_columns(self.schema)), self.options)
            if at.version == stop.version:
                break
            at = Offset(at.version + 1)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        return read_task(partition, self.schema)

    def _change_partitions(self, at: Offset, stop: Offset) -> Sequence[InputPartition]:
        last = stop.version - 1
        if last < at.version:
            return []
        for commit in self.table.commit_actions(at.version, last):
            self._check_schema(commit)
        return plan(self.table.changes(starting_version=at.version, ending_version=last), self.options)

    def _schema_snapshot(self) -> Snapshot:
        if self._current is None:
            self._current = self._snapshot(self.schema_version)
        return self._current

    def _snapshot(self, version: int | None) -> Snapshot:
        snapshot = self.table.snapshot(version)
        if not isinstance(snapshot, Snapshot):
            raise SparkReadError(
                f"{self.options.reference.text} is offered by URL, which shows no commits to stream. Ask the "
                "provider for directory access."
            )
        return snapshot

    def _files(self, at: Offset) -> pa.RecordBatch:
        """The files at an offset's version, in an order that is the same every time."""
        if at.snapshot:
            files = pa.Table.from_batches(self._snapshot(at.version).file_batches(), FILE_SCHEMA)
            ordered = files.sort_by(
                [("modification_time", "ascending"), ("path", "ascending")]
            ).combine_chunks()
            return next(iter(ordered.to_batches()), pa.RecordBatch.from_pylist([], FILE_SCHEMA))
        (commit,) = self.table.commit_actions(at.version, at.version)
        self._check_schema(commit)
        return self._added(commit)

    def _added(self, commit: CommitActions) -> pa.RecordBatch:
        """What a commit adds, if it only adds or the options say to pass over the rest."""
        options = self.options
        adds = commit.adds.filter(commit.adds.column("data_change"))
        removed = pc.sum(commit.removes.column("data_change")).as_py() or 0
        if not removed or options.ignore_changes:
            return adds
        if options.skip_change_commits:
            return adds.slice(0, 0)
        if adds.num_rows == 0 and options.ignore_deletes:
            return adds
        what = "updates or overwrites rows" if adds.num_rows else "deletes rows"
        choices = "skipChangeCommits=true to pass over such commits"
        if adds.num_rows == 0:
            choices = "ignoreDeletes=true or " + choices
        raise SparkReadError(
            f"Version {commit.version} of {options.reference.text} {what}, which a stream of additions "
            f"cannot tell. Set {choices}, or stream the changes with readChangeFeed=true."
        )

    def _check_schema(self, commit: CommitActions) -> None:
        if commit.metadata is None or commit.version <= self._schema_snapshot().version:
            return
        current = table_schema(commit.metadata.schema_string, self.options)
        if bare(current) != bare(self.schema):
            raise SparkReadError(
                f"The schema of {self.options.reference.text} changes at version {commit.version}. Restart "
                "the query to go on with the new schema."
            )
