"""The rows of many files as one stream: read ahead, cut at a limit, closed when nobody wants more."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from lakepass.reader.data.files import COLLECTED, STREAMED, BatchSize
from lakepass.reader.data.read_ahead import Source, cores, read_ahead
from lakepass.reader.data.reading import FileReader, ReadPlan, ScanFile
from lakepass.reader.data.scan_files import length_of

_FEW_ROWS = 10_000
_LIGHT, _HEAVY = 1 << 20, 16 << 20
"""How small and how large a file counts in the room that files being read share."""

Done: TypeAlias = Callable[[ScanFile], None]
"""Called for each file, or piece of one, when its rows were all given."""


def stream(
    files: Iterable[tuple[ReadPlan, ScanFile]],
    limit: int | None = None,
    *,
    depth: int | None,
    done: Done | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of the files in order, up to the limit; stops reading when it is reached.

    `depth` is how many batches of each file may wait to be taken; None when all rows are kept anyway.
    """
    waiting = iter(files)
    first = list(itertools.islice(waiting, 2))
    if not first or limit == 0:
        return
    size = COLLECTED if depth is None else STREAMED
    if limit is not None and limit <= _FEW_ROWS and first[0][0].filter is None:
        size = BatchSize(max(limit, 1), STREAMED.bytes, paged=True)
    sources = (_source(plan, file, size, done) for plan, file in itertools.chain(first, waiting))
    if len(first) == 1:
        rows = next(sources).open()
    else:
        # Requests for small files are mostly waiting, so many are made at once; of large files a few.
        remote = not first[0][1].path.startswith("file:")
        workers = max(16, cores()) if remote else max(2, cores())
        rows = read_ahead(sources, workers, depth, room=max(4, cores()) * _HEAVY)
    left = limit
    try:
        for batch in rows:
            if left is None:
                yield batch
                continue
            yield batch.slice(0, left) if batch.num_rows > left else batch
            left -= min(left, batch.num_rows)
            if left == 0:
                return
    finally:
        close = getattr(rows, "close", None)
        if close is not None:
            close()


def count_rows(files: Iterable[tuple[ReadPlan, ScanFile]], limit: int | None) -> int:
    """How many rows the files give; only what the filter names is read."""
    bare = ((replace(plan, output=(), row_tracking=None, schema=pa.schema([])), file) for plan, file in files)
    return sum(batch.num_rows for batch in stream(bare, limit, depth=2))


def _source(plan: ReadPlan, file: ScanFile, size: BatchSize, done: Done | None) -> Source[pa.RecordBatch]:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from (batch for batch in FileReader(plan, file, size).batches() if batch.num_rows)
        if done is not None:
            done(file)

    return Source(batches, min(max(length_of(file), _LIGHT), _HEAVY))
