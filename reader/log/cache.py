"""Keeps what never changes in a log: commits, checksums, checkpoints that are small enough.

Every newer snapshot of a table needs them again. A file is known by its path, size and time, so that a table
that was replaced by another one at the same place is not mistaken for it. The cache also remembers from which
version on a table's log was listed, which makes reopening an unchanged table one listing.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

from lakepass.reader.storage import FileStatus, Storage


class LogCache(Protocol):
    """What the log asks of a cache."""

    def get(self, status: FileStatus) -> bytes | None:
        """The file's bytes if they are kept."""
        ...

    def put(self, status: FileStatus, data: bytes) -> None:
        """Keeps the bytes, if there is room."""
        ...

    def keeps(self, size: int) -> bool:
        """Whether a file of this size is worth being read whole, to be kept."""
        ...

    def start(self, root: str) -> int | None:
        """The version from which on a table's log was listed last; 0 for all of it, None when not known."""
        ...

    def started(self, root: str, version: int) -> None:
        """Remembers it."""
        ...


def read_kept(storage: Storage, status: FileStatus, cache: LogCache | None, limit: int) -> bytes:
    """A whole file, from the cache or into it."""
    kept = cache.get(status) if cache else None
    if kept is not None:
        return kept
    data = storage.read(status.path, limit=limit)
    if cache:
        cache.put(status, data)
    return data


class MemoryCache:
    """Files in memory, up to a number of bytes; what was not used for longest goes first.

    >>> cache = MemoryCache(10)
    >>> one, two = FileStatus("one", 6, 0), FileStatus("two", 6, 0)
    >>> cache.put(one, b"6bytes"); cache.put(two, b"BYTES6")
    >>> cache.get(one), cache.get(two)
    (None, b'BYTES6')
    """

    def __init__(self, limit: int = 64 << 20) -> None:
        self._limit = limit
        self._held = 0
        self._files: OrderedDict[FileStatus, bytes] = OrderedDict()
        self._starts: dict[str, int] = {}
        self._lock = threading.Lock()

    def get(self, status: FileStatus) -> bytes | None:
        """The file's bytes if they are kept."""
        with self._lock:
            data = self._files.get(status)
            if data is not None:
                self._files.move_to_end(status)
            return data

    def put(self, status: FileStatus, data: bytes) -> None:
        """Keeps the bytes, dropping the least recently used."""
        if len(data) != status.size or status.size > self._limit:
            return
        with self._lock:
            if status in self._files:
                return
            self._files[status] = data
            self._held += len(data)
            while self._held > self._limit:
                _, dropped = self._files.popitem(last=False)
                self._held -= len(dropped)

    def keeps(self, size: int) -> bool:
        """A checkpoint is kept when a good number of them have room."""
        return 0 < size <= self._limit // 32

    def start(self, root: str) -> int | None:
        """The version from which on a table's log was listed last."""
        return self._starts.get(root)

    def started(self, root: str, version: int) -> None:
        """Remembers it."""
        self._starts[root] = version

    def __reduce__(self) -> tuple[type[MemoryCache], tuple[int]]:
        return MemoryCache, (self._limit,)


class DirectoryCache:
    """Files in a local directory, up to a number of bytes, shared by the processes of one user.

    Give it to `Table(..., cache=DirectoryCache(folder))`. Losing it loses nothing.
    """

    def __init__(self, folder: str | os.PathLike[str], limit: int = 1 << 30) -> None:
        self._folder = Path(folder)
        self._limit = limit
        self._lock = threading.Lock()
        self._held: int | None = None
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, status: FileStatus) -> bytes | None:
        """The file's bytes if they are kept."""
        file = self._file(status)
        try:
            data = file.read_bytes()
            os.utime(file)
        except OSError:
            return None
        return data if len(data) == status.size else None

    def put(self, status: FileStatus, data: bytes) -> None:
        """Keeps the bytes; the oldest files make room."""
        if len(data) != status.size or status.size > self._limit // 2:
            return
        self._write(self._file(status), data)
        with self._lock:
            self._held = self._size() if self._held is None else self._held + len(data)
            if self._held > self._limit:
                self._held = self._make_room()

    def keeps(self, size: int) -> bool:
        """Checkpoints are kept up to an eighth of the room."""
        return 0 < size <= self._limit // 8

    def start(self, root: str) -> int | None:
        """The version from which on a table's log was listed last."""
        try:
            text = self._named("start", root).read_text()
        except (OSError, UnicodeDecodeError):
            return None
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None

    def started(self, root: str, version: int) -> None:
        """Remembers it."""
        if self.start(root) != version:
            self._write(self._named("start", root), str(version).encode())

    def _file(self, status: FileStatus) -> Path:
        return self._named("file", f"{status.path}\n{status.size}\n{status.modified_ms}")

    def _named(self, kind: str, text: str) -> Path:
        return self._folder / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()}"

    def _write(self, file: Path, data: bytes) -> None:
        """Whole or not at all, also when the disk is full: a cache must not be a reason to fail."""
        try:
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="new-")
            try:
                with os.fdopen(handle, "wb") as new:
                    new.write(data)
                Path(name).replace(file)
            except OSError:
                Path(name).unlink(missing_ok=True)
        except OSError:
            return

    def _entries(self) -> list[tuple[float, int, Path]]:
        found = []
        for file in self._folder.glob("file-*"):
            try:
                status = file.stat()
            except OSError:
                continue
            found.append((status.st_mtime, status.st_size, file))
        return sorted(found)

    def _size(self) -> int:
        return sum(size for _, size, _ in self._entries())

    def _make_room(self) -> int:
        entries = self._entries()
        held = sum(size for _, size, _ in entries)
        for _, size, file in entries:
            if held <= self._limit * 3 // 4:
                break
            file.unlink(missing_ok=True)
            held -= size
        return held

    def __reduce__(self) -> tuple[type[DirectoryCache], tuple[Path, int]]:
        return DirectoryCache, (self._folder, self._limit)
