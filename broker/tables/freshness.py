"""The latest snapshot of a table, for many requests at once.

Each answer rests on a listing of the log that began after its request arrived, so that a recipient who saw
a commit elsewhere sees it here. Requests that arrive while a listing is under way wait for the next one and
share it: however many ask, a table's log is listed by one thread at a time.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from lakepass.broker.tables.served import ServedTable
from lakepass.broker.workers import Workers
from lakepass.reader.snapshot import Snapshot


class Freshness:
    """Brings tables forward on the event loop's behalf."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._running: WeakKeyDictionary[ServedTable, asyncio.Task[Snapshot]] = WeakKeyDictionary()
        self._next: WeakKeyDictionary[ServedTable, asyncio.Task[Snapshot]] = WeakKeyDictionary()

    async def latest(self, location: str, served: ServedTable) -> Snapshot:
        """The newest snapshot, from a listing that begins after this call."""
        task = self._next.get(served)
        if task is None:
            task = asyncio.create_task(self._list(location, served))
            self._next[served] = task
        # A client that goes away must not take the listing from those who wait with it.
        return await asyncio.shield(task)

    async def _list(self, location: str, served: ServedTable) -> Snapshot:
        before = self._running.get(served)
        if before is not None:
            await asyncio.wait({before})
        # Whoever comes from here on needs a listing that begins later.
        self._running[served] = self._next.pop(served)
        return await self._workers.run(location, served.latest)
