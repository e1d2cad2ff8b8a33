"""What commits changed: queries with a `startingVersion`, and change data feeds.

Both go through the commits in order and give metadata where it changes. A page ends before the file that
would be one too many, so that metadata between two files travels with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.protocol.capabilities import needed_features
from lakepass.broker.protocol.file_lines import FileLines, Kind
from lakepass.broker.protocol.state_lines import end_line, metadata_line, protocol_line
from lakepass.broker.tables.answer import FILES_AT_ONCE
from lakepass.reader.errors import UnsupportedTableError
from lakepass.reader.log.actions import Metadata, Protocol
from lakepass.reader.log.changes import CommitActions


@dataclass
class CommitQuery:
    """What is wanted of a range of commits."""

    protocol: Protocol
    metadata: Metadata
    """The state that the answer opens with, and the version said with it."""
    metadata_version: int
    first_version: int
    """Metadata of this commit is what the answer opens with already."""
    changes: bool
    """A change data feed: change files where a commit has them, and else what it added and removed."""
    historical_metadata: bool = True
    historical_protocol: bool = False
    features: frozenset[str] = frozenset()
    """Reader features that the client has."""
    max_files: int | None = None
    current: Metadata | None = None
    """On a later page, the metadata in force where it goes on."""
    skip: int = 0
    """Files of the first commit read that earlier pages gave."""
    end_stream: bool = False
    next_page: Callable[[dict[str, Any]], str] | None = None


def commit_chunks(
    commits: Iterator[CommitActions],
    lines: Callable[[Metadata], FileLines],
    table: TableRow,
    query: CommitQuery,
) -> Iterator[bytes]:
    """The lines of a range of commits, chunk by chunk."""
    writer = lines(query.current or query.metadata)
    pending = protocol_line(query.protocol, writer.form) + metadata_line(
        query.metadata, writer.form, table, query.metadata_version
    )
    resumed, given, token = query.current is not None, 0, None
    for commit in commits:
        if commit.version > query.first_version and not resumed:
            pending += _state_lines(commit, writer, table, query)
        if commit.metadata is not None:
            writer = lines(commit.metadata)
        at, skip = 0, query.skip if resumed else 0
        resumed = False
        for kind, piece in _pieces(commit, changes=query.changes):
            begin, at = at, at + piece.num_rows
            unseen = piece.slice(min(max(skip - begin, 0), piece.num_rows))
            room = unseen.num_rows if query.max_files is None else query.max_files - given
            chosen = unseen.slice(0, room)
            given += chosen.num_rows
            pending += writer.write(chosen, kind, version=commit.version, timestamp=commit.timestamp_ms)
            if chosen.num_rows < unseen.num_rows:
                token = {"version": commit.version, "skip": max(begin, skip) + chosen.num_rows}
                break
            yield pending
            pending = b""
        if token is not None:
            break
    if query.end_stream or query.max_files is not None:
        next_page = query.next_page(token) if token is not None and query.next_page is not None else None
        pending += end_line(expires_at_ms=writer.expires_at_ms, next_page_token=next_page)
    if pending:
        yield pending


def _state_lines(commit: CommitActions, writer: FileLines, table: TableRow, query: CommitQuery) -> bytes:
    written = b""
    if commit.protocol is not None:
        state = (commit.protocol, commit.metadata or query.metadata)
        missing = needed_features(*state) - query.features
        if missing:
            raise UnsupportedTableError(
                "The table's protocol changes within the range.", tuple(sorted(missing))
            )
        if query.historical_protocol and writer.form == "delta":
            written += protocol_line(commit.protocol, writer.form)
    if commit.metadata is not None and query.historical_metadata:
        written += metadata_line(commit.metadata, writer.form, table, commit.version)
    return written


def _pieces(commit: CommitActions, *, changes: bool) -> Iterator[tuple[Kind, pa.RecordBatch]]:
    """The files of a commit that changed data. Change files, where there are any, say everything."""
    if changes and commit.cdc.num_rows:
        groups: list[tuple[Kind, pa.RecordBatch]] = [("cdf", commit.cdc)]
    else:
        groups = [("remove", _changing(commit.removes)), ("add", _changing(commit.adds))]
    for kind, files in groups:
        for start in range(0, files.num_rows, FILES_AT_ONCE):
            yield kind, files.slice(start, FILES_AT_ONCE)


def _changing(files: pa.RecordBatch) -> pa.RecordBatch:
    changing: Any = files.column("data_change").fill_null(True)
    return files.filter(changing)
