"""What a request reads from the catalog: the caller, lists, one table. The hot path of every request.

The statements are SQLAlchemy's, compiled to text once for the database at hand and run by the driver
itself. On SQLite they run on the event loop: an indexed read takes microseconds and, in WAL mode, never
waits for a writer. On PostgreSQL they go through an asynchronous pool. Nothing is remembered between
requests, so that a revoked token or a withdrawn grant counts from the next request on, on every replica.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import orjson
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import Dialect, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite

from lakepass.broker.catalog.database import database_url
from lakepass.broker.catalog.models import Grant, Recipient, Schema, Share, SharedTable, Token
from lakepass.broker.catalog.names import name_key

Row = Any


class TokenRow(NamedTuple):
    """A token and the recipient it belongs to."""

    token_id: str
    digest: str
    expires_at: int | None
    revoked_at: int | None
    recipient_id: str
    recipient: str
    source_ranges: tuple[str, ...]


class ShareRow(NamedTuple):
    """A share that the caller is granted."""

    id: str
    name: str
    display_name: str | None
    comment: str | None
    properties: dict[str, str] | None


class SchemaRow(NamedTuple):
    """A schema of such a share."""

    id: str
    name: str


class TableRow(NamedTuple):
    """A table of such a share, with the names it is reached by."""

    id: str
    name: str
    schema: str
    share: str
    share_id: str
    location: str
    auxiliary_locations: tuple[str, ...]
    access_modes: tuple[str, ...]
    history_shared: bool
    start_version: int | None

    @property
    def full_name(self) -> str:
        """`share.schema.table`, as stored."""
        return f"{self.share}.{self.schema}.{self.name}"


def _granted(statement: Any) -> Any:
    return statement.join(Grant, Grant.share_id == Share.id).where(
        Grant.recipient_id == bindparam("recipient")
    )


_TABLE_COLUMNS = (
    SharedTable.id,
    SharedTable.name,
    Schema.name.label("schema_name"),
    Share.name.label("share_name"),
    Share.id.label("share_id"),
    SharedTable.location,
    SharedTable.auxiliary_locations,
    SharedTable.access_modes,
    SharedTable.history_shared,
    SharedTable.start_version,
)
_TABLES = (
    select(*_TABLE_COLUMNS)
    .select_from(SharedTable)
    .join(Schema, Schema.id == SharedTable.schema_id)
    .join(Share, Share.id == SharedTable.share_id)
)
_SHARE_COLUMNS = (Share.id, Share.name, Share.display_name, Share.comment, Share.properties)
_STATEMENTS: dict[str, Any] = {
    "token": select(
        Token.id,
        Token.digest,
        Token.expires_at,
        Token.revoked_at,
        Recipient.id.label("recipient_id"),
        Recipient.name,
        Recipient.source_ranges,
    )
    .join(Recipient, Recipient.id == Token.recipient_id)
    .where(Token.selector == bindparam("selector")),
    "share": _granted(select(*_SHARE_COLUMNS)).where(Share.name_key == bindparam("share")),
    "shares": _granted(select(*_SHARE_COLUMNS))
    .where(Share.name_key > bindparam("after"))
    .order_by(Share.name_key)
    .limit(bindparam("count")),
    "schema": select(Schema.id, Schema.name).where(
        Schema.share_id == bindparam("share_id"), Schema.name_key == bindparam("schema")
    ),
    "schemas": select(Schema.id, Schema.name)
    .where(Schema.share_id == bindparam("share_id"), Schema.name_key > bindparam("after"))
    .order_by(Schema.name_key)
    .limit(bindparam("count")),
    "tables": _TABLES.where(Schema.id == bindparam("schema_id"), SharedTable.name_key > bindparam("after"))
    .order_by(SharedTable.name_key)
    .limit(bindparam("count")),
    # The second bound says where in the first one's schema the page before ended.
    "all_tables": _TABLES.where(
        SharedTable.share_id == bindparam("share_id"),
        (Schema.name_key > bindparam("after_schema"))
        | ((Schema.name_key == bindparam("after_schema")) & (SharedTable.name_key > bindparam("after"))),
    )
    .order_by(Schema.name_key, SharedTable.name_key)
    .limit(bindparam("count")),
    "table": _granted(_TABLES).where(
        Share.name_key == bindparam("share"),
        Schema.name_key == bindparam("schema"),
        SharedTable.name_key == bindparam("table"),
    ),
    "table_by_id": _granted(_TABLES).where(SharedTable.id == bindparam("table_id")),
    # A location of a table: its root, or the text of one among its auxiliary ones, to be looked at closely.
    "tables_at": _granted(_TABLES)
    .where(
        (SharedTable.location == bindparam("location"))
        | (
            func.replace(SharedTable.auxiliary_locations, bindparam("quoted"), "")
            != SharedTable.auxiliary_locations
        )
    )
    .order_by(SharedTable.id),
}


class _Reads(Protocol):
    async def rows(self, name: str, values: Mapping[str, Any]) -> Sequence[Row]: ...
    async def close(self) -> None: ...


def _prepare(dialect: Dialect) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Each statement's text, with the values that the compiler put in by itself (such as an offset of 0)."""
    prepared = {}
    for name, statement in _STATEMENTS.items():
        compiled = statement.compile(dialect=dialect)
        own = {key: value for key, value in compiled.params.items() if value is not None}
        prepared[name] = (str(compiled), own)
    return prepared


