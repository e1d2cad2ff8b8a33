"""Tables in local directories.

A log may name any path, and a link in the directory may lead anywhere, so every file is opened only after its
real path is seen to lie below the table's own real directory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from lakepass.reader.errors import FileMissingError, PathRefusedError, StorageError
from lakepass.reader.location import Location
from lakepass.reader.storage.interface import DEFAULT_LIMIT, FileStatus, TooLargeError

_SCHEME = "file://"


class LocalStorage:
    """Files below one local directory."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._root = os.path.realpath("/" + location.path)

    def __repr__(self) -> str:
        return f"LocalStorage({self.location})"

    def __reduce__(self) -> tuple[type[LocalStorage], tuple[Location]]:
        return LocalStorage, (self.location,)

    def list(self, directory: str, start_after: str = "") -> Iterator[FileStatus]:
        """The files in a directory after a name, in order."""
        folder = directory.rstrip("/")
        try:
            local = self._real(folder)
            with os.scandir(local) as entries:
                names = sorted(entry.name for entry in entries if entry.name > start_after)
        except (FileNotFoundError, FileMissingError, NotADirectoryError):
            return
        except OSError as error:
            raise _failed("list", directory, error) from None
        for name in names:
            try:
                status = (Path(local) / name).stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield FileStatus(f"{folder}/{name}", status.st_size, status.st_mtime_ns // 1_000_000)

    def read(
        self, path: str, *, offset: int = 0, length: int | None = None, limit: int = DEFAULT_LIMIT
    ) -> bytes:
        """Bytes of a file."""
        local = self._real(path)
        try:
            with Path(local).open("rb") as file:
                wanted = length if length is not None else max(os.fstat(file.fileno()).st_size - offset, 0)
                if wanted > limit:
                    raise TooLargeError(path, wanted, limit)
                file.seek(offset)
                return file.read(wanted)
        except OSError as error:
            raise _failed("read", path, error) from None

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:  # noqa: ARG002
        """The file, read with positioned reads."""
        local = self._real(path)
        try:
            return pa.OSFile(local, "rb")
        except OSError as error:
            raise _failed("open", path, error) from None

    def _real(self, path: str) -> str:
        if "\x00" in path:
            raise PathRefusedError(f"Refused {path!r}: a path cannot hold a zero character.")
        try:
            real = os.path.realpath(path.removeprefix(_SCHEME), strict=True)
        except OSError as error:
            raise _failed("open", path, error) from None
        if real != self._root and not real.startswith(self._root.rstrip("/") + "/"):
            raise PathRefusedError(
                f"Refused {path!r}: its real place is outside {self.location}. A link must not lead out of"
                " the table; if the files belong to the table, give their directory as an auxiliary"
                " location."
            )
        return real


def _failed(operation: str, path: str, error: OSError) -> StorageError:
    if isinstance(error, FileNotFoundError):
        return FileMissingError(
            f"Cannot {operation} {path!r}: there is no such file. If the log names it, the table's data was"
            " deleted (vacuum) or moved; read a newer version or restore the file."
        )
    return StorageError(f"Cannot {operation} {path!r}: {error.strerror or error}.")
