"""One request for a credential, from who asks to the row in the audit trail.

Every form of the endpoint goes through `audited_vend`, so that all pass the same checks in the same order:
the token, the grant, the table's modes, the location, the scope. However it ends, it is written down, and
the row is durable before the answer leaves. Nothing is remembered of the checks: a revoked token or a
withdrawn grant stops the next answer, also where a cached credential would still live.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any

from starlette.requests import Request

from lakepass.broker.audit import AuditUnavailable, Outcome, VendEvent
from lakepass.broker.authentication import Caller
from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.config import ConfigurationError
from lakepass.broker.errors import (
    InvalidParameter,
    RequestError,
    StorageFailed,
    StorageUnavailable,
    Unauthenticated,
    UnsupportedOperation,
)
from lakepass.broker.protocol.credentials import expiration_ms
from lakepass.broker.state import Broker, caller_with
from lakepass.broker.vending import CloudRefused, CloudUnavailable, Grantee, ScopeRefused
from lakepass.reader.credentials import Credential
from lakepass.reader.errors import MissingExtraError
from lakepass.reader.location import Location, LocationError

logger = logging.getLogger(__name__)

parse_location = lru_cache(maxsize=8192)(Location.parse)
Find = Callable[[Caller], Awaitable[tuple[TableRow, str | None]]]
"""Which table, and the location asked for (None: the root). Raises a `RequestError`."""

_STRANGERS_A_SECOND = 20


async def audited_vend(
    broker: Broker,
    request: Request,
    *,
    interface: str,
    token: Callable[[Request], str],
    find: Find,
    asked: str = "-",
) -> tuple[TableRow, Credential]:
    """The credential that the request asks for; raises a `RequestError` when there is none.

    `asked` is the table as the caller named it, for the audit of one that is not found.
    """
    told: dict[str, Any] = {
        "request_id": request.scope["lakepass.request_id"],
        "interface": interface,
        "table": asked,
        "source_address": request.client.host if request.client else None,
    }
    try:
        caller = await caller_with(token(request), request, broker)
        told.update(recipient=caller.recipient, token_id=caller.token_id)
        table, wanted = await find(caller)
        told["table"] = table.full_name
        credential = await _vend(broker, caller, table, wanted, told)
    except Unauthenticated as error:
        if _strangers.may_be_written_down():
            await _record(broker, request, VendEvent(outcome=Outcome.REFUSED, reason=error.message, **told))
        raise
    except RequestError as error:
        outcome = Outcome.FAILED if error.status >= 500 else Outcome.REFUSED
        # Known even where the caller was turned away for its address.
        told.setdefault("recipient", request.scope.get("lakepass.recipient"))
        told.setdefault("token_id", request.scope.get("lakepass.token_id"))
        await _record(broker, request, VendEvent(outcome=outcome, reason=error.message, **told))
        raise
    await _record(
        broker, request, VendEvent(outcome=Outcome.VENDED, expires_at=expiration_ms(credential), **told)
    )
    return table, credential


def hides_history(table: TableRow) -> bool:
    """Whether the recipient may not see the table's whole log."""
    return not table.history_shared or bool(table.start_version)


async def _vend(
    broker: Broker, caller: Caller, table: TableRow, wanted: str | None, told: dict[str, Any]
) -> Credential:
    if "dir" not in table.access_modes:
        modes = ", ".join(table.access_modes)
        raise UnsupportedOperation(
            f"The table '{table.full_name}' is not shared by directory. Its access modes: {modes}."
        )
    if hides_history(table):
        # Registration refuses the pair; a row that came another way must not show the log either.
        raise UnsupportedOperation(
            f"The table '{table.full_name}' does not share its whole history, which directory access "
            "would show."
        )
    location = _location_of(table, wanted)
    told["location"] = str(location)
    entry = broker.settings.storage_for(location)
    identifier = told["request_id"]
    try:
        if entry is None:
            raise ConfigurationError(f"no storage entry covers {location}")
        vendor = broker.vending.vendor(entry)
        told.update(cloud=vendor.cloud, scope=vendor.scope)
        grantee = Grantee(caller.recipient, caller.source_ranges)
        return await broker.vending.vend_async(entry, location, grantee, identifier)
    except ScopeRefused as error:
        logger.warning("request %s: %s", identifier, error.detail)
        raise UnsupportedOperation(str(error)) from None
    except CloudUnavailable as error:
        logger.warning("request %s: %s", identifier, error.detail)
        raise StorageUnavailable(f"{error} Try again shortly.", error.retry_after) from None
    except (CloudRefused, ConfigurationError, MissingExtraError) as error:
        detail = error.detail if isinstance(error, CloudRefused) else str(error)
        logger.error("request %s: %s", identifier, detail)  # noqa: TRY400 - the sentence says it all
        raise StorageFailed(
            "The provider's storage did not give a credential for this table. Tell the provider the "
            f"request id {identifier}.",
            {"Retry-After": "60"},
        ) from None


def _location_of(table: TableRow, wanted: str | None) -> Location:
    """The root, or the one of the table's locations that `wanted` names."""
    root = parse_location(table.location)
    if wanted is None:
        return root
    try:
        location = parse_location(wanted)
    except LocationError as error:
        raise InvalidParameter(str(error)[:500]) from None
    if location != root and location not in map(parse_location, table.auxiliary_locations):
        raise InvalidParameter(
            f"'{wanted[:500]}' is neither the root of the table '{table.full_name}' nor one of its auxiliary "
            "locations. Ask for one of those, or leave the location out for the root."
        )
    return location


async def _record(broker: Broker, request: Request, event: VendEvent) -> None:
    request.app.state.metrics.count_credential(event.interface, event.cloud, event.outcome)
    try:
        await broker.audit.record_async(event)
    except AuditUnavailable:
        raise StorageUnavailable(
            "The request could not be written to the audit trail, so it was not served."
        ) from None


class _Strangers:
    """Requests without a good token: written down too, but not so many that they fill the disk."""

    def __init__(self) -> None:
        self._second = 0
        self._count = 0

    def may_be_written_down(self) -> bool:
        """Whether this one is among the first of its second; the access log has them all."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._count = second, 0
        self._count += 1
        return self._count <= _STRANGERS_A_SECOND


_strangers = _Strangers()
