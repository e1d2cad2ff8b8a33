"""The change data feed in `url` mode: the answer of Read Change Data Feed, commit by commit.

A server may send the files of a range in any order, so the whole answer is gathered, as columns, and cut
into commits. What a file means is then told by the same code that reads a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.changes import Changes, changes_of
from lakepass.reader.errors import SharingError
from lakepass.reader.log.actions import Metadata
from lakepass.reader.log.cache import LogCache
from lakepass.reader.log.changes import CommitActions
from lakepass.reader.log.files import FileColumns
from lakepass.reader.sharing.actions import ACTION_SCHEMA, Column, Files, Header
from lakepass.reader.sharing.names import TableName
from lakepass.reader.sharing.rest import ResponseFormat, Rest
from lakepass.reader.sharing.signed import Signed, signed_paths
from lakepass.reader.sharing.urls import UrlSnapshot, UrlTable, file_batch

_FEED = "delta.enableChangeDataFeed"


class UrlChanges:
    """What `changes_of` asks of a table, from the server's answers."""

    def __init__(
        self,
        rest: Rest,
        name: TableName,
        accepted: ResponseFormat = "delta,parquet",
        cache: LogCache | None = None,
    ) -> None:
        self._table = UrlTable(rest, name, accepted, cache)
        self._rest = rest
        self._name = name
        self._accepted: ResponseFormat = accepted
        self._signed = Signed(rest, name, {}, None, accepted=accepted, changes=True)

    def changes(self, **options: Any) -> Changes:
        """The changes between two versions or times."""
        return changes_of(self, **options)

    def snapshot(self, version: int | None = None) -> UrlSnapshot:
        """The table at a version, with the storages of the feed."""
        snapshot = self._table.snapshot(version)
        # Whether the feed was on is the server's to check: not every one shows the property.
        configuration = {**snapshot.metadata.configuration, _FEED: "true"}
        snapshot.metadata = replace(snapshot.metadata, configuration=configuration)
        snapshot.read_with(self._signed)
        return snapshot

    def version_at(self, timestamp: str | datetime) -> int:
        """The latest version committed at or before a time."""
        return self._table.version_at(timestamp)

    def version_from(self, timestamp: str | datetime) -> int:
        """The earliest version committed at or after a time."""
        return self._table.version_from(timestamp)

    def commit_actions(self, start: int, end: int | None = None) -> Iterator[CommitActions]:
        """What each commit of the range did to rows."""
        params = {"startingVersion": str(start), "includeHistoricalMetadata": "true"}
        if end is not None:
            params["endingVersion"] = str(end)
        self._signed.body = params
        held: dict[str, list[pa.RecordBatch]] = {"add": [], "remove": [], "cdc": []}
        metadata: dict[int, Metadata] = {}
        for action in self._rest.changes(self._name, params, self._accepted):
            if isinstance(action, Files):
                held[action.kind].append(signed_paths(action.batch))
            elif isinstance(action, Header) and action.extra.get("version") is not None:
                told = Metadata.parse(action.metadata, f"the changes of {self._name}")
                configuration = {**told.configuration, _FEED: "true"}
                metadata[int(action.extra["version"])] = replace(told, configuration=configuration)
        files = {kind: _gathered(batches) for kind, batches in held.items()}
        if any(table.column("version").null_count for table in files.values()):
            raise SharingError(f"The changes of {self._name} came without the versions they belong to.", 200)
        files["remove"] = _same_paths(files["remove"], files["add"])
        stamped: list[int] = [one for table in files.values() for one in _values(table, "version")]
        for version in sorted({*stamped, *metadata}):
            if version < start or (end is not None and version > end):
                continue
            yield self._commit(version, files, metadata.get(version) if version > start else None)

    @staticmethod
    def _commit(version: int, files: dict[str, pa.Table], metadata: Metadata | None) -> CommitActions:
        parts = {kind: table.filter(pc.field("version") == version) for kind, table in files.items()}
        stamps = [one for part in parts.values() for one in _values(part, "timestamp") if one]
        return CommitActions(
            version,
            max(stamps, default=0),
            None,
            None,
            metadata,
            adds=_files(parts["add"]),
            removes=_files(parts["remove"]),
            cdc=_files(parts["cdc"]),
        )


def _values(table: pa.Table, column: str) -> list[Any]:
    values: Column = pc.unique(table.column(column))
    found: list[Any] = values.to_pylist()
    return found


def _gathered(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, ACTION_SCHEMA)


def _same_paths(removes: pa.Table, adds: pa.Table) -> pa.Table:
    """`removes`, where a file that is also added has the path it is added with.

    Its two URLs are signed apart, but it is the same file: rows are then compared by its deletion vectors.
    """
    ids: Column = removes.column("id")
    order: Column = pc.index_in(ids, value_set=adds.column("id").combine_chunks())
    if order.null_count == len(ids):
        return removes
    paths = pc.coalesce(adds.column("url").take(order), removes.column("url"))
    return removes.set_column(removes.schema.get_field_index("url"), "url", paths)


def _files(rows: pa.Table) -> pa.RecordBatch:
    combined = rows.combine_chunks().to_batches()
    batch = combined[0] if combined else pa.RecordBatch.from_pylist([], schema=ACTION_SCHEMA)
    flags: Column = batch.column("data_change")
    return file_batch(batch, FileColumns()).append_column("data_change", flags)
