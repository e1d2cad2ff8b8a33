"""A shared table in `url` mode: snapshots and changes from query answers instead of a log.

A `UrlSnapshot` is a source of files like a log's snapshot, so the same scan reads both: partition and
statistics skipping on what the server sends, deletion vectors, column mapping. The files are asked for when
a scan wants them, with the scan's filter and limit as hints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import pyarrow as pa

from lakepass.reader.data.kept_files import with_kept_files
from lakepass.reader.errors import SharingError, UnsupportedTableError, VersionNotFoundError
from lakepass.reader.features import check_readable
from lakepass.reader.location import Location
from lakepass.reader.log.actions import Metadata, Protocol
from lakepass.reader.log.cache import LogCache
from lakepass.reader.log.files import FILE_SCHEMA, FileColumns
from lakepass.reader.log.stats import parse_json_stats
from lakepass.reader.schema import arrow_schema, parse_schema
from lakepass.reader.sharing.actions import Column, End, Files, Header
from lakepass.reader.sharing.hints import hints
from lakepass.reader.sharing.names import TableName
from lakepass.reader.sharing.rest import ResponseFormat, Rest, protocol_timestamp
from lakepass.reader.sharing.signed import Signed, SignedStorages, signed_paths
from lakepass.reader.storage import Storages
from lakepass.reader.types import StructType

if TYPE_CHECKING:
    from lakepass.reader.scan import Scan

_MOST_HINTED_ROWS = 2**31 - 1


class UrlSnapshot:
    """A shared table at a version, its files by URL."""

    def __init__(
        self,
        rest: Rest,
        name: TableName,
        header: Header,
        *,
        latest: bool,
        accepted: ResponseFormat = "delta,parquet",
        body: dict[str, Any] | None = None,
        cache: LogCache | None = None,
    ) -> None:
        self._rest = rest
        self._name = name
        self._header = header
        self._latest = latest
        """Whether the version was the newest when it was looked at, and so need not be named."""
        self._accepted: ResponseFormat = accepted
        self._body = body or {}
        self._cache = cache
        where = f"the metadata of {name}"
        self.protocol = Protocol.parse(header.protocol, where) if header.delta else Protocol(1, 2)
        self.metadata = Metadata.parse(header.metadata, where)
        # The server has put the catalog's commits, checkpoints and sidecars together already.
        check_readable(self.protocol, str(name), has_commits=True)
        self.read_with(Signed(rest, name, self._body, header.version, accepted=accepted))

    def read_with(self, signed: Signed) -> None:
        """Read by the URLs of a query."""
        self._signed = signed
        table = f"{self._rest.transport.profile.endpoint}\n{self._name}\n{self.metadata.id}"
        self.storages: Storages = with_kept_files(SignedStorages(signed), self._cache, table)

    @property
    def version(self) -> int:
        """The version this is."""
        if self._header.version is None:
            raise SharingError(f"The server did not say which version of {self._name} it answered with.", 200)
        return self._header.version

    @property
    def root(self) -> Location:
        """Where the table is, as far as a recipient of URLs may know: its name at the server."""
        return Location("https", urlsplit(self._rest.transport.profile.endpoint).netloc, self._name.path[1:])

    @property
    def timestamp_ms(self) -> int:
        """Not told by the protocol."""
        raise UnsupportedTableError(
            f"When version {self._header.version} of {self._name} was committed is in its log, which url "
            "access does not show. Use access='dir' where the provider offers it."
        )

    @property
    def partition_columns(self) -> list[str]:
        """The logical names of the columns the table is partitioned by."""
        return list(self.metadata.partition_columns)

    @cached_property
    def columns(self) -> StructType:
        """The parsed schema."""
        return parse_schema(self.metadata.schema_string)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns with their logical names."""
        return arrow_schema(self.columns)

    @property
    def size(self) -> int | None:
        """Bytes of the table, where the server tells."""
        return self._header.extra.get("size")

    @property
    def file_count(self) -> int | None:
        """Files of the table, where the server tells."""
        return self._header.extra.get("numFiles")

    def resolve(self, path: str) -> str:
        """A signed path is whole already."""
        return path

    def update(self) -> UrlSnapshot:
        """The latest snapshot."""
        header = self._rest.metadata(self._name)
        if header.version == self._header.version:
            return self
        return UrlSnapshot(
            self._rest, self._name, header, latest=True, accepted=self._accepted, cache=self._cache
        )

    def scan(
        self,
        columns: Any = None,
        filter: Any = None,
        limit: int | None = None,
        *,
        json_hints: str | None = None,
        **options: Any,
    ) -> Scan:
        """A scan of this version; its filter and limit go to the server as hints, or `json_hints` as
        given."""
        from lakepass.reader.scan import Scan

        body = dict(self._body)
        planned = Scan(self, columns=columns, filter=filter, limit=limit, **options)
        body.update(hints(planned.filter, self.partition_columns))
        if json_hints is not None:
            body["jsonPredicateHints"] = json_hints
        # With a filter, a server that counts rows before filtering would send too few files.
        if limit is not None and planned.filter is None and 0 < limit <= _MOST_HINTED_ROWS:
            body["limitHint"] = limit
        hinted = UrlSnapshot(
            self._rest,
            self._name,
            self._header,
            latest=self._latest,
            accepted=self._accepted,
            body=body,
            cache=self._cache,
        )
        return Scan(hinted, columns=columns, filter=filter, limit=limit, **options)

    def file_batches(
        self, *, stats: pa.Schema | Literal["json"] | None = None, tags: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The files, in batches of `FILE_SCHEMA` and the columns asked for, as the server's answer
        comes in."""
        columns = FileColumns(stats, tags)
        for action in self._answer():
            if isinstance(action, Files) and action.kind == "add":
                yield file_batch(signed_paths(action.batch), columns)
            elif isinstance(action, End):
                self._signed.refresh_token = action.refresh_token

    def _answer(self) -> Iterator[Files | End]:
        body = self._body
        if self._latest:
            first = self._rest.query(self._name, {**body, "includeRefreshToken": True}, self._accepted)
            header = next(first)
            assert isinstance(header, Header)
            # A server that leaves one of them out says nothing about a change.
            if header.version is None or self._header.version in (None, header.version):
                yield from self._files(first)
                return
            # The table has moved on since the snapshot was taken; name the version from now on.
            self._latest = False
        try:
            actions = self._rest.query(self._name, {**body, "version": self.version}, self._accepted)
            header = next(actions)
        except SharingError as error:
            if error.status != 400:
                raise
            raise VersionNotFoundError(
                f"Version {self.version} of {self._name} cannot be read any more: the table has moved on, "
                f"or the server does not share its history. Take a new snapshot. ({error})"
            ) from None
        assert isinstance(header, Header)
        if header.version not in (None, self.version):
            raise VersionNotFoundError(
                f"Version {self.version} of {self._name} was asked for and the server answered with "
                f"{header.version}. Its answers do not belong together; ask the provider to look."
            )
        yield from self._files(actions)

    @staticmethod
    def _files(actions: Iterator[Header | Files | End]) -> Iterator[Files | End]:
        for action in actions:
            if not isinstance(action, Header):
                yield action

    def __repr__(self) -> str:
        return f"UrlSnapshot({str(self._name)!r}, version={self._header.version})"


def file_batch(batch: pa.RecordBatch, columns: FileColumns) -> pa.RecordBatch:
    """Actions with signed paths as a batch of files."""
    held: dict[str, Column] = dict(zip(batch.schema.names, batch.columns, strict=True))
    held["path"] = held["url"]
    chosen = [held[name] for name in FILE_SCHEMA.names]
    if columns.stats == "json":
        chosen.append(held["stats"])
    elif columns.stats is not None:
        chosen.append(parse_json_stats(held["stats"], columns.stats))
    if columns.tags:
        tags: Any = columns.schema.field("tags").type
        chosen.append(pa.nulls(len(batch), tags))
    return pa.RecordBatch.from_arrays(chosen, schema=columns.schema)


class UrlTable:
    """A shared table read by URL."""

    def __init__(
        self,
        rest: Rest,
        name: TableName,
        accepted: ResponseFormat = "delta,parquet",
        cache: LogCache | None = None,
    ) -> None:
        self._rest = rest
        self._name = name
        self._accepted: ResponseFormat = accepted
        self._cache = cache

    def snapshot(
        self,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        *,
        known: Header | None = None,
    ) -> UrlSnapshot:
        """The table at a version, at a time, or as it is now; `known` is metadata that was just fetched."""
        if version is None and timestamp is None:
            header = known or self._rest.metadata(self._name)
            return self._at(header, latest=True)
        # Every server answers a query at a version with that version's metadata; not every one does so for
        # /metadata. One file is enough to ask for.
        body: dict[str, Any] = {"limitHint": 1}
        if version is not None:
            body["version"] = version
        else:
            assert timestamp is not None
            body["timestamp"] = protocol_timestamp(timestamp)
        answer = self._rest.query(self._name, body, self._accepted, page_files=1)
        first = next(answer)
        answer.close()
        assert isinstance(first, Header)
        header = first
        if version is not None and header.version not in (None, version):
            raise VersionNotFoundError(
                f"Version {version} of {self._name} was asked for and the server answered with "
                f"{header.version}."
            )
        header = replace(header, version=header.version if header.version is not None else version)
        return self._at(header, latest=False)

    def _at(self, header: Header, *, latest: bool) -> UrlSnapshot:
        return UrlSnapshot(
            self._rest, self._name, header, latest=latest, accepted=self._accepted, cache=self._cache
        )

    def version_at(self, timestamp: str | datetime) -> int:
        """The latest version committed at or before a time."""
        return self.snapshot(timestamp=timestamp).version

    def version_from(self, timestamp: str | datetime) -> int:
        """The earliest version committed at or after a time."""
        return self._rest.version(self._name, protocol_timestamp(timestamp))
