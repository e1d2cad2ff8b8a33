"""Pre-signed URLs as paths, and fresh ones when they end.

In `url` mode a file's path is the URL the server signed, with the file's id and the URL's end behind a `#`,
which is never sent. With it a URL that has ended, or is about to, is replaced: the query is asked again, by
its refresh token or for the same version, and the file found by its id. A scan that outlives its URLs gives
the same rows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.errors import PathRefusedError, SharingError, VersionNotFoundError
from lakepass.reader.secrets import scrub_http_log, shown_address
from lakepass.reader.sharing.actions import Column, End, Files, Header
from lakepass.reader.sharing.names import TableName
from lakepass.reader.sharing.rest import ResponseFormat, Rest
from lakepass.reader.storage.http import HttpStorage
from lakepass.reader.storage.interface import DEFAULT_LIMIT, FileStatus, Storage
from lakepass.reader.storage.locations import Storages

log = logging.getLogger("lakepass.sharing")

_AHEAD_MS = 10_000
"""A URL with less life than this is replaced before it is used."""


def signed_paths(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` with its URLs as paths that know their file; deletion vectors that are URLs likewise."""
    columns: dict[str, Column] = dict(zip(batch.schema.names, batch.columns, strict=True))
    ends = columns["expires_ms"].cast(pa.string()).fill_null("")
    paths = _joined(columns["url"], columns["id"], ends)
    vectors = columns["deletion_vector"]
    if vectors.null_count < len(vectors):
        fields = {field.name: pc.struct_field(vectors, [i]) for i, field in enumerate(vectors.type)}
        # Versions of a file may have different vectors, so a vector goes by its own id if it has one.
        ids = pc.coalesce(columns["deletion_vector_id"], columns["id"])
        own = pc.replace_substring_regex(ids, "^", "dv:", max_replacements=1)
        urls = _joined(fields["path_or_inline"], own, ends)
        signed = pc.equal(fields["storage_type"], pa.scalar("p"))
        fields["path_or_inline"] = pc.if_else(signed, urls, fields["path_or_inline"])
        vectors = pa.StructArray.from_arrays(
            list(fields.values()), fields=list(vectors.type), mask=pc.is_null(vectors)
        )
    columns["url"], columns["deletion_vector"] = paths, vectors
    return pa.record_batch(columns)


def _joined(urls: Column, ids: Column, ends: Column) -> Column:
    return pc.binary_join_element_wise(pc.binary_join_element_wise(urls, ids, "#"), ends, "~")


def _parts(path: str) -> tuple[str, str, int | None]:
    """URL, key and end of a path."""
    url, _, fragment = path.partition("#")
    key, _, end = fragment.rpartition("~")
    return url, key, int(end) if end.isdigit() else None


