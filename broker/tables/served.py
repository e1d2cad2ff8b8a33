"""A table of the catalog as it is served: its snapshots, brought forward, and its signed URLs.

The latest snapshot is kept and brought forward by one listing of the log per request. Requests that arrive
while a listing is under way share the next one: each answer rests on a listing that began after its request
did, so that a recipient who saw a commit elsewhere sees it here.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime, timedelta

from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.tables.storage import BrokerStorage
from lakepass.broker.tables.urls import FileUrls
from lakepass.reader.location import Location
from lakepass.reader.log.cache import MemoryCache
from lakepass.reader.log.changes import CommitActions
from lakepass.reader.snapshot import Snapshot
from lakepass.reader.table import Table

_OLD_SNAPSHOTS = 8


class ServedTable:
    """One table's directory, whatever shares it is in."""

    def __init__(
        self, root: Location, auxiliary: tuple[Location, ...], storage: BrokerStorage, cache: MemoryCache
    ):
        self._root = root
        self._auxiliary = auxiliary
        self._storage = storage
        self._table = Table(
            root,
            storage.provider(root),
            {place: storage.provider(place) for place in auxiliary},
            cache=cache,
        )
        self._listing = threading.Lock()  # held while the store is asked
        self._lock = threading.Lock()  # held for a moment, for what is kept
        self._latest: Snapshot | None = None
        self._listed_at = 0.0
        self._old: OrderedDict[int, Snapshot] = OrderedDict()

    def latest(self) -> Snapshot:
        """The newest snapshot, from a listing that began after this call."""
        asked = time.monotonic()
        with self._listing:
            if self._latest is None or self._listed_at < asked:
                began = time.monotonic()
                self._latest = self._table.snapshot() if self._latest is None else self._latest.update()
                self._listed_at = began
            return self._latest

    def at(self, version: int) -> Snapshot:
        """The snapshot of a version; recent ones are kept, for pages and for streams that follow a table."""
        with self._lock:
            if self._latest is not None and self._latest.version == version:
                return self._latest
            found = self._old.get(version)
            if found is not None:
                self._old.move_to_end(version)
                return found
        opened = self._table.snapshot(version)
        with self._lock:
            self._old[version] = opened
            while len(self._old) > _OLD_SNAPSHOTS:
                self._old.popitem(last=False)
        return opened

    def version_at(self, moment: datetime) -> int:
        """The latest version committed at or before a moment."""
        return self._table.version_at(moment)

    def version_from(self, moment: datetime) -> int:
        """The earliest version committed at or after a moment."""
        return self._table.version_from(moment)

    def commits(self, start: int, end: int) -> Iterator[CommitActions]:
        """What each commit says, with statistics as text."""
        return self._table.commit_actions(start, end, stats="json", tags=True)

    def urls(self, lifetime: timedelta) -> FileUrls:
        """Signed URLs for files of the table."""
        places = (self._root, *self._auxiliary)
        return FileUrls(self._root, {place: self._storage.signer(place, lifetime) for place in places})

    @property
    def nbytes(self) -> int:
        """About how much memory the kept snapshots hold."""
        with self._lock:
            kept = [snapshot for snapshot in (self._latest, *self._old.values()) if snapshot is not None]
        return sum(snapshot.nbytes for snapshot in kept)


class ServedTables:
    """Every table that was asked for lately, within a bound of memory."""

    def __init__(self, storage: BrokerStorage, memory: int) -> None:
        self._storage = storage
        self._memory = memory // 2
        self._commits = MemoryCache(memory // 2)
        self._lock = threading.Lock()
        self._tables: OrderedDict[tuple[str, tuple[str, ...]], ServedTable] = OrderedDict()

    def table(self, row: TableRow) -> ServedTable:
        """The table that a row of the catalog stands for."""
        key = (row.location, row.auxiliary_locations)
        with self._lock:
            table = self._tables.get(key)
            if table is None:
                auxiliary = tuple(Location.parse(text) for text in row.auxiliary_locations)
                table = ServedTable(Location.parse(row.location), auxiliary, self._storage, self._commits)
                self._tables[key] = table
            self._tables.move_to_end(key)
            return table

    def trim(self) -> None:
        """Let go of the tables not asked for lately, until the rest fits."""
        with self._lock:
            held = {key: table.nbytes for key, table in self._tables.items()}
            total = sum(held.values())
            while total > self._memory and len(self._tables) > 1:
                key, _ = self._tables.popitem(last=False)
                total -= held[key]
