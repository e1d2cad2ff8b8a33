"""A Delta table at a location: the way in.

>>> from lakepass.reader import Table
>>> Table("/no/such/table").snapshot()
Traceback (most recent call last):
lakepass.reader.errors.NotATableError: file:///no/such/table is not a Delta table: ...
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from lakepass.reader.credentials import CredentialProvider
from lakepass.reader.errors import DeltaError, VersionNotFoundError
from lakepass.reader.history import HistoryEntry, read_history
from lakepass.reader.location import Location
from lakepass.reader.log.cache import LogCache, MemoryCache
from lakepass.reader.log.changes import CommitActions, commit_sequence
from lakepass.reader.log.files import FileColumns
from lakepass.reader.log.ratified import RatifiedCommit, ratified_commits
from lakepass.reader.log.segment import LogListing
from lakepass.reader.log.timeline import Timeline, parse_timestamp, parse_version
from lakepass.reader.snapshot import LogSource, Snapshot
from lakepass.reader.storage import Storages

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from deltalake import DeltaTable

    from lakepass.reader.deltalake_bridge import StorageOptions


class Table:
    """A Delta table in a local directory, on S3, ADLS or Cloud Storage.

    `credentials` is a callable that returns a `Credential`; without it the machine's own identity is used.
    `auxiliary` maps further locations that hold files of the table to their providers. `commits` are the
    ratified commits of a catalog-managed table, as its catalog hands them over. `cache` keeps commits, and
    may be shared by many tables.

    >>> table = Table("orders")
    >>> table.to_arrow(columns=["id"], filter="id <= 2").sort_by("id").column("id").to_pylist()
    [1, 2]
    """

    def __init__(
        self,
        location: str | os.PathLike[str] | Location,
        credentials: CredentialProvider | None = None,
        auxiliary: Mapping[str, CredentialProvider | None]
        | Mapping[Location, CredentialProvider | None]
        | Mapping[str | Location, CredentialProvider | None]
        | None = None,
        commits: Iterable[RatifiedCommit | str] | None = None,
        *,
        storages: Storages | None = None,
        cache: LogCache | None = None,
    ) -> None:
        self.location = _location(location)
        places = {_location(place): provider for place, provider in (auxiliary or {}).items()}
        self._credentials = credentials
        self._source = LogSource(
            self.location,
            storages or Storages.open(self.location, credentials, places),
            None if commits is None else ratified_commits(commits),
            cache or MemoryCache(),
        )

    def snapshot(self, version: int | None = None, timestamp: str | datetime | None = None) -> Snapshot:
        """The table at a version, at a time (ISO text or datetime, UTC without a zone), or as it is now.

        >>> Table("orders").snapshot(version=1).version
        1
        """
        if version is not None and timestamp is not None:
            raise DeltaError("Give a version or a timestamp, not both.")
        if timestamp is not None:
            version = self._timeline().version_at(parse_timestamp(timestamp))
        elif version is not None:
            version = parse_version(version)
        return Snapshot.open(self._source, version)

    def version_at(self, timestamp: str | datetime) -> int:
        """The latest version committed at or before a time.

        >>> table = Table("orders")
        >>> table.version_at(table.history()[1].timestamp)
        2
        """
        return self._timeline().version_at(parse_timestamp(timestamp))

    def version_from(self, timestamp: str | datetime) -> int:
        """The earliest version committed at or after a time.

        >>> table = Table("orders")
        >>> table.version_from(table.history()[1].timestamp)
        2
        """
        return self._timeline().version_from(parse_timestamp(timestamp))

    def commit_actions(
        self, start: int, end: int | None = None, *, stats: Literal["json"] | None = None, tags: bool = False
    ) -> Iterator[CommitActions]:
        """What each commit from `start` to `end` (inclusive; the latest when left out) says, in order.

        >>> [(commit.version, commit.adds.num_rows) for commit in Table("orders").commit_actions(1, 2)]
        [(1, 3), (2, 3)]
        """
        listing = LogListing.read(self._source.storage, self.location, max(start, 0), end)
        listing.ratify(self._source.ratified or {}, self._source.storage)
        last = end if end is not None else listing.latest
        wanted = range(start, (last if last is not None else start) + 1)
        missing = next((each for each in wanted if each not in listing.commits), None)
        if missing is not None or start < 0:
            everything = self._listing()
            known = sorted(everything.commits)
            held = f"commits {known[0]} to {known[-1]}" if known else "no commits"
            raise VersionNotFoundError(
                f"Commits {start} to {last} of {self.location} cannot be read:"
                f" {start if missing is None else missing} is not there; the log holds {held}."
            )
        commits = [listing.commits[each] for each in wanted]
        columns = FileColumns(stats, tags)
        return commit_sequence(self._source.storage, commits, self._source.cache, columns)

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """What was done to the table, newest first.

        >>> [entry.operation for entry in Table("orders").history(limit=2)]
        ['DELETE', 'WRITE']
        """
        return read_history(self._source, self.snapshot(), limit)

    def changes(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | None = None,
        ending_timestamp: str | datetime | None = None,
        **options: Any,
    ) -> Any:
        """The rows inserted, updated and deleted between two versions or times, as a scan.

        >>> changes = Table("feed").changes(2, 2)
        >>> sorted(set(changes.to_arrow().column("_change_type").to_pylist()))
        ['update_postimage', 'update_preimage']
        """
        from lakepass.reader.changes import changes_of

        return changes_of(
            self,
            starting_version=starting_version,
            ending_version=ending_version,
            starting_timestamp=starting_timestamp,
            ending_timestamp=ending_timestamp,
            **options,
        )

    def to_arrow(self, columns: Any = None, filter: Any = None, limit: int | None = None) -> pa.Table:
        """The latest rows as an Arrow table.

        >>> Table("orders").to_arrow(["id", "value"], [("id", "=", 4)]).to_pylist()
        [{'id': 4, 'value': 'd'}]
        """
        return self.snapshot().scan(columns, filter, limit).to_arrow()

    def to_pandas(self, columns: Any = None, filter: Any = None, limit: int | None = None) -> pd.DataFrame:
        """The latest rows as a pandas data frame.

        >>> Table("orders").to_pandas(filter="value > 'd'").shape
        (2, 15)
        """
        return self.snapshot().scan(columns, filter, limit).to_pandas()

    def to_polars(
        self, columns: Any = None, filter: Any = None, limit: int | None = None, *, lazy: bool = False
    ) -> pl.DataFrame | pl.LazyFrame:
        """The latest rows as a polars data frame, or a lazy one.

        >>> Table("orders").to_polars(["id"], limit=2).shape
        (2, 1)
        """
        return self.snapshot().scan(columns, filter, limit).to_polars(lazy=lazy)

    def to_reader(
        self, columns: Any = None, filter: Any = None, limit: int | None = None
    ) -> pa.RecordBatchReader:
        """The latest rows as a stream of batches.

        >>> sum(batch.num_rows for batch in Table("orders").to_reader())
        5
        """
        return self.snapshot().scan(columns, filter, limit).to_reader()

    def polars(self, filter: Any = None) -> pl.LazyFrame:
        """The latest rows as a polars LazyFrame, which reads only the columns a query names.

        >>> Table("orders").polars().select("value").sort("value").collect()["value"].to_list()
        ['a', 'b', 'd', 'e', 'f']
        """
        frame: Any = self.snapshot().scan(filter=filter).to_polars(lazy=True)
        lazy: pl.LazyFrame = frame
        return lazy

    def duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None, filter: Any = None
    ) -> duckdb.DuckDBPyRelation:
        """The latest rows as a DuckDB relation, of `connection` or of one of its own.

        >>> Table("orders").duckdb().aggregate("max(id)").fetchall()
        [(6,)]
        """
        return self.snapshot().scan(filter=filter).to_duckdb(connection)

    def storage_options(self) -> StorageOptions:
        """Options for the deltalake package, with this table's credential; see
        `lakepass.reader.deltalake_bridge`.

        >>> dict(Table("orders").storage_options())
        {}
        """
        from lakepass.reader.deltalake_bridge import ambient_options, static_options

        if self._credentials is None:
            return ambient_options(self.location)
        return static_options(self.location, self._credentials())

    def deltalake(self, version: int | None = None, *, query_builder: bool = False) -> DeltaTable:
        """The table as the deltalake package's `DeltaTable`, where that reads it rightly.

        >>> Table("orders").deltalake().version()
        3
        """
        from lakepass.reader.deltalake_bridge import open_with_deltalake

        snapshot = self.snapshot(version)
        return open_with_deltalake(
            self.location,
            self.storage_options(),
            snapshot.protocol,
            snapshot.metadata,
            query_builder=query_builder,
            version=snapshot.version,
        )

    def _listing(self) -> LogListing:
        listing = LogListing.read(self._source.storage, self.location)
        listing.ratify(self._source.ratified or {}, self._source.storage)
        return listing

    def _timeline(self) -> Timeline:
        latest = self.snapshot()
        return Timeline(self._listing(), latest._state, self._source.storage, self._source.cache)

    def __repr__(self) -> str:
        return f"Table({str(self.location)!r})"


def _location(place: str | os.PathLike[str] | Location) -> Location:
    if isinstance(place, Location):
        return place
    text = os.fspath(place)
    if "://" not in text and not text.startswith("file:"):
        text = str(Path(text).expanduser().absolute()) if not text.startswith("/") else text
        text = os.path.normpath(text)
    return Location.parse(text, allow_root=True)
