"""Keeps what never changes: commits, checksums, checkpoints that are small enough, data files if told to.

Every newer snapshot of a table needs them again. A file of the log is known by its path, size and time, so
that a table that was replaced by another one at the same place is not mistaken for it; a data file by its
table and id. The cache also remembers from which version on a table's log was listed, which makes reopening
an unchanged table one listing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from lakepass.reader.storage import FileStatus, Storage
from lakepass.reader.storage.ranged import ranged

_CHECKSUM_BYTES = 4
_BLOCK = 1 << 20
_ABANDONED = 3600.0
"""Seconds after which a file that is still being written was left behind by a process that was ended."""


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

    Give it to `Table(..., cache=DirectoryCache(folder))` or `SharingClient(..., cache=...)`. With `data`, the
    data files of object stores and URLs are kept too, whole, up to an eighth of the limit each: for rows that
    are read again and again. Names are digests and tell nothing; what is in the files is as confidential as
    the tables, and the folder is made for its user alone. Losing it loses nothing, and what was damaged in it
    is not used.

    >>> from lakepass.reader import Table
    >>> Table("orders", cache=DirectoryCache("kept", limit=100 << 20)).snapshot().scan().count()
    5
    """

    def __init__(self, folder: str | os.PathLike[str], limit: int = 1 << 30, *, data: bool = False) -> None:
        self._folder = Path(folder).expanduser()
        self._limit = limit
        self.data = data
        """Whether data files are kept."""
        self._lock = threading.Lock()
        self._filling: dict[Path, threading.Lock] = {}
        self._unseen: int | None = None
        self._checked: set[Path] = set()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, status: FileStatus) -> bytes | None:
        """The file's bytes if they are kept."""
        file = self._file(status)
        try:
            stored = file.read_bytes()
            os.utime(file)
        except OSError:
            return None
        data, end = stored[: status.size], stored[status.size :]
        return data if end == _checksum(zlib.crc32(data)) else None

    def put(self, status: FileStatus, data: bytes) -> None:
        """Keeps the bytes; the oldest files make room."""
        if len(data) == status.size and status.size <= self._limit // 2:
            self._store(self._file(status), [data])

    def keeps(self, size: int) -> bool:
        """Checkpoints and data files are kept up to an eighth of the room."""
        return 0 < size <= self._limit // 8

    def open(self, name: str, size: int, content: Callable[[], Iterable[bytes]]) -> pa.NativeFile | None:
        """A data file by whatever names it, fetched once; None when it cannot be kept."""
        file = self._named("file", f"data\n{name}\n{size}")
        with self._lock:
            filling = self._filling.setdefault(file, threading.Lock())
        # The pieces of a file are read by several threads; one fetches it for all.
        with filling:
            opened = self._opened(file, size)
            if opened is None:
                self._store(file, content())
                opened = self._opened(file, size)
        with self._lock:
            self._filling.pop(file, None)
        return opened

    def _opened(self, file: Path, size: int) -> pa.NativeFile | None:
        try:
            kept: Any = pa.OSFile(str(file), "rb")
        except OSError:
            return None
        if not self._whole(file, kept, size):
            kept.close()
            return None
        with contextlib.suppress(OSError):
            os.utime(file)

        def fetch(offset: int, length: int) -> bytes:
            data: bytes = kept.read_at(length, offset)
            return data

        return ranged(f"the cached file {file}", size, fetch, kept.close)

    def _whole(self, file: Path, kept: Any, size: int) -> bool:
        """Whether it is what was stored; looked at once by each process."""
        if kept.size() != size + _CHECKSUM_BYTES:
            return False
        if file not in self._checked:
            seen = 0
            for offset in range(0, size, _BLOCK):
                seen = zlib.crc32(kept.read_at(min(_BLOCK, size - offset), offset), seen)
            if kept.read_at(_CHECKSUM_BYTES, size) != _checksum(seen):
                return False
            self._checked.add(file)
        return True

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
            self._write(self._named("start", root), [str(version).encode()])

    def _file(self, status: FileStatus) -> Path:
        return self._named("file", f"{status.path}\n{status.size}\n{status.modified_ms}")

    def _named(self, kind: str, text: str) -> Path:
        return self._folder / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()}"

    def _store(self, file: Path, content: Iterable[bytes]) -> None:
        size = self._write(file, _with_checksum(content))
        with self._lock:
            self._unseen = None if self._unseen is None else self._unseen + size
            # Other processes fill the same directory, so now and then it is looked at.
            if self._unseen is None or self._unseen > self._limit // 16:
                self._make_room()
                self._unseen = 0

    def _write(self, file: Path, content: Iterable[bytes]) -> int:
        """Whole or not at all, also when the disk is full: a cache must not be a reason to fail."""
        size = 0
        try:
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="new-")
            try:
                with os.fdopen(handle, "wb") as new:
                    for block in content:
                        size += new.write(block)
                Path(name).replace(file)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError:
            return 0
        return size

    def _make_room(self) -> None:
        entries = sorted(self._entries())
        held = sum(size for _, size, _ in entries)
        if held <= self._limit:
            return
        for _, size, file in entries:
            if held <= self._limit * 3 // 4:
                break
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
                held -= size

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        for file in self._folder.glob("*-*"):
            try:
                status = file.stat()
            except OSError:
                continue
            if file.name.startswith("file-") or (
                file.name.startswith("new-") and status.st_mtime < time.time() - _ABANDONED
            ):
                yield status.st_mtime, status.st_size, file

    def __reduce__(self) -> tuple[Callable[..., LogCache], tuple[Path, int, bool]]:
        return _elsewhere, (self._folder, self._limit, self.data)


def _elsewhere(folder: Path, limit: int, data: bool) -> LogCache:
    """The cache in the process that a scan was sent to, which may have no such directory."""
    try:
        return DirectoryCache(folder, limit, data=data)
    except OSError:
        return MemoryCache()


def _checksum(value: int) -> bytes:
    return value.to_bytes(_CHECKSUM_BYTES, "big")


def _with_checksum(content: Iterable[bytes]) -> Iterator[bytes]:
    seen = 0
    for block in content:
        seen = zlib.crc32(block, seen)
        yield block
    yield _checksum(seen)
