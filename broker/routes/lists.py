"""Shares, schemas and tables, as the caller may see them.

Pages are taken by key: a page token names the last item given, signed together with the list and the
caller.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lakepass.broker.answers import json_answer
from lakepass.broker.authentication import Caller
from lakepass.broker.catalog.lookups import SchemaRow, ShareRow, TableRow
from lakepass.broker.catalog.names import name_key
from lakepass.broker.errors import InvalidParameter, NotFound
from lakepass.broker.protocol.numbers import INT32_MAX, parse_integer
from lakepass.broker.protocol.state_lines import describe_access
from lakepass.broker.state import Broker, for_recipient

router = APIRouter(tags=["Shares"])

_TOKEN_LIFETIME = timedelta(days=1)


def _documented(*names: str, pages: bool = True) -> dict[str, Any]:
    """The parameters of a list for the OpenAPI page; the routes read them from the request."""
    found = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string"},
            "description": "In any case.",
        }
        for name in names
    ]
    if pages:
        size = {"type": "integer", "minimum": 0, "maximum": INT32_MAX}
        found += [
            {"name": "maxResults", "in": "query", "schema": size, "description": "The most items to return."},
            {
                "name": "pageToken",
                "in": "query",
                "schema": {"type": "string"},
                "description": "The nextPageToken of the page before.",
            },
        ]
    return {"parameters": found}


class _Page:
    """The part of a list that is asked for."""

    def __init__(self, broker: Broker, request: Request, purpose: str) -> None:
        max_results = request.query_params.get("maxResults")
        token = request.query_params.get("pageToken")
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

    def answer(self, items: list[dict[str, Any]]) -> Response:
        """The items, one more than the page holds when there are more."""
        content: dict[str, Any] = {"items": items[: self.size]}
        if len(items) > self.size:
            after = _key(items[self.size - 1]) if self.size else self.after
            content["nextPageToken"] = self._tokens.sign(self._purpose, {"after": after}, _TOKEN_LIFETIME)
        return json_answer(content)


def _key(item: dict[str, Any]) -> list[str]:
    """Where an item stands in its list; tables of several schemas stand by schema first."""
    return (
        [name_key(item["schema"]), name_key(item["name"])]
        if "schema" in item
        else [name_key(item["name"]), ""]
    )


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


async def _schema_of(broker: Broker, caller: Caller, share: str, schema: str) -> SchemaRow:
    found = await broker.lookups.share(caller.recipient_id, share)
    within = found and await broker.lookups.schema(found.id, schema)
    if not isinstance(within, SchemaRow):
        raise NotFound(f"The schema '{share}.{schema}' does not exist or is not shared with you.")
    return within


@router.get("/shares", summary="List shares", openapi_extra=_documented())
@for_recipient
async def list_shares(broker: Broker, caller: Caller, request: Request) -> Response:
    """The shares that the caller is granted."""
    page = _Page(broker, request, f"shares:{caller.recipient_id}")
    rows = await broker.lookups.shares(caller.recipient_id, page.after[0], page.size + 1)
    return page.answer([describe_share(row) for row in rows])


@router.get("/shares/{share}", summary="Get a share", openapi_extra=_documented("share", pages=False))
@for_recipient
async def get_share(broker: Broker, caller: Caller, request: Request) -> Response:
    """One share."""
    found = await _granted_share(broker, caller, request.path_params["share"])
    return json_answer({"share": describe_share(found)})


@router.get(
    "/shares/{share}/schemas", summary="List the schemas of a share", openapi_extra=_documented("share")
)
@for_recipient
async def list_schemas(broker: Broker, caller: Caller, request: Request) -> Response:
    """The schemas of a share."""
    found = await _granted_share(broker, caller, request.path_params["share"])
    page = _Page(broker, request, f"schemas:{found.id}:{caller.recipient_id}")
    rows = await broker.lookups.schemas(found.id, page.after[0], page.size + 1)
    return page.answer([{"name": row.name, "share": found.name} for row in rows])


@router.get(
    "/shares/{share}/schemas/{schema}/tables",
    summary="List the tables of a schema",
    openapi_extra=_documented("share", "schema"),
)
@for_recipient
async def list_tables(broker: Broker, caller: Caller, request: Request) -> Response:
    """The tables of a schema."""
    names = request.path_params
    within = await _schema_of(broker, caller, names["share"], names["schema"])
    page = _Page(broker, request, f"tables:{within.id}:{caller.recipient_id}")
    rows = await broker.lookups.tables(within.id, page.after[1], page.size + 1)
    return page.answer([describe_table(row) for row in rows])


@router.get(
    "/shares/{share}/all-tables",
    summary="List all tables of a share",
    openapi_extra=_documented("share"),
)
@for_recipient
async def list_all_tables(broker: Broker, caller: Caller, request: Request) -> Response:
    """The tables of all schemas of a share."""
    found = await _granted_share(broker, caller, request.path_params["share"])
    page = _Page(broker, request, f"all-tables:{found.id}:{caller.recipient_id}")
    rows = await broker.lookups.all_tables(found.id, page.after[0], page.after[1], page.size + 1)
    return page.answer([describe_table(row) for row in rows])
