"""One open data file: its layout, its row groups, and its rows in batches with their positions.

Positions count every row of the file, also those of row groups that are skipped: deletion vectors and row ids
are about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakepass.reader.errors import CorruptTableError
from lakepass.reader.footer import Chunk, Footer, FooterError
from lakepass.reader.secrets import shown_path
from lakepass.reader.storage import Storage

_FEWEST_ROWS = 1_024
_PAGE_BYTES = 1 << 20
_DEEPEST = 300
"""Levels in a file: lists and maps take three for each of the schema's."""


@dataclass(frozen=True)
class BatchSize:
    """How large batches may be; whichever bound is reached first holds."""

    rows: int
    bytes: int
    paged: bool = False
    """Whether pages are fetched one by one, because the rest of a row group will hardly be wanted."""


STREAMED = BatchSize(131_072, 16 << 20)
"""For rows that are passed on: a few batches are all the memory that is taken."""
COLLECTED = BatchSize(1 << 20, 256 << 20)
"""For rows that are all kept: fewer batches are read faster."""

FEW_ROWS = 10_000
"""Fewer are read sooner than the footer tells how to read them well."""
_DICTIONARY_BYTES = 3.5
"""A plain text takes at least four bytes; below this, a column chunk points into a dictionary."""


class DataFile:
    """A Parquet file of a table."""

    def __init__(
        self, path: str, storage: Storage, size: int | None, batch_size: BatchSize = STREAMED
    ) -> None:
        self.path = shown_path(path)
        """For messages."""
        self._batch_size = batch_size
        # Ranges are fetched together where each request costs a round trip.
        self._options: dict[str, Any] = {
            "coerce_int96_timestamp_unit": "us",
            "pre_buffer": not batch_size.paged and not path.startswith("file:"),
            "buffer_size": _PAGE_BYTES if batch_size.paged else 0,
            "arrow_extensions_enabled": False,
        }
        self._handle: Any = storage.open(path, size)
        try:
            self._file = pq.ParquetFile(self._handle, **self._options)
            self.metadata = self._file.metadata
            self.schema: pa.Schema = self._file.schema_arrow
        except (pa.ArrowException, OSError, ValueError) as error:
            self.close()
            raise self.damaged(error) from None
        described = self.metadata.schema
        if any(described.column(i).path.count(".") > _DEEPEST for i in range(len(described))):
            self.close()
            raise self.damaged(f"its columns are nested more than {_DEEPEST} levels deep")
        self.row_counts = [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]
        if any(count < 0 for count in self.row_counts) or sum(self.row_counts) != self.metadata.num_rows:
            self.close()
            raise self.damaged("its row groups do not add up to its rows")

    @property
    def num_rows(self) -> int:
        """All rows, deleted ones too."""
        return int(self.metadata.num_rows)

    @cached_property
    def footer(self) -> Footer:
        """What the footer says about parts of columns; read when it is asked for."""
        return Footer(self._handle, self.metadata)

    def chunk(self, group: int, leaf: int) -> Chunk:
        """One column in one row group."""
        try:
            return self.footer.chunk(group, leaf)
        except (FooterError, pa.ArrowException, OSError) as error:
            raise self.damaged(error) from None

    def read_dictionaries(self, leaves: tuple[int, ...]) -> None:
        """Let text columns that are stored as dictionaries come as such, to be decoded faster later."""
        if not self.row_counts or self.row_counts[0] < FEW_ROWS:
            return
        names = []
        for leaf in leaves:
            described = self.metadata.schema.column(leaf)
            # Inside of other types it would have to be decoded value by value.
            if described.physical_type != "BYTE_ARRAY" or "." in described.path:
                continue
            chunk = self.chunk(0, leaf)
            if chunk.has_dictionary and chunk.uncompressed < _DICTIONARY_BYTES * self.row_counts[0]:
                names.append(described.path)
        if names:
            try:
                self._file = pq.ParquetFile(
                    self._handle, metadata=self.metadata, read_dictionary=names, **self._options
                )
            except (pa.ArrowException, OSError, ValueError) as error:
                raise self.damaged(error) from None

    def groups_between(self, start: int, end: int) -> list[int]:
        """The row groups whose middle lies in a range of bytes, so that each belongs to exactly one range."""
        chosen = []
        for index in range(self.metadata.num_row_groups):
            chunks = [self.chunk(index, leaf) for leaf in range(self.metadata.num_columns)]
            if not chunks:
                chosen.append(index)
                continue
            middle = chunks[0].begin + sum(chunk.compressed for chunk in chunks) // 2
            if start <= middle < end:
                chosen.append(index)
        return chosen

    def first_position(self, group: int) -> int:
        """The position of a row group's first row."""
        return sum(self.row_counts[:group])

    def batch_rows(self, group: int) -> int:
        """How many rows make a batch of a moderate size."""
        rows = self.row_counts[group]
        width = max(self.metadata.row_group(group).total_byte_size, 1) / max(rows, 1)
        return int(min(self._batch_size.rows, max(_FEWEST_ROWS, self._batch_size.bytes / width)))

    def batches(self, group: int, leaves: tuple[int, ...]) -> Iterator[tuple[int, int, Any]]:
        """Position, number of rows and record batch, for the leaves of one row group."""
        position, expected = self.first_position(group), self.row_counts[group]
        size = self.batch_rows(group)
        if not leaves:
            for start in range(0, expected, size):
                yield position + start, min(size, expected - start), None
            return
        seen = 0
        try:
            for batch in self._file.reader.iter_batches(
                size, [group], column_indices=list(leaves), use_threads=False
            ):
                yield position + seen, batch.num_rows, batch
                seen += batch.num_rows
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self.damaged(error) from None
        if seen != expected:
            raise self.damaged(f"row group {group} has {seen} rows, not {expected} as its footer says")

    def close(self) -> None:
        """Let go of the file."""
        self._handle.close()

    def damaged(self, error: object) -> CorruptTableError:
        """An error that names the file."""
        text = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        return CorruptTableError(
            f"The data file {self.path} cannot be read as Parquet: {text}. It is damaged or was not written "
            "completely; restore it, or read a version of the table without it."
        )