class Signed:
    """One query's URLs, renewed for all its readers at once; pickles as the query."""

    def __init__(
        self,
        rest: Rest,
        name: TableName,
        body: Mapping[str, Any],
        version: int | None,
        *,
        accepted: ResponseFormat = "delta,parquet",
        changes: bool = False,
        refresh_token: str | None = None,
    ) -> None:
        self.rest = rest
        self.name = name
        self.body = dict(body)
        self.version = version
        self.accepted: ResponseFormat = accepted
        self.changes = changes
        self.refresh_token = refresh_token
        self._lock = threading.Lock()
        self._fresh: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Signed({str(self.name)!r}, version={self.version})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock(), _fresh={})

    def current(self, path: str) -> str:
        """`path`, or a fresh one when it is about to end."""
        _, key, end = _parts(path)
        now = (time.time() + self.rest.transport.skew.total_seconds()) * 1000
        if end is None or end - now > _AHEAD_MS:
            return path
        known = self._fresh.get(key)
        if known is not None:
            known_end = _parts(known)[2]
            if known_end is None or known_end > now:
                return known
        return self.renew(path)

    def renew(self, path: str) -> str:
        """A fresh path for the same file."""
        url, key, _ = _parts(path)
        with self._lock:
            known = self._fresh.get(key)
            if known is None or _parts(known)[0] == url:
                self._ask_again()
                known = self._fresh.get(key)
        if known is None:
            raise SharingError(
                f"The URL of a file of {self.name} has ended, and the server no longer lists the file for "
                f"version {self.version}. Read the table again."
            )
        return known

    def _ask_again(self) -> None:
        log.info("the URLs of %s (version %s) have ended; asking for fresh ones", self.name, self.version)
        found: dict[str, str] = {}
        for action in self._answer():
            if isinstance(action, Header):
                self._check_version(action)
            elif isinstance(action, Files):
                for key, path in _keyed(signed_paths(action.batch)):
                    # The same id for two files would give one's rows for the other's.
                    if found.setdefault(key, path).partition("?")[0] != path.partition("?")[0]:
                        raise SharingError(
                            f"The URLs of {self.name} have ended, and fresh ones cannot be told apart: the "
                            f"server gives several files the id {key[:100]!r}. Read the table again, in less "
                            "time or in parts.",
                            200,
                        )
            elif isinstance(action, End) and action.refresh_token:
                self.refresh_token = action.refresh_token
        self._fresh = found

    def _answer(self) -> Iterator[Header | Files | End]:
        if self.changes:
            yield from self.rest.changes(self.name, self.body, self.accepted)
            return
        hints = {name: value for name, value in self.body.items() if name.endswith(("Hints", "Hint"))}
        if self.refresh_token:
            try:
                yield from self.rest.query(
                    self.name, {**hints, "refreshToken": self.refresh_token}, self.accepted
                )
            except SharingError as error:
                if error.status != 400:
                    raise
                # The token itself has ended.
                self.refresh_token = None
            else:
                return
        try:
            pinned = {**hints, "version": self.version}
            yield from self.rest.query(self.name, pinned, self.accepted)
        except SharingError as error:
            if error.status != 400:
                raise
            # Without history sharing a version cannot be named; the latest may still be the same.
            yield from self.rest.query(self.name, {**hints, "includeRefreshToken": True}, self.accepted)

    def _check_version(self, header: Header) -> None:
        if not self.changes and None not in (header.version, self.version) and header.version != self.version:
            raise VersionNotFoundError(
                f"The URLs of {self.name} have ended while version {self.version} was read. The table is at "
                f"version {header.version} now, and the server does not share its history. Read the table "
                "again."
            )


def _keyed(batch: pa.RecordBatch) -> Iterator[tuple[str, str]]:
    yield from zip(batch.column("id").to_pylist(), batch.column("url").to_pylist(), strict=True)
    vectors: Column = batch.column("deletion_vector")
    for vector in vectors.drop_null().to_pylist():
        if vector["storage_type"] == "p":
            yield _parts(vector["path_or_inline"])[1], vector["path_or_inline"]


class SignedStorage:
    """Reads signed paths over HTTP, with fresh URLs where they are needed."""

    def __init__(self, signed: Signed) -> None:
        scrub_http_log()
        self._signed = signed
        self._http = HttpStorage(signed.renew)

    def __repr__(self) -> str:
        return f"SignedStorage({self._signed!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return SignedStorage, (self._signed,)

    def list(self, directory: str, start_after: str = "") -> Iterator[FileStatus]:  # noqa: ARG002
        """URLs cannot be listed."""
        raise PathRefusedError(
            f"{shown_address(directory)} cannot be listed: only its files were shared, by URL."
        )

    def read(
        self, path: str, *, offset: int = 0, length: int | None = None, limit: int = DEFAULT_LIMIT
    ) -> bytes:
        """Bytes of a file."""
        return self._http.read(self._signed.current(path), offset=offset, length=length, limit=limit)

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """A file for random access."""
        return self._http.open(self._signed.current(path), size)


class SignedStorages(Storages):
    """All that may be read in `url` mode: the URLs the server gave."""

    def __init__(self, signed: Signed) -> None:
        super().__init__(())
        self._storage = SignedStorage(signed)

    def storage_for(self, path: str) -> Storage:
        """The storage of a signed path; anything else is refused."""
        if path.lower().startswith(("https://", "http://")):
            return self._storage
        raise PathRefusedError(
            f"Refused {shown_address(path)[:200]!r}: the server shares this table by URL, and this is none."
        )

    def file_id(self, path: str) -> str:
        """The id that the server gave the file, the same for every URL."""
        return _parts(path)[1]

    def __repr__(self) -> str:
        return f"SignedStorages({self._storage!r})"
