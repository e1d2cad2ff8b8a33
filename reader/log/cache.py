"""Keeps the bytes of commits: they never change, and every newer snapshot of the table needs them again.

`LogCache` is all the log asks of a cache; the one in memory is bounded and drops what was not used for
longest.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol


class LogCache(Protocol):
    """Bytes of immutable files, by path and size."""

    def get(self, path: str, size: int) -> bytes | None:
        """The file's bytes if they are kept."""
        ...

    def put(self, path: str, size: int, data: bytes) -> None:
        """Keeps the bytes, if there is room."""
        ...


class MemoryCache:
    """Files in memory, up to a number of bytes.

    >>> cache = MemoryCache(10)
    >>> cache.put("a", 6, b"6bytes"); cache.put("b", 6, b"BYTES6")
    >>> cache.get("a", 6), cache.get("b", 6)
    (None, b'BYTES6')
    """

    def __init__(self, limit: int = 64 << 20) -> None:
        self._limit = limit
        self._held = 0
        self._files: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, size: int) -> bytes | None:
        """The file's bytes if they are kept."""
        with self._lock:
            data = self._files.get((path, size))
            if data is not None:
                self._files.move_to_end((path, size))
            return data

    def put(self, path: str, size: int, data: bytes) -> None:
        """Keeps the bytes, dropping the least recently used."""
        if len(data) != size or size > self._limit:
            return
        with self._lock:
            if (path, size) in self._files:
                return
            self._files[path, size] = data
            self._held += size
            while self._held > self._limit:
                _, dropped = self._files.popitem(last=False)
                self._held -= len(dropped)

    def __reduce__(self) -> tuple[type[MemoryCache], tuple[int]]:
        return MemoryCache, (self._limit,)
