"""Files behind plain HTTP addresses, such as the pre-signed URLs of a share.

A path is the address itself, with an optional `#fragment` by which its owner knows the file; the fragment is
never sent. Addresses end: when the server says so, the owner is asked once for a new one and the request goes
on where it was.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pyarrow as pa

from lakepass.reader.errors import AccessRefusedError, FileMissingError, StorageError
from lakepass.reader.secrets import scrub, shown_address
from lakepass.reader.storage.interface import DEFAULT_LIMIT, FileStatus, TooLargeError
from lakepass.reader.storage.ranged import ranged

Renew = Callable[[str], str]

_ATTEMPTS = 6
_TIMEOUTS = 2
"""How many attempts may end in a timeout: a server that hangs is given up sooner than one that fails."""
_FIRST_WAIT = 0.2
_LONGEST_WAIT = 10.0
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_ENDED = frozenset({400, 401, 403, 410})
"""What stores answer to an address whose signature has ended; S3 says 403, or 400 when the keys' token ended.
"""


class HttpStorage:
    """Addresses that are read with ranged requests, each with a way to get a new one."""

    def __init__(self, renew: Renew | None = None, *, client: httpx.Client | None = None) -> None:
        self._renew = renew
        self._client = client
        self._lock = threading.Lock()
        self._addresses: dict[str, str] = {}

    def __reduce__(self) -> tuple[type[HttpStorage], tuple[Renew | None]]:
        return HttpStorage, (self._renew,)

    def __repr__(self) -> str:
        return "HttpStorage()"

    def list(self, directory: str, start_after: str = "") -> Iterator[FileStatus]:  # noqa: ARG002
        """HTTP has no listing."""
        raise StorageError(f"Cannot list {shown_address(directory)}: a plain HTTP server lists nothing.")

    def read(
        self, path: str, *, offset: int = 0, length: int | None = None, limit: int = DEFAULT_LIMIT
    ) -> bytes:
        """Bytes of the file, streamed with a check of the limit."""
        if length is not None and length > limit:
            raise TooLargeError(shown_address(path), length, limit)
        if length == 0:
            return b""
        data, _ = self._get(path, offset, length, limit)
        return data

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """The file for ranged reads; one request finds its size when it is not known."""
        if size is None:
            _, size = self._get(path, 0, 1, 1)
        return ranged(
            shown_address(path), size, lambda offset, length: self._get(path, offset, length, length)[0]
        )

    def _get(self, path: str, offset: int, length: int | None, limit: int) -> tuple[bytes, int]:
        """The bytes, and the size of the whole file."""
        renewed = False
        failure = ""
        timeouts = 0
        for attempt in range(_ATTEMPTS):
            if attempt:
                wait = min(_FIRST_WAIT * 2 ** (attempt - 1), _LONGEST_WAIT)
                time.sleep(wait * (0.5 + random.random() / 2))  # noqa: S311
            address = self._addresses.get(path, path).partition("#")[0]
            try:
                with self._http().stream("GET", address, headers=_headers(offset, length)) as answer:
                    if address.lower().startswith("https:") and answer.url.scheme != "https":
                        raise StorageError(
                            f"Cannot read {shown_address(path)}: the server redirects to an address without "
                            "encryption. Ask the provider to look."
                        )
                    if answer.status_code in (200, 206):
                        return _body(path, answer, offset, length, limit)
                    status = answer.status_code
            except httpx.HTTPError as error:
                failure = scrub(str(error) or type(error).__name__)
                timeouts += isinstance(error, httpx.TimeoutException)
                if timeouts < _TIMEOUTS:
                    continue
                break
            if status in _ENDED and self._renew is not None and not renewed:
                renewed = True
                self._renew_address(path, address)
                continue
            if status in _RETRIED:
                failure = f"status {status}"
                continue
            raise _refused(path, status)
        raise StorageError(
            f"Cannot read {shown_address(path)}: {failure}, after {attempt + 1} attempts. Try again later."
        )

    def _renew_address(self, path: str, failed: str) -> None:
        with self._lock:
            # Another thread may have been first.
            if self._addresses.get(path, path).partition("#")[0] == failed and self._renew is not None:
                self._addresses[path] = self._renew(path)

    def _http(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                self._client = httpx.Client(
                    timeout=httpx.Timeout(60, connect=10),
                    follow_redirects=True,  # no token goes along: an address is all there is to it
                    limits=httpx.Limits(max_connections=64, max_keepalive_connections=32),
                )
            return self._client


def _headers(offset: int, length: int | None) -> dict[str, str]:
    # Ranges and sizes are those of the file itself, never of a compressed form of it.
    headers = {"Accept-Encoding": "identity"}
    if length is not None:
        headers["Range"] = f"bytes={offset}-{offset + length - 1}"
    elif offset:
        headers["Range"] = f"bytes={offset}-"
    return headers


def _body(
    path: str, answer: httpx.Response, offset: int, length: int | None, limit: int
) -> tuple[bytes, int]:
    """The bytes asked for, whether the server knows ranges or sends the whole file."""
    whole = answer.status_code == 200
    size = _size(answer)
    start = answer.headers.get("content-range", "").removeprefix("bytes ").partition("-")[0]
    if not whole and start.isdigit() and int(start) != offset:
        raise StorageError(
            f"Cannot read {shown_address(path)}: bytes from {offset} on were asked for, and the server sent "
            f"those from {start} on. A proxy or cache on the way mixes up ranges; read around it."
        )
    skip = offset if whole else 0
    pieces: list[bytes] = []
    held = 0
    for chunk in answer.iter_raw():
        piece = chunk[skip:]
        skip = max(skip - len(chunk), 0)
        pieces.append(piece)
        held += len(piece)
        # What follows in a whole file was not asked for; the end of a range keeps the connection open.
        if whole and length is not None and held >= length:
            break
        if held > limit:
            raise TooLargeError(shown_address(path), max(size, held), limit)
    data = b"".join(pieces)
    return data if length is None else data[:length], size


def _size(answer: httpx.Response) -> int:
    _, _, total = answer.headers.get("content-range", "").rpartition("/")
    text = total or answer.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _refused(path: str, status: int) -> StorageError:
    shown = shown_address(path)
    if status == 404:
        return FileMissingError(
            f"Cannot read {shown}: there is no such file. The table changed since it was listed; read it"
            " again."
        )
    if status in (401, 403):
        return AccessRefusedError(
            f"Cannot read {shown}: the server refused the address (status {status}). It may have ended; list"
            " the table again."
        )
    return StorageError(f"Cannot read {shown}: the server answered with status {status}.")
