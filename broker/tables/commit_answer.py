"""What commits changed: queries with a `startingVersion`, and change data feeds.

Both go through the commits in order and give metadata where it changes. A page ends before the file that
would be one too many, so that metadata between two files travels with the first of them. A range may begin
and end with what a format can carry and need more between: the answer then ends there, because a file read
without its deletion vector would bring back rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.errors import UnsupportedOperation
from lakepass.broker.protocol.capabilities import Capabilities, Format
from lakepass.broker.protocol.file_lines import FileLines, Kind
from lakepass.broker.protocol.state_lines import end_line, metadata_line, protocol_line
from lakepass.broker.tables.answer import FILES_AT_ONCE
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
    current: tuple[Protocol, Metadata]
    """The state in force where the commits begin: not the one above on a later page, or in a feed."""
    capabilities: Capabilities
    changes: bool
    """A change data feed: change files where a commit has them, and else what it added and removed."""
    historical_metadata: bool = True
    historical_protocol: bool = False
    max_files: int | None = None
    resumed: bool = False
    """A later page, whose first commit was begun on the one before."""
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
    protocol, metadata = query.current
    writer = lines(metadata)
    pending = protocol_line(query.protocol, writer.form) + metadata_line(
        query.metadata, writer.form, table, query.metadata_version
    )
    resumed, given, token = query.resumed, 0, None
    for commit in commits:
        if commit.version > query.first_version and not resumed:
            pending += _state_lines(commit, writer, table, query)
        if commit.protocol is not None or commit.metadata is not None:
            protocol, metadata = commit.protocol or protocol, commit.metadata or metadata
            _check_format(writer.form, protocol, metadata, commit.version, query)
            writer = lines(metadata)
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
    if commit.protocol is not None and query.historical_protocol and writer.form == "delta":
        written += protocol_line(commit.protocol, writer.form)
    if commit.metadata is not None and query.historical_metadata:
        written += metadata_line(commit.metadata, writer.form, table, commit.version)
    return written


def _check_format(
    form: Format, protocol: Protocol, metadata: Metadata, version: int, query: CommitQuery
) -> None:
    """That the format, which the client was told already, can carry the table from here on."""
    able = query.capabilities.choose([(protocol, metadata)])
    if form == "parquet" and able != form:
        raise UnsupportedOperation(
            f"At version {version} the table needs reader features that the parquet format cannot carry. "
            "Ask for responseformat=delta alone, or for a range without that version."
        )


def _pieces(commit: CommitActions, *, changes: bool) -> Iterator[tuple[Kind, pa.RecordBatch]]:
    """The files of a commit that changed data. Change files, where there are any, say everything."""
    if changes and commit.cdc.num_rows:
        groups: list[tuple[Kind, pa.RecordBatch]] = [("cdf", commit.cdc)]
    elif changes and commit.is_idle_merge:
        groups = []
    else:
        groups = [("remove", _changing(commit.removes)), ("add", _changing(commit.adds))]
    for kind, files in groups:
        for start in range(0, files.num_rows, FILES_AT_ONCE):
            yield kind, files.slice(start, FILES_AT_ONCE)


def _changing(files: pa.RecordBatch) -> pa.RecordBatch:
    changing: Any = files.column("data_change").fill_null(True)
    return files.filter(changing)
