"""What the broker holds while it runs, and how a route reaches it.

One `Broker` per process: settings, catalog, and the parts that requests share. A route that serves a
recipient takes the caller as a parameter (`CurrentCaller`), so that it cannot forget to ask who is calling.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import Request
from starlette.responses import Response

from lakepass.broker.audit import AuditLog
from lakepass.broker.authentication import Caller, authenticate, bearer_token, check_address
from lakepass.broker.catalog.lookups import Lookups, TableRow
from lakepass.broker.catalog.store import Catalog
from lakepass.broker.config import Settings
from lakepass.broker.direct import direct
from lakepass.broker.errors import NotFound
from lakepass.broker.signed_tokens import TokenSigner
from lakepass.broker.tables.freshness import Freshness
from lakepass.broker.tables.served import ServedTables
from lakepass.broker.tables.storage import BrokerStorage
from lakepass.broker.vending import Vending
from lakepass.broker.workers import Workers


class Broker:
    """The parts of a running broker."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.catalog = Catalog(settings)
        self.catalog.lay_file_shares(settings)
        self.lookups = Lookups(settings.database)
        self.tokens = TokenSigner(self.catalog.secret("page-tokens"))
        self.vending = Vending(settings.credentials.lifetime)
        self.tables = ServedTables(BrokerStorage(settings, self.vending), settings.server.snapshot_memory)
        self.workers = Workers(settings.server.reader_threads)
        self.freshness = Freshness(self.workers)
        self.audit = AuditLog(self.catalog.engine, settings.audit.export)

    async def close(self) -> None:
        """Let go of everything; requests are over by now."""
        self.workers.close()
        self.vending.close()
        self.audit.close()
        await self.lookups.close()
        self.catalog.close()

    async def granted_table(self, caller: Caller, share: str, schema: str, table: str) -> TableRow:
        """The table, when the caller is granted its share.

        Whichever part of the name does not exist or is not granted, the answer is the same.
        """
        row = await self.lookups.table(caller.recipient_id, share, schema, table)
        if row is None:
            raise NotFound(f"The table '{share}.{schema}.{table}' does not exist or is not shared with you.")
        return row

    async def granted_table_by_id(self, caller: Caller, table_id: str) -> TableRow:
        """The same by the table's id."""
        row = await self.lookups.table_by_id(caller.recipient_id, table_id)
        if row is None:
            raise NotFound(f"The table '{table_id}' does not exist or is not shared with you.")
        return row


def current_broker(request: Request) -> Broker:
    """The broker that serves this request."""
    return cast(Broker, request.app.state.broker)


async def _current_caller(request: Request) -> Caller:
    broker = current_broker(request)
    return await caller_with(bearer_token(request), request, broker)


async def caller_with(token: str, request: Request, broker: Broker) -> Caller:
    """The recipient behind `token`, when it may come from where this request does."""
    caller = await authenticate(token, broker.lookups)
    request.scope["lakepass.recipient"] = caller.recipient
    request.scope["lakepass.token_id"] = caller.token_id
    if caller.source_ranges:
        check_address(caller, request.client.host if request.client else "")
    return caller


async def _current_broker(request: Request) -> Broker:
    # Asynchronous, because FastAPI would call a plain function in a thread, which costs more than a look-up.
    return current_broker(request)


CurrentBroker = Annotated[Broker, Depends(_current_broker)]
CurrentCaller = Annotated[Caller, Depends(_current_caller)]

RecipientHandler = Callable[[Broker, Caller, Request], Awaitable[Response]]


def for_recipient(handler: RecipientHandler) -> Callable[[Request], Awaitable[Response]]:
    """A direct route that is handed its caller.

    It reads its parameters from the request, and describes them in `openapi_extra`.
    """

    async def route(request: Request) -> Response:
        broker = current_broker(request)
        return await handler(broker, await _current_caller(request), request)

    route.__name__, route.__doc__ = handler.__name__, handler.__doc__
    return direct(route)
