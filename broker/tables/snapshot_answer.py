"""The files of one version: a snapshot query, whole or in pages.

A page token names the version and how far its files were given. Files come in the order of the log's
replay, which changes when a checkpoint is written in between: a token then says so instead of losing a
file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.protocol.file_lines import FileLines
from lakepass.broker.protocol.state_lines import end_line, metadata_line, protocol_line
from lakepass.broker.tables.answer import FILES_AT_ONCE
from lakepass.broker.tables.pruning import Prune
from lakepass.reader.snapshot import Snapshot


@dataclass
class SnapshotQuery:
    """What is wanted of a version's files."""

    file_version: int | None = None
    """Said with each file when the client asked for a version."""
    prune: Prune | None = None
    limit: int | None = None
    """Rows that the client wants; files beyond what holds them are left out."""
    max_files: int | None = None
    skip: int = 0
    """Files of the log's replay that earlier pages went through."""
    rows_given: int = 0
    end_stream: bool = False
    refresh_token: str | None = None
    next_page: Callable[[dict[str, Any]], str] | None = None


def snapshot_chunks(
    snapshot: Snapshot, lines: FileLines, table: TableRow, query: SnapshotQuery
) -> Iterator[bytes]:
    """The lines of a snapshot, chunk by chunk."""
    pending = protocol_line(snapshot.protocol, lines.form) + metadata_line(
        snapshot.metadata, lines.form, table
    )
    given, position, rows, more = 0, 0, query.rows_given, False
    tags = lines.form == "delta"
    for piece in _pieces(snapshot.file_batches(stats="json", tags=tags), FILES_AT_ONCE):
        if query.limit is not None and rows >= query.limit:
            break
        start = position
        position += piece.num_rows
        if position <= query.skip:
            continue
        if start < query.skip:
            piece = piece.slice(query.skip - start)  # noqa: PLW2901 - the rest of the piece
            start = query.skip
        chosen, through, rows, more = _choose(piece, query, given, rows)
        given += chosen.num_rows
        pending += lines.write(chosen, "file", version=query.file_version)
        if more:
            position = start + through
            break
        if pending:
            yield pending
            pending = b""
    token = None
    if more and query.next_page is not None:
        token = query.next_page({"skip": position, "rows": rows})
    if query.end_stream or query.max_files is not None or query.refresh_token is not None:
        pending += end_line(
            expires_at_ms=lines.expires_at_ms, next_page_token=token, refresh_token=query.refresh_token
        )
    if pending:
        yield pending


def _choose(
    piece: pa.RecordBatch, query: SnapshotQuery, given: int, rows: int
) -> tuple[pa.RecordBatch, int, int, bool]:
    """The files of a piece to send, how far into it they reach, rows so far, and whether a page is full."""
    if query.max_files is None and query.limit is None:
        return (query.prune(piece) if query.prune else piece), piece.num_rows, rows, False
    if query.prune is None:
        kept: list[Any] = list(range(piece.num_rows))
    else:
        numbered = piece.append_column("at", pa.array(range(piece.num_rows), pa.int64()))
        kept = query.prune(numbered).column("at").to_pylist()
    chosen: list[Any] = []
    for at in kept:
        if query.limit is not None and rows >= query.limit:
            break
        if query.max_files is not None and given + len(chosen) >= query.max_files:
            return piece.take(pa.array(chosen, pa.int64())), at, rows, True
        chosen.append(at)
        if query.limit is not None:
            rows += _live_rows(piece, at)
    return piece.take(pa.array(chosen, pa.int64())), piece.num_rows, rows, False


def _live_rows(piece: pa.RecordBatch, at: int) -> int:
    """The rows a file holds after its deletion vector; 0 when it does not say, so that none is missed."""
    stats = piece.column("stats")[at].as_py()
    try:
        counted = orjson.loads(stats).get("numRecords") if stats else None
    except (orjson.JSONDecodeError, AttributeError):
        return 0
    if not isinstance(counted, int):
        return 0
    vector = piece.column("deletion_vector")[at].as_py()
    return max(counted - (vector["cardinality"] if vector else 0), 0)


def _pieces(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)
