"""Asynchronous queries: remembered under an id, so that any replica can answer for them.

A query is worked out when it is fetched. The idempotency key makes a repeated submission give the same id.
"""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import Engine, delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from lakepass.broker.authentication import Caller
from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.catalog.models import AsyncQuery, now_ms
from lakepass.broker.errors import InvalidParameter, NotFound

_LIFETIME_MS = 24 * 3600 * 1000
_PAGING = ("maxFiles", "pageToken", "idempotencyKey", "idempotency_key")


def remember_query(engine: Engine, caller: Caller, table: TableRow, key: str, body: dict[str, Any]) -> str:
    """The id under which the query can be fetched."""
    if len(key) > 255:
        raise InvalidParameter("idempotencyKey has at most 255 characters.")
    kept = {name: value for name, value in body.items() if name not in _PAGING}
    request = orjson.dumps(kept, option=orjson.OPT_SORT_KEYS).decode()
    found = _known(engine, caller, table, key)
    if found is None:
        try:
            with Session(engine, expire_on_commit=False) as session, session.begin():
                session.execute(delete(AsyncQuery).where(AsyncQuery.expires_at < now_ms()))
                found = AsyncQuery(
                    recipient_id=caller.recipient_id,
                    table_id=table.id,
                    idempotency_key=key,
                    request=request,
                    expires_at=now_ms() + _LIFETIME_MS,
                )
                session.add(found)
        except IntegrityError:
            found = _known(engine, caller, table, key)  # the same submission, sent twice at once
    if found is None or found.request != request:
        raise InvalidParameter("The idempotencyKey was used for another query already. Choose a new one.")
    return found.id


def fetch_query(engine: Engine, caller: Caller, table: TableRow, query_id: str) -> dict[str, Any]:
    """The body of the query that an id stands for."""
    with Session(engine) as session:
        found = session.get(AsyncQuery, query_id) if len(query_id) <= 36 else None
        asked = (caller.recipient_id, table.id)
        if found is None or (found.recipient_id, found.table_id) != asked or found.expires_at < now_ms():
            raise NotFound(f"The query '{query_id[:50]}' does not exist. Submit it again.")
        body: dict[str, Any] = orjson.loads(found.request)
        return body


def _known(engine: Engine, caller: Caller, table: TableRow, key: str) -> AsyncQuery | None:
    with Session(engine) as session:
        return session.scalar(
            select(AsyncQuery).where(
                AsyncQuery.recipient_id == caller.recipient_id,
                AsyncQuery.table_id == table.id,
                AsyncQuery.idempotency_key == key,
                AsyncQuery.expires_at >= now_ms(),
            )
        )
