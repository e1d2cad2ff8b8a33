"""A file over ranged reads, for Parquet on object stores and HTTP.

Arrow reads such a file from several threads: it seeks, then reads. Each thread therefore has a position of
its own. Nothing is cached here; Arrow coalesces column ranges itself (`pre_buffer`), and the size is known
from the log or a listing, so a Parquet file costs one request for its footer and one for each group of
neighbouring columns.
"""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lakepass.reader.errors import CorruptTableError

_FOOTER = 64 << 10
"""How many bytes from the end are fetched with the first read there; most Parquet footers fit."""


class RangedFile(io.RawIOBase):
    """A read-only file whose bytes come from `fetch(offset, length)`."""

    def __init__(
        self,
        path: str,
        size: int,
        fetch: Callable[[int, int], bytes],
        closing: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._closing = closing
        self._path = path
        self._size = size
        self._fetch = fetch
        self._local = threading.local()
        self._tail: tuple[int, bytes] | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let go of what the bytes come from."""
        super().close()
        self._tail = None
        if self._closing is not None:
            self._closing()

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def size(self) -> int:
        """Bytes in the file."""
        return self._size

    def tell(self) -> int:
        """This thread's position."""
        return getattr(self._local, "position", 0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves this thread's position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size}[whence]
        self._local.position = max(base + offset, 0)
        return self.tell()

    def read(self, size: int | None = -1) -> bytes:
        """Bytes from this thread's position on."""
        position = self.tell()
        available = max(self._size - position, 0)
        length = available if size is None or size < 0 else min(size, available)
        data = self._at(position, length) if length else b""
        self._local.position = position + len(data)
        return data

    def readall(self) -> bytes:
        """The rest of the file."""
        return self.read()

    def _at(self, offset: int, length: int) -> bytes:
        if offset >= self._size - _FOOTER:
            start, tail = self._end()
            return tail[offset - start : offset - start + length]
        data = self._fetch(offset, length)
        if len(data) != length:
            raise CorruptTableError(
                f"{self._path}: {length} bytes were asked for at {offset} and {len(data)} came. The file is"
                " shorter than the log or the listing says; it was overwritten or cut off."
            )
        return data

    def _end(self) -> tuple[int, bytes]:
        with self._lock:
            if self._tail is None:
                start = max(self._size - _FOOTER, 0)
                data = self._fetch(start, self._size - start)
                if len(data) != self._size - start:
                    raise CorruptTableError(
                        f"{self._path} is not {self._size} bytes long, as the log or the listing says: it was"
                        " overwritten or cut off."
                    )
                self._tail = start, data
            return self._tail


_recent: deque[pa.NativeFile] = deque(maxlen=64)
"""Arrow's own threads let go of a file shortly after they gave its last bytes. Were theirs the last
reference, they would call Python for it, which aborts the process if the interpreter has just begun to end.
"""


def ranged(
    path: str, size: int, fetch: Callable[[int, int], bytes], closing: Callable[[], None] | None = None
) -> pa.NativeFile:
    """The file as Arrow takes it."""
    handle: Any = RangedFile(path, size, fetch, closing)
    file = pa.PythonFile(handle, mode="r")
    _recent.append(file)
    return file
