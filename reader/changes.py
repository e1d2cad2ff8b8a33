"""The change data feed: which rows were inserted, updated and deleted, commit by commit.

Carries out "Change Data Files" and "Add CDC File" of the protocol. A commit with change files is told by
them alone. Any other commit is told by what it adds and removes: whole files, or, where a file is removed and
added again with another deletion vector, the rows in which the two vectors differ. Rows are given with the
schema of the range's last version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from lakepass.reader.data.layout import Mapping
from lakepass.reader.data.projection import output_columns
from lakepass.reader.data.reading import ReadPlan, ScanFile
from lakepass.reader.data.scan_files import length_of, scan_files
from lakepass.reader.data.skipping import FileSkipping
from lakepass.reader.data.streaming import Done, count_rows, stream
from lakepass.reader.errors import CorruptTableError, DeltaError, VersionNotFoundError
from lakepass.reader.expressions.tree import Predicate
from lakepass.reader.log.changes import CommitActions
from lakepass.reader.log.timeline import parse_version
from lakepass.reader.outputs import Outputs
from lakepass.reader.scan import (
    TASK_BYTES,
    FileSource,
    Filter,
    ScanTask,
    mapping_mode,
    parse_filter,
    parse_limit,
    table_columns,
)
from lakepass.reader.types import LONG, STRING, TIMESTAMP, StructField, StructType

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
_ADDED = (
    StructField(CHANGE_TYPE, STRING),
    StructField(COMMIT_VERSION, LONG),
    StructField(COMMIT_TIMESTAMP, TIMESTAMP),
)
_ADDED_NAMES = tuple(each.name for each in _ADDED)
_FEED = "delta.enableChangeDataFeed"


class ChangeSource(Protocol):
    """A table that can say what its commits did; `Table` is one."""

    def snapshot(self, version: int | None = None) -> FileSource:
        """The table at a version."""
        ...

    def commit_actions(self, start: int, end: int | None = None) -> Iterator[CommitActions]:
        """What each commit did."""
        ...

    def version_at(self, timestamp: str | datetime) -> int:
        """The latest version committed at or before a time."""
        ...

    def version_from(self, timestamp: str | datetime) -> int:
        """The earliest version committed at or after a time."""
        ...


def changes_of(
    table: ChangeSource,
    *,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp: str | datetime | None = None,
    ending_timestamp: str | datetime | None = None,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    limit: int | None = None,
) -> Changes:
    """The changes between two versions or times, both inclusive; by default, all of them."""
    if starting_version is not None and starting_timestamp is not None:
        raise DeltaError("Give a starting version or a starting timestamp, not both.")
    if ending_version is not None and ending_timestamp is not None:
        raise DeltaError("Give an ending version or an ending timestamp, not both.")
    start = 0 if starting_version is None else starting_version
    if starting_timestamp is not None:
        start = table.version_from(starting_timestamp)
    end = ending_version
    if ending_timestamp is not None:
        end = table.version_at(ending_timestamp)
    start = parse_version(start)
    end = None if end is None else parse_version(end)
    last = table.snapshot()
    if start > last.version:
        raise VersionNotFoundError(
            f"There are no changes from version {start} on: the latest version is {last.version}."
        )
    if end is not None and end < start:
        raise DeltaError(
            f"The changes from version {start} to {end} were asked for: the range ends before it begins."
        )
    if end is not None and end < last.version:
        # A range that goes on beyond the latest version ends with it, as in Spark.
        last = table.snapshot(end)
    first = last if start == last.version else table.snapshot(start)
    return Changes(
        last,
        lambda: table.commit_actions(start, last.version),
        first.metadata,
        first_version=start,
        columns=columns,
        filter=filter,
        limit=limit,
    )


class Changes(Outputs):
    """Rows that changed, with `_change_type`, `_commit_version` and `_commit_timestamp`.

    Comes from `Table.changes`. `source` is the table at the end of the range, `commits` gives the commits of
    the range, `metadata` is what held at `first_version`.

    >>> from lakepass.reader import Table
    >>> changes = Table("feed").changes(3, 3, columns=["_change_type", "_commit_version"], limit=1)
    >>> changes.to_arrow().to_pylist()
    [{'_change_type': 'delete', '_commit_version': 3}]
    """

    def __init__(
        self,
        source: FileSource,
        commits: Callable[[], Iterable[CommitActions]],
        metadata: Any,
        *,
        first_version: int,
        columns: Sequence[str] | None = None,
        filter: Filter | Predicate | None = None,
        limit: int | None = None,
    ) -> None:
        self._source = source
        self._commits = commits
        self._metadata = metadata
        self._first_version = first_version
        self.limit = parse_limit(limit)
        mapping = mapping_mode(source.protocol, source.metadata)
        table = table_columns(source.metadata.schema_string, mapping)
        taken = [name for name in _ADDED_NAMES if table.find(name) is not None]
        if taken:
            raise DeltaError(f"The change feed would add a column {taken[0]!r}, which the table has itself.")
        table = StructType(table.fields + _ADDED)
        self.filter = parse_filter(filter, table)
        output = output_columns(table, columns)
        self.schema = pa.schema([each.field for each in output])
        self._plan = ReadPlan(table, mapping, (), output, self.filter, None, self.schema, source.storages)
        _check_feed(metadata, first_version)

    def __repr__(self) -> str:
        return f"Changes(versions={self._first_version} to {self._source.version})"

    @property
    def metadata(self) -> Any:
        """The table's metadata at the end of the range, whose columns the changes have."""
        return self._source.metadata

    def count(self) -> int:
        """How many changes there are, by reading."""
        return count_rows(self._files(), self.limit)

    def tasks(self, target_bytes: int = TASK_BYTES) -> list[ScanTask]:
        """The changes cut into shares of about `target_bytes`, which pickle; a limit holds for each."""
        tasks: list[ScanTask] = []
        filled = 0
        for plan, file in self._files():
            size = length_of(file)
            last = tasks[-1] if tasks else None
            if last is not None and last.plan is plan and filled + size <= target_bytes:
                tasks[-1] = replace(last, files=(*last.files, file))
                filled += size
            else:
                tasks.append(ScanTask(plan, (file,), self.limit))
                filled = size
        return tasks

    def _stream(self, *, depth: int | None, done: Done | None) -> Iterator[pa.RecordBatch]:
        return stream(self._files(), self.limit, depth=depth, done=done)

    def _total_bytes(self) -> int:
        return sum(length_of(file) for _, file in self._files())

    def _files(self) -> Iterator[tuple[ReadPlan, ScanFile]]:
        metadata = self._metadata
        for commit in self._commits():
            before = metadata
            if commit.metadata is not None:
                metadata = commit.metadata
                _check_feed(metadata, commit.version)
            yield from _Commit(self, commit, before, metadata).files()