class _SqliteReads:
    """One connection, used on the event loop only."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=5
        )
        self._connection.execute("PRAGMA query_only=ON")
        self._prepared = _prepare(sqlite.dialect(paramstyle="named"))

    async def rows(self, name: str, values: Mapping[str, Any]) -> Sequence[Row]:
        sql, own = self._prepared[name]
        return self._connection.execute(sql, {**own, **values}).fetchall()

    async def close(self) -> None:
        self._connection.close()


class _PostgresReads:
    """A pool of connections that the event loop shares; the driver prepares what it runs often."""

    def __init__(self, url: str) -> None:
        address = database_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._pool = AsyncConnectionPool(
            address,
            min_size=1,
            max_size=8,
            timeout=10,
            kwargs={"autocommit": True, "prepare_threshold": 2},
            check=None,
            open=False,
        )
        self._opening: asyncio.Task[None] | None = None
        self._prepared = _prepare(
            postgresql.dialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]  # untyped there
        )

    async def rows(self, name: str, values: Mapping[str, Any]) -> Sequence[Row]:
        if self._opening is None:  # the pool belongs to the loop that serves
            self._opening = asyncio.create_task(self._pool.open())
        await self._opening
        async with self._pool.connection() as connection:
            sql, own = self._prepared[name]
            cursor = await connection.execute(sql, {**own, **values})
            return await cursor.fetchall()

    async def close(self) -> None:
        await self._pool.close()


class Lookups:
    """Reads of the catalog, each as the given recipient sees it."""

    def __init__(self, url: str) -> None:
        parsed = database_url(url)
        self._reads: _Reads = (
            _SqliteReads(parsed.database or "") if parsed.drivername == "sqlite" else _PostgresReads(url)
        )

    async def close(self) -> None:
        """Give the connections back."""
        await self._reads.close()

    async def ready(self) -> None:
        """Raises unless the database answers and its schema is there."""
        async with asyncio.timeout(5):
            await self._reads.rows("token", {"selector": "-"})

    async def token(self, selector: str) -> TokenRow | None:
        """The token whose hash begins with `selector`."""
        for row in await self._reads.rows("token", {"selector": selector}):
            return TokenRow._make((*row[:6], tuple(orjson.loads(row[6]))))
        return None

    async def share(self, recipient_id: str, share: str) -> ShareRow | None:
        """A share by name, when granted."""
        for row in await self._reads.rows("share", {"recipient": recipient_id, "share": name_key(share)}):
            return _share_row(row)
        return None

    async def shares(self, recipient_id: str, after: str, count: int) -> list[ShareRow]:
        """Granted shares in the order of their keys."""
        rows = await self._reads.rows("shares", {"recipient": recipient_id, "after": after, "count": count})
        return [_share_row(row) for row in rows]

    async def schema(self, share_id: str, schema: str) -> SchemaRow | None:
        """A schema of a share that was looked up as granted."""
        for row in await self._reads.rows("schema", {"share_id": share_id, "schema": name_key(schema)}):
            return SchemaRow(*row)
        return None

    async def schemas(self, share_id: str, after: str, count: int) -> list[SchemaRow]:
        """Schemas of a share that was looked up as granted."""
        rows = await self._reads.rows("schemas", {"share_id": share_id, "after": after, "count": count})
        return [SchemaRow(*row) for row in rows]

    async def tables(self, schema_id: str, after: str, count: int) -> list[TableRow]:
        """Tables of a schema of such a share."""
        rows = await self._reads.rows("tables", {"schema_id": schema_id, "after": after, "count": count})
        return [_table_row(row) for row in rows]

    async def all_tables(self, share_id: str, after_schema: str, after: str, count: int) -> list[TableRow]:
        """Tables of all schemas of such a share."""
        rows = await self._reads.rows(
            "all_tables", {"share_id": share_id, "after_schema": after_schema, "after": after, "count": count}
        )
        return [_table_row(row) for row in rows]

    async def table(self, recipient_id: str, share: str, schema: str, table: str) -> TableRow | None:
        """A table by its names, when its share is granted."""
        names = {"share": name_key(share), "schema": name_key(schema), "table": name_key(table)}
        for row in await self._reads.rows("table", {"recipient": recipient_id, **names}):
            return _table_row(row)
        return None

    async def table_by_id(self, recipient_id: str, table_id: str) -> TableRow | None:
        """A table by its id, when its share is granted."""
        for row in await self._reads.rows("table_by_id", {"recipient": recipient_id, "table_id": table_id}):
            return _table_row(row)
        return None

    async def tables_at(self, recipient_id: str, location: str) -> list[TableRow]:
        """Granted tables that have `location` as their root or among their auxiliary locations."""
        values = {"recipient": recipient_id, "location": location, "quoted": orjson.dumps(location).decode()}
        rows = await self._reads.rows("tables_at", values)
        found = [_table_row(row) for row in rows]
        return [row for row in found if location in (row.location, *row.auxiliary_locations)]


def _share_row(row: Row) -> ShareRow:
    return ShareRow(row[0], row[1], row[2], row[3], orjson.loads(row[4]) if row[4] else None)


def _table_row(row: Row) -> TableRow:
    locations, modes = tuple(orjson.loads(row[6])), tuple(orjson.loads(row[7]))
    return TableRow._make((*row[:6], locations, modes, bool(row[8]), row[9]))
