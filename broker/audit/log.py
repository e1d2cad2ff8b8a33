"""Writing the audit trail: a row is committed before `record` returns, and many rows share one commit.

One thread writes. While a commit waits for the disk, the requests that arrive in the meantime gather, and
the next commit takes them all: under load the price of durability is divided by the number of requests in
flight, and a request alone waits for one commit. A row that cannot be written fails the request: a credential
that nobody wrote down does not leave.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import defaultdict
from concurrent.futures import Future
from pathlib import Path

import orjson
from sqlalchemy import Engine, insert
from sqlalchemy.exc import SQLAlchemyError

from lakepass.broker.audit.events import VendEvent
from lakepass.broker.audit.table import audit_events
from lakepass.reader.secrets import scrub

logger = logging.getLogger(__name__)

_LARGEST_BATCH = 1000
_LONGEST_TEXT = 2000
_Waiting = tuple[VendEvent, "asyncio.Future[None] | Future[None]"]


class AuditUnavailable(Exception):
    """The audit row could not be made durable, so the answer must not leave."""


class AuditLog:
    """Appends events to `audit_events`; optionally copies them to a file as JSON lines after the commit."""

    def __init__(self, engine: Engine, export: Path | None = None) -> None:
        self._engine = engine
        self._export = export
        self._statement = insert(audit_events)
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._write_batches, name="audit", daemon=True)
        self._thread.start()

    def record(self, event: VendEvent) -> None:
        """Write an event down; returns once it is durable."""
        written: Future[None] = Future()
        self._put(event, written)
        written.result()

    async def record_async(self, event: VendEvent) -> None:
        """The same on an event loop."""
        written = asyncio.get_running_loop().create_future()
        self._put(event, written)
        await written

    def close(self) -> None:
        """Write what is waiting, then stop."""
        self._closed = True
        self._queue.put(None)
        self._thread.join(timeout=30)

    def _put(self, event: VendEvent, written: asyncio.Future[None] | Future[None]) -> None:
        if self._closed:
            raise AuditUnavailable("The audit log is closed.")
        self._queue.put((event, written))

    def _write_batches(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, last = [first], False
            while len(batch) < _LARGEST_BATCH:
                try:
                    waiting = self._queue.get_nowait()
                except queue.Empty:
                    break
                if waiting is None:
                    last = True
                    break
                batch.append(waiting)
            self._settle(batch, self._commit([event for event, _ in batch]))
            if last:
                return

    def _commit(self, events: list[VendEvent]) -> AuditUnavailable | None:
        try:
            with self._engine.begin() as connection:
                connection.execute(self._statement, [_row(event) for event in events])
        except (SQLAlchemyError, OSError) as error:
            logger.error("%d audit rows could not be written: %s", len(events), scrub(str(error)))  # noqa: TRY400 - a trace would show the rows
            return AuditUnavailable("The audit row could not be written.")
        if self._export is not None:
            self._copy(self._export, events)
        return None

    def _copy(self, path: Path, events: list[VendEvent]) -> None:
        """The file is opened anew each time, so that it can be rotated; the table stays the record."""
        try:
            with path.open("ab") as file:
                file.write(b"".join(orjson.dumps(event.as_json()) + b"\n" for event in events))
        except OSError as error:
            logger.warning("the audit trail could not be copied to %s: %s", path, error.strerror)

    @staticmethod
    def _settle(batch: list[_Waiting], failure: AuditUnavailable | None) -> None:
        by_loop: defaultdict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = defaultdict(list)
        for _, written in batch:
            if isinstance(written, Future):
                written.set_exception(failure) if failure else written.set_result(None)
            else:
                by_loop[written.get_loop()].append(written)
        for loop, futures in by_loop.items():
            try:
                loop.call_soon_threadsafe(_settle_on_loop, futures, failure)
            except RuntimeError:
                logger.debug("an event loop ended before its audit rows were answered")


def _settle_on_loop(futures: list[asyncio.Future[None]], failure: AuditUnavailable | None) -> None:
    for written in futures:
        if written.done():  # the client went away
            continue
        if failure is None:
            written.set_result(None)
        else:
            written.set_exception(failure)


def _row(event: VendEvent) -> dict[str, object]:
    row = dict(vars(event))
    for name in ("table", "location", "reason"):  # what a caller wrote may be in these
        if row[name] is not None:
            row[name] = row[name][:_LONGEST_TEXT]
    return row
