"""Shares, schemas and tables, as the caller may see them.

Pages are taken by key: a page token names the last item given, signed together with the list and the
caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from lakepass.broker.answers import json_answer
from lakepass.broker.authentication import Caller
from lakepass.broker.catalog.lookups import ShareRow, TableRow
from lakepass.broker.catalog.names import name_key
from lakepass.broker.errors import InvalidParameter, NotFound
from lakepass.broker.protocol.numbers import INT32_MAX, parse_integer
from lakepass.broker.protocol.state_lines import describe_access
from lakepass.broker.state import Broker, CurrentBroker, CurrentCaller

router = APIRouter(tags=["Shares"])

_TOKEN_LIFETIME = timedelta(days=1)

MaxResults = Annotated[
    str | None,
    Query(alias="maxResults", description="The most items to return; 0 or more.", examples=["100"]),
]
PageToken = Annotated[
    str | None, Query(alias="pageToken", description="The nextPageToken of the page before.")
]


class _Page:
    """The part of a list that is asked for."""

    def __init__(self, broker: Broker, purpose: str, max_results: str | None, token: str | None) -> None:
        self._tokens = broker.tokens
        self._purpose = purpose
        self.size = broker.settings.server.page_size
        if max_results is not None:
            wanted = parse_integer("maxResults", max_results, code=InvalidParameter)
            if not 0 <= wanted <= INT32_MAX:
                raise InvalidParameter(f"maxResults is between 0 and {INT32_MAX}, not {wanted}.")
            self.size = min(self.size, wanted)
        self.after: list[str] = ["", ""]
        if token:
            self.after = self._tokens.open(purpose, token)["after"]

    def answer(self, items: Sequence[dict[str, Any]], keys: Sequence[list[str]]) -> Response:
        """The items, one more than the page holds when there are more."""
        content: dict[str, Any] = {"items": items[: self.size]}
        if len(items) > self.size:
            after = keys[self.size - 1] if self.size else self.after
            content["nextPageToken"] = self._tokens.sign(self._purpose, {"after": after}, _TOKEN_LIFETIME)
        return json_answer(content)


def describe_share(share: ShareRow) -> dict[str, Any]:
    """A share as the protocol writes it."""
    described = {
        "name": share.name,
        "id": share.id,
        "displayName": share.display_name,
        "comment": share.comment,
        "properties": share.properties,
    }
    return {name: value for name, value in described.items() if value}


def describe_table(table: TableRow) -> dict[str, Any]:
    """A table as the protocol writes it."""
    described: dict[str, Any] = {
        "name": table.name,
        "schema": table.schema,
        "share": table.share,
        "shareId": table.share_id,
        "id": table.id,
    }
    described.update(describe_access(table))
    return described


async def _granted_share(broker: Broker, caller: Caller, name: str) -> ShareRow:
    share = await broker.lookups.share(caller.recipient_id, name)
    if share is None:
        raise NotFound(f"The share '{name}' does not exist or is not shared with you.")
    return share


@router.get("/shares", summary="List shares")
async def list_shares(
    broker: CurrentBroker, caller: CurrentCaller, max_results: MaxResults = None, page_token: PageToken = None
) -> Response:
    """The shares that the caller is granted."""
    page = _Page(broker, f"shares:{caller.recipient_id}", max_results, page_token)
    rows = await broker.lookups.shares(caller.recipient_id, page.after[0], page.size + 1)
    return page.answer([describe_share(row) for row in rows], [[name_key(row.name), ""] for row in rows])


@router.get("/shares/{share}", summary="Get a share")
async def get_share(broker: CurrentBroker, caller: CurrentCaller, share: str) -> Response:
    """One share."""
    return json_answer({"share": describe_share(await _granted_share(broker, caller, share))})


@router.get("/shares/{share}/schemas", summary="List the schemas of a share")
async def list_schemas(
    broker: CurrentBroker,
    caller: CurrentCaller,
    share: str,
    max_results: MaxResults = None,
    page_token: PageToken = None,
) -> Response:
    """The schemas of a share."""
    found = await _granted_share(broker, caller, share)
    page = _Page(broker, f"schemas:{found.id}:{caller.recipient_id}", max_results, page_token)
    rows = await broker.lookups.schemas(found.id, page.after[0], page.size + 1)
    items = [{"name": row.name, "share": found.name} for row in rows]
    return page.answer(items, [[name_key(row.name), ""] for row in rows])


@router.get("/shares/{share}/schemas/{schema}/tables", summary="List the tables of a schema")
async def list_tables(
    broker: CurrentBroker,
    caller: CurrentCaller,
    share: str,
    schema: str,
    *,
    max_results: MaxResults = None,
    page_token: PageToken = None,
) -> Response:
    """The tables of a schema."""
    found = await broker.lookups.share(caller.recipient_id, share)
    within = found and await broker.lookups.schema(found.id, schema)
    if within is None:
        raise NotFound(f"The schema '{share}.{schema}' does not exist or is not shared with you.")
    page = _Page(broker, f"tables:{within.id}:{caller.recipient_id}", max_results, page_token)
    rows = await broker.lookups.tables(within.id, page.after[0], page.size + 1)
    return page.answer([describe_table(row) for row in rows], [[name_key(row.name), ""] for row in rows])


@router.get("/shares/{share}/all-tables", summary="List all tables of a share")
async def list_all_tables(
    broker: CurrentBroker,
    caller: CurrentCaller,
    share: str,
    max_results: MaxResults = None,
    page_token: PageToken = None,
) -> Response:
    """The tables of all schemas of a share."""
    found = await _granted_share(broker, caller, share)
    page = _Page(broker, f"all-tables:{found.id}:{caller.recipient_id}", max_results, page_token)
    rows = await broker.lookups.all_tables(found.id, page.after[0], page.after[1], page.size + 1)
    keys = [[name_key(row.schema), name_key(row.name)] for row in rows]
    return page.answer([describe_table(row) for row in rows], keys)