class _Commit:
    """The files that tell one commit's changes, each with the plan to read it by."""

    def __init__(self, changes: Changes, commit: CommitActions, before: Any, after: Any) -> None:
        self._changes = changes
        self._commit = commit
        self._before = before
        self._after = after

    def files(self) -> Iterator[tuple[ReadPlan, ScanFile]]:
        commit = self._commit
        if commit.cdc.num_rows:
            yield from self._of(commit.cdc, None, self._after)
            return
        if commit.is_idle_merge:
            return
        adds, removes = _changing(commit.adds), _changing(commit.removes)
        resolve = self._changes._source.resolve
        added = {resolve(path): index for index, path in enumerate(_paths(adds))}
        removed = {resolve(path): index for index, path in enumerate(_paths(removes))}
        both = [path for path in added if path in removed]
        only_added = [index for path, index in added.items() if path not in removed]
        only_removed = [index for path, index in removed.items() if path not in added]
        yield from self._of(adds.take(pa.array(only_added, pa.int64())), "insert", self._after)
        yield from self._of(removes.take(pa.array(only_removed, pa.int64())), "delete", self._before)
        if both:
            yield from self._differences(
                removes.take(pa.array([removed[path] for path in both], pa.int64())),
                adds.take(pa.array([added[path] for path in both], pa.int64())),
            )

    def _differences(self, old: pa.RecordBatch, new: pa.RecordBatch) -> Iterator[tuple[ReadPlan, ScanFile]]:
        """Rows that one of the two deletion vectors of a file deletes and the other does not."""
        earlier = {file.path: file for _, file in self._of(old, "insert", self._before, check=False)}
        for kind in ("delete", "insert"):
            for plan, file in self._of(new, kind, self._after):
                before = earlier.get(file.path)
                if before is None:
                    continue
                gone, kept = (file, before) if kind == "delete" else (before, file)
                if gone.deletion_vector is None:
                    continue
                yield (
                    plan,
                    replace(
                        file,
                        deletion_vector=gone.deletion_vector,
                        vector_path=gone.vector_path,
                        earlier_vector=kept.deletion_vector,
                        earlier_vector_path=kept.vector_path,
                        only_deleted=True,
                    ),
                )

    def _of(
        self, batch: pa.RecordBatch, kind: str | None, metadata: Any, *, check: bool = True
    ) -> Iterator[tuple[ReadPlan, ScanFile]]:
        """The files of a batch that may hold wanted rows; `kind` is None when the rows tell it."""
        if not batch.num_rows:
            return
        plan = self._changes._plan
        partitions = _partitions(plan, metadata)
        if check and partitions and batch.column("partition_values").null_count:
            raise CorruptTableError(
                f"Version {self._commit.version} removes files without saying their partition values, so the "
                "rows that went with them cannot be told. Start the range after it."
            )
        stamp = pa.scalar(self._commit.timestamp_ms * 1000, pa.timestamp("us", "UTC"))
        constants: dict[str, Any] = {
            COMMIT_VERSION: pa.scalar(self._commit.version, pa.int64()),
            COMMIT_TIMESTAMP: stamp,
        }
        if kind is not None:
            constants[CHANGE_TYPE] = pa.scalar(kind)
        skipping = FileSkipping(plan.filter, plan.table, partitions, stats=False)
        values = skipping.partition_arrays(batch)
        values.update({name: pa.repeat(scalar, batch.num_rows) for name, scalar in constants.items()})
        wanted, whole = skipping.decide(batch, values)
        here = replace(plan, partition_columns=(*partitions, *_ADDED_NAMES))
        stored = (CHANGE_TYPE,) if kind is None else ()
        files = scan_files(batch, values, whole, self._changes._source.resolve)
        for file, kept in zip(files, np.asarray(wanted).tolist(), strict=True):
            if kept or not check:
                yield here, replace(file, stored=stored)


def _changing(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The actions that change data; those that only rearrange it are no news."""
    flags: Any = batch.column("data_change").fill_null(True)
    return batch.filter(flags)


def _paths(batch: pa.RecordBatch) -> list[str]:
    paths: list[Any] = batch.column("path").to_pylist()
    return paths


def _partitions(plan: ReadPlan, metadata: Any) -> tuple[str, ...]:
    """The partition columns that held at a commit, by the names that the last schema gives them."""
    mode: Mapping = "none"
    if plan.mapping != "none":
        mode = metadata.configuration.get("delta.columnMapping.mode", "none")
    then = table_columns(metadata.schema_string, mode)
    now = {each.physical_name: each.name for each in plan.table.fields}
    fields = (then.find(name) for name in metadata.partition_columns)
    named = (each.physical_name for each in fields if each is not None)
    return tuple(now[name] for name in named if name in now)


def _check_feed(metadata: Any, version: int) -> None:
    if metadata.configuration.get(_FEED, "false").lower() != "true":
        raise DeltaError(
            f"The change data feed was off at version {version} ({_FEED} is not true), so what changed "
            "there was not recorded. Ask for a range of versions in which it is on."
        )
