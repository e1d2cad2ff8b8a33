"""Data files that are kept locally, for a cache that was told to keep them.

A data file never changes: the same id in the same table is the same content, whichever URL or credential it
was fetched with. Deletion vectors are small and are read where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakepass.reader.log.cache import DirectoryCache, LogCache
from lakepass.reader.storage import DEFAULT_LIMIT, FileStatus, Storage, Storages

_BLOCK = 8 << 20


def with_kept_files(storages: Storages, cache: LogCache | None, table: str) -> Storages:
    """The storages, through the cache if it keeps data; `table` tells tables apart."""
    if isinstance(cache, DirectoryCache) and cache.data:
        return _KeptStorages(storages, cache, table)
    return storages


class _KeptStorages(Storages):
    def __init__(self, storages: Storages, cache: LogCache, table: str) -> None:
        super().__init__(())
        self._inner = storages
        self._cache = cache
        self._table = table

    def storage_for(self, path: str) -> Storage:
        storage, name = self._inner.storage_for(path), self._inner.file_id(path)
        # In a process without the cache's directory, another kind of cache stands in for it.
        if not name or path.startswith("file:") or not isinstance(self._cache, DirectoryCache):
            return storage
        return _KeptStorage(storage, self._cache, f"{self._table}\n{name}")

    def file_id(self, path: str) -> str:
        return self._inner.file_id(path)

    def __repr__(self) -> str:
        return f"kept {self._inner!r}"


class _KeptStorage:
    """One file's storage."""

    def __init__(self, storage: Storage, cache: DirectoryCache, name: str) -> None:
        self._storage = storage
        self._cache = cache
        self._name = name

    def list(self, directory: str, start_after: str = "") -> Iterator[FileStatus]:
        return self._storage.list(directory, start_after)

    def read(
        self, path: str, *, offset: int = 0, length: int | None = None, limit: int = DEFAULT_LIMIT
    ) -> bytes:
        return self._storage.read(path, offset=offset, length=length, limit=limit)

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        if size is None or not self._cache.keeps(size):
            return self._storage.open(path, size)

        def content() -> Iterator[bytes]:
            file: Any = self._storage.open(path, size)
            try:
                while block := file.read(_BLOCK):
                    yield block
            finally:
                file.close()

        return self._cache.open(self._name, size, content) or self._storage.open(path, size)
