"""What the reader asks of a store: names in a directory, bytes of a file, a file to read anywhere in.

A path is the full text of one object, decoded: `s3://bucket/table/_delta_log/0….json`, `file:///data/t/part
1.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lakepass.reader.errors import StorageError

DEFAULT_LIMIT = 256 << 20
"""The most bytes that one `read` gives unless told otherwise; a larger object is refused, not loaded."""


class TooLargeError(StorageError):
    """An object is larger than what its reader is ready to hold."""

    def __init__(self, path: str, size: int, limit: int) -> None:
        super().__init__(
            f"Cannot read {path!r}: {size} bytes are more than the {limit} that are read at once. If the file"
            " is what it should be, it is too large for its purpose."
        )


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One object as a listing shows it."""

    path: str
    size: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rsplit("/", 1)[-1]


class Storage(Protocol):
    """One store with one credential. Pickles as a reference: location and provider, never keys."""

    def list(self, directory: str, start_after: str = "") -> Iterator[FileStatus]:
        """The files directly in a directory, by name, those after `start_after`. A missing directory is
        empty.
        """
        ...

    def read(
        self, path: str, *, offset: int = 0, length: int | None = None, limit: int = DEFAULT_LIMIT
    ) -> bytes:
        """Bytes of an object, all of it or a range; more than `limit` is refused before memory is taken."""
        ...

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """A file for random access; threads may share it. Knowing the size saves a request."""
        ...
