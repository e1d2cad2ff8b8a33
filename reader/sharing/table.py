"""A shared table: a `Table` like one opened by path, whichever way the server lets it be read.

In `dir` mode it is a table at its location, with a credential per location that the server vends and this
client renews. In `url` mode its snapshots come from the server's answers. `access` tells which it is; with
`access="auto"` it may go from `dir` to `url` while the table is opened, and says so in a log line.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow.compute as pc

from lakepass.reader import paths
from lakepass.reader.changes import Changes, changes_of
from lakepass.reader.credentials import Credential
from lakepass.reader.deltalake_bridge import (
    StorageOptions,
    can_renew,
    open_with_deltalake,
    renewing_options,
    static_options,
)
from lakepass.reader.errors import (
    DeltaError,
    PathRefusedError,
    SharingError,
    UnsupportedTableError,
)
from lakepass.reader.history import HistoryEntry
from lakepass.reader.location import Location, LocationError
from lakepass.reader.log.cache import LogCache
from lakepass.reader.log.changes import CommitActions
from lakepass.reader.log.timeline import parse_version
from lakepass.reader.sharing.access import (
    Access,
    AccessModeError,
    Choice,
    Mode,
    choose,
    listed_modes,
    reason_to_fall_back,
)
from lakepass.reader.sharing.actions import Column, Header
from lakepass.reader.sharing.names import TableName
from lakepass.reader.sharing.profile import origin
from lakepass.reader.sharing.rest import ResponseFormat, Rest
from lakepass.reader.sharing.url_changes import UrlChanges
from lakepass.reader.sharing.urls import UrlSnapshot, UrlTable
from lakepass.reader.sharing.vended import VendedProvider, provider_for
from lakepass.reader.snapshot import Snapshot
from lakepass.reader.table import Table

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from lakepass.reader.scan import Scan

log = logging.getLogger("lakepass.sharing")

Result = TypeVar("Result")

_FRESH_SECONDS = 5.0


class SharedTable(Table):
    """A table of a share. Comes from `SharingClient.table`."""

    def __init__(
        self,
        rest: Rest,
        name: TableName,
        access: Access = "auto",
        location: str | None = None,
        *,
        accepted: ResponseFormat = "delta,parquet",
        cache: LogCache | None = None,
    ) -> None:
        # Not the base's: where the table is, and whether that may be known, is the server's to say.
        self.name = str(name)
        self._rest = rest
        self._table_name = name
        self._accepted: ResponseFormat = accepted
        self._cache = cache
        self._by_url = UrlTable(rest, name, accepted, cache)
        header = rest.metadata(name)
        self._fresh: Header | None = header
        self._fresh_until = time.monotonic() + _FRESH_SECONDS
        modes = listed_modes(header.extra.get("accessModes"))
        self._offered = modes or ("url",)
        self._choice: Choice = choose(access, modes, self.name, location_given=location is not None)
        self._directory: Table | None = None
        self._providers: dict[Location, VendedProvider] = {}
        if self._choice.mode == "dir":
            try:
                self._directory = self._open_directory(header, location)
            except DeltaError as error:
                self._fall_back(error)

    def _open_directory(self, header: Header, given: str | None) -> Table:
        place = given or header.extra.get("location") or self._vended_location()
        root = _remote(str(place), self.name)
        others = [_remote(str(one), self.name) for one in header.extra.get("auxiliaryLocations") or ()]
        self._providers = {
            one: provider_for(self._rest, self._table_name, one, one == root) for one in (root, *others)
        }
        auxiliary = {one: provider for one, provider in self._providers.items() if one != root}
        return Table(root, self._providers[root], auxiliary, cache=self._cache)

    def _vended_location(self) -> str:
        fields = self._rest.credentials(self._table_name).get("credentials") or {}
        if not fields.get("location"):
            raise SharingError(
                f"The server offers {self.name} by directory and does not say where it is.", 200
            )
        return str(fields["location"])

    @property
    def access(self) -> Mode:
        """`dir` or `url`: how the table is read."""
        return self._choice.mode

    @property
    def offered_modes(self) -> tuple[str, ...]:
        """What the server offers, whether this reader knows it or not."""
        return self._offered

    def credential(self, location: str | Location | None = None) -> Credential:
        """A credential for the table's root, or for one of its other locations, that has not ended."""
        if self._directory is None:
            raise AccessModeError(
                f"{self.name} is read by URL and has no credential. Use access='dir' where the provider "
                "offers it."
            )
        place = self._directory.location
        if location is not None:
            place = location if isinstance(location, Location) else Location.parse(location)
        provider = self._providers.get(place)
        if provider is None:
            known = ", ".join(str(one) for one in self._providers)
            raise PathRefusedError(f"{place} is not a location of {self.name}; its locations are {known}.")
        return provider()

    @property
    def location(self) -> Location | None:  # type: ignore[override]  # unknown in url mode
        """The table's directory, in `dir` mode."""
        return self._directory.location if self._directory is not None else None

    def _fall_back(self, error: DeltaError) -> None:
        """Go on in `url` mode if `error` is a reason to; raise it if not."""
        reason = reason_to_fall_back(error) if self._choice.may_fall_back else None
        if reason is None:
            raise error
        log.warning("%s is read by URL instead of by directory, because %s: %s", self.name, reason, error)
        self._choice = Choice("url")
        self._directory = None

    def _first_by_directory(self, way: Callable[[Table], Result], by_url: Callable[[], Result]) -> Result:
        if self._directory is not None:
            try:
                return way(self._directory)
            except DeltaError as error:
                self._fall_back(error)
        return by_url()

    def snapshot(  # type: ignore[override]  # the same face, over another source
        self, version: int | None = None, timestamp: str | datetime | None = None
    ) -> Snapshot | UrlSnapshot:
        """The table at a version, at a time (ISO text or datetime, UTC when it has no zone), or as it
        is now."""
        if version is not None and timestamp is not None:
            raise DeltaError("Give a version or a timestamp, not both.")
        if version is not None:
            version = parse_version(version)
        # The metadata that the table was just opened with serves for one snapshot; the next looks again.
        known, self._fresh = self._fresh, None
        if time.monotonic() > self._fresh_until:
            known = None

        def by_directory(table: Table) -> Snapshot | UrlSnapshot:
            return self._watched(table.snapshot(version, timestamp))

        def by_url() -> Snapshot | UrlSnapshot:
            return self._by_url.snapshot(version, timestamp, known=known)

        return self._first_by_directory(by_directory, by_url)

    def _watched(self, snapshot: Snapshot) -> Snapshot:
        if self._choice.may_fall_back and len(self._providers) > 1:
            return _WatchedSnapshot(self, snapshot)
        return snapshot

    def _same_by_url(self, version: int) -> UrlSnapshot:
        """A version by URL; the latest without naming it, for which a server need not share its history."""
        latest = self._by_url.snapshot()
        return latest if latest.version == version else self._by_url.snapshot(version)

    def _used_locations(self, files: pa.Table) -> set[Location]:
        """The auxiliary locations that some of the files are in."""
        assert self._directory is not None
        logged: Column = files.column("path")
        absolute = logged.filter(pc.match_substring_regex(logged, r"^(/|[A-Za-z][A-Za-z0-9+.-]*:)"))
        folders = pc.unique(pc.replace_substring_regex(absolute, r"/[^/]*$", "/file")).to_pylist()
        used = set()
        for folder in folders:
            whole = paths.resolve(self._directory.location, folder)
            # As text: a file's name may hold what a location's must not.
            holding = [one for one in self._providers if whole.startswith(one.join(""))]
            if holding:
                used.add(max(holding, key=lambda one: len(one.path)))
        return used

    def version_at(self, timestamp: str | datetime) -> int:
        """The latest version committed at or before a time."""
        return self._first_by_directory(
            lambda table: table.version_at(timestamp), lambda: self._by_url.version_at(timestamp)
        )

    def version_from(self, timestamp: str | datetime) -> int:
        """The earliest version committed at or after a time."""
        return self._first_by_directory(
            lambda table: table.version_from(timestamp), lambda: self._by_url.version_from(timestamp)
        )

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """What was done to the table, newest first; only `dir` mode shows it."""
        return self._first_by_directory(lambda table: table.history(limit), self._no_history)

    def _no_history(self) -> list[HistoryEntry]:
        raise UnsupportedTableError(
            f"The history of {self.name} is in its log, which url access does not show. Use access='dir' "
            "where the provider offers it."
        )

    def changes(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | None = None,
        ending_timestamp: str | datetime | None = None,
        **options: Any,
    ) -> Changes:
        """The rows inserted, updated and deleted between two versions or times, as a scan."""
        options.update(
            starting_version=starting_version,
            ending_version=ending_version,
            starting_timestamp=starting_timestamp,
            ending_timestamp=ending_timestamp,
        )
        feed = UrlChanges(self._rest, self._table_name, self._accepted, self._cache)
        return self._first_by_directory(
            lambda table: changes_of(table, **options), lambda: feed.changes(**options)
        )

    def commit_actions(
        self, start: int, end: int | None = None, *, stats: Literal["json"] | None = None, tags: bool = False
    ) -> Iterator[CommitActions]:
        """What each commit from `start` to `end` says, in order; only `dir` mode shows it."""
        if self._directory is None:
            self._no_history()
        assert self._directory is not None
        return self._directory.commit_actions(start, end, stats=stats, tags=tags)

    def storage_options(self) -> StorageOptions:
        """Options for the deltalake package: keys that it renews where the server offers that, or ones
        that end."""
        if self._directory is None:
            raise AccessModeError(
                f"{self.name} is read by URL, and the deltalake package needs a directory. Use access='dir' "
                "where the provider offers it, or read with lakepass."
            )
        if len(self._providers) > 1:
            raise UnsupportedTableError(
                f"{self.name} has files in several locations, each with its own credential; the deltalake "
                "package takes one. Read it with lakepass."
            )
        location = self._directory.location
        vended = self._providers[location].vended
        renewing, profile = vended.renewal.aws_container_credentials, self._rest.transport.profile
        # The token is handed to deltalake for the profile's own server only, and only if it does not change.
        same = renewing and origin(renewing) == profile.origin
        if renewing and same and profile.bearer_token and can_renew(location):
            return renewing_options(vended.credential, renewing, f"Bearer {profile.bearer_token}")
        return static_options(location, vended.credential)

    def deltalake(self, version: int | None = None, *, query_builder: bool = False) -> DeltaTable:
        """The table as the deltalake package's `DeltaTable`, where that reads it rightly."""
        options = self.storage_options()
        assert self._directory is not None
        snapshot = self._directory.snapshot(version)
        return open_with_deltalake(
            self._directory.location,
            options,
            snapshot.protocol,
            snapshot.metadata,
            query_builder=query_builder,
            version=snapshot.version,
        )

    def __repr__(self) -> str:
        return f"SharedTable({self.name!r}, access={self.access!r})"


def _remote(text: str, name: str) -> Location:
    """A location that a server may name; never one on this machine, whose files are not its to open."""
    location = Location.parse(text)
    if location.cloud is None:
        raise LocationError(
            f"{name} is said to be at {text}, which is on this machine. A share is in a cloud."
        )
    return location


class _WatchedSnapshot(Snapshot):
    """A snapshot of a table with auxiliary locations that may still turn out to be closed to us.

    Their credentials are asked for when a scan has files there, before the first row is given out, so that
    the scan can be had by URL instead.
    """

    def __init__(self, table: SharedTable, snapshot: Snapshot) -> None:
        super().__init__(snapshot._source, snapshot._segment, snapshot._state)
        self._table = table

    def scan(self, columns: Any = None, filter: Any = None, limit: int | None = None, **options: Any) -> Scan:
        planned = super().scan(columns, filter, limit, **options)
        try:
            for location in self._table._used_locations(planned.files()):
                self._table._providers[location]()
        except DeltaError as error:
            self._table._fall_back(error)
            return self._table._same_by_url(self.version).scan(columns, filter, limit, **options)
        return planned
