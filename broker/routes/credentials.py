"""Temporary credentials for a table's directory, in the three forms that clients ask for.

- The sharing protocol's `temporary-table-credentials`.
- `aws-container-credentials`: the form that every AWS SDK, deltalake and S3A fetch again by themselves.
- Unity Catalog's `temporary-table-credentials` and `temporary-path-credentials`: its Hadoop provider renews
with them.

All pass the same checks, give the same scope and leave the same row in the audit trail (`audited_vend`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lakepass.broker.answers import json_answer
from lakepass.broker.authentication import Caller, bearer_token
from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.direct import direct
from lakepass.broker.errors import (
    InvalidParameter,
    MalformedRequest,
    NotFound,
    Unauthenticated,
    UnsupportedMediaType,
    UnsupportedOperation,
)
from lakepass.broker.protocol.credentials import container_form, sharing_form, unity_catalog_form
from lakepass.broker.routes.audited_vend import audited_vend, hides_history, parse_location
from lakepass.broker.routes.table_documentation import CONTAINER_CREDENTIALS, CREDENTIALS
from lakepass.broker.state import Broker, current_broker
from lakepass.reader.credentials import AwsKeys, Credential
from lakepass.reader.location import LocationError

router = APIRouter(tags=["Credentials"])
unity_catalog_router = APIRouter(prefix="/api/2.1/unity-catalog", tags=["Credentials"])

_TABLE = "/shares/{share}/schemas/{schema}/tables/{table}"


def _body(properties: dict[str, str]) -> dict[str, Any]:
    schema = {name: {"type": "string", "description": told} for name, told in properties.items()}
    content = {"application/json": {"schema": {"type": "object", "properties": schema}}}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    f"{_TABLE}/temporary-table-credentials",
    summary="Generate a temporary table credential",
    openapi_extra=CREDENTIALS,
)
@direct
async def temporary_table_credentials(request: Request) -> Response:
    """A read-only credential for the table's root or one of its auxiliary locations, and nothing else."""
    broker = current_broker(request)
    share, schema, table = request.path_params.values()

    async def find(caller: Caller) -> tuple[TableRow, str | None]:
        row = await broker.granted_table(caller, share, schema, table)
        content = await _json_object(request, required=False)
        location = _text(content, "location")
        # The name of the field in the draft of the protocol.
        return row, location if location is not None else _text(content, "auxiliaryLocation")

    row, credential = await audited_vend(
        broker,
        request,
        interface="delta-sharing",
        token=bearer_token,
        find=find,
        asked=f"{share}.{schema}.{table}",
    )
    return json_answer(sharing_form(credential, _renewal(broker, request, row, credential)))


@router.get(
    f"{_TABLE}/aws-container-credentials",
    summary="The same, as AWS SDKs fetch it",
    openapi_extra=CONTAINER_CREDENTIALS,
)
@direct
async def aws_container_credentials(request: Request) -> Response:
    """For `AWS_CONTAINER_CREDENTIALS_FULL_URI`; `Authorization` is the recipient's token, Bearer or bare."""
    share, schema, table = request.path_params.values()
    location = request.query_params.get("location")
    broker = current_broker(request)

    async def find(caller: Caller) -> tuple[TableRow, str | None]:
        row = await broker.granted_table(caller, share, schema, table)
        if not (location or row.location).startswith("s3"):
            raise UnsupportedOperation(
                f"The table '{row.full_name}' is not in S3. Use temporary-table-credentials for it."
            )
        return row, location

    _, credential = await audited_vend(
        broker,
        request,
        interface="aws-container",
        token=_container_token,
        find=find,
        asked=f"{share}.{schema}.{table}",
    )
    return json_answer(container_form(credential))


@unity_catalog_router.post(
    "/temporary-table-credentials",
    summary="The same, as Unity Catalog's clients ask for a table",
    openapi_extra=_body({"table_id": "The table's id, as in lists.", "operation": "READ"}),
)
async def unity_catalog_table_credentials(request: Request) -> Response:
    """A read-only credential for the table's root."""
    broker = current_broker(request)

    async def find(caller: Caller) -> tuple[TableRow, str | None]:
        content = await _json_object(request, required=True)
        identifier = _text(content, "table_id")
        if identifier is None:
            raise InvalidParameter("table_id is needed: the table's id, as lists of tables give it.")
        row = await broker.lookups.table_by_id(caller.recipient_id, identifier)
        if row is None:
            raise NotFound(
                f"The table with the id '{identifier[:100]}' does not exist or is not shared with you."
            )
        _check_operation(content, "READ")
        return row, None

    _, credential = await audited_vend(
        broker, request, interface="unity-catalog", token=bearer_token, find=find
    )
    return json_answer(unity_catalog_form(credential))


@unity_catalog_router.post(
    "/temporary-path-credentials",
    summary="The same, as Unity Catalog's clients ask for a path",
    openapi_extra=_body({"url": "A location of a table shared with you.", "operation": "PATH_READ"}),
)
async def unity_catalog_path_credentials(request: Request) -> Response:
    """A read-only credential for the root or an auxiliary location of a table that the caller is granted."""
    broker = current_broker(request)

    async def find(caller: Caller) -> tuple[TableRow, str | None]:
        content = await _json_object(request, required=True)
        url = _text(content, "url")
        if url is None:
            raise InvalidParameter("url is needed: the root or an auxiliary location of a table.")
        try:
            location = str(parse_location(url))
        except LocationError as error:
            raise InvalidParameter(str(error)[:500]) from None
        rows = await broker.lookups.tables_at(caller.recipient_id, location)
        if not rows:
            raise NotFound(f"'{url[:500]}' is not a location of a table that is shared with you.")
        _check_operation(content, "PATH_READ")
        # Several tables may lie there: one that opens its directory is enough, and else the first says why
        # not.
        opening = (row for row in rows if "dir" in row.access_modes and not hides_history(row))
        return next(opening, rows[0]), location

    _, credential = await audited_vend(
        broker, request, interface="unity-catalog", token=bearer_token, find=find
    )
    return json_answer(unity_catalog_form(credential))


async def _json_object(request: Request, *, required: bool) -> dict[str, Any]:
    """The body as a JSON object; without a body and a content type, an empty one where that is allowed."""
    # Without one there is nothing to wait for; most requests for a root have none.
    empty = request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers
    body = b"" if empty else await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body and not kind and not required:
        return {}
    if kind not in ("", "application/json"):
        raise UnsupportedMediaType(f"The body is JSON (application/json), not {kind[:100]!r}.")
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise MalformedRequest("The body is not valid JSON.") from None
    if not isinstance(content, dict):
        raise MalformedRequest("The body is a JSON object.")
    return content


def _text(content: dict[str, Any], name: str) -> str | None:
    value = content.get(name)
    if value is not None and not isinstance(value, str):
        raise MalformedRequest(f"{name} is text.")
    return value


def _check_operation(content: dict[str, Any], allowed: str) -> None:
    operation = content.get("operation")
    if operation != allowed:
        raise InvalidParameter(
            f"The operation is {allowed}, not {str(operation)[:50]!r}: shared tables are read-only."
        )


def _container_token(request: Request) -> str:
    """The token as AWS SDKs send it: the whole of `Authorization`, to which users may have given its
    scheme."""
    whole = request.headers.get("authorization", "").strip()
    if not whole:
        raise Unauthenticated("The Authorization header holds the token of your profile file.")
    return bearer_token(request) if " " in whole else whole


def _renewal(broker: Broker, request: Request, table: TableRow, credential: Credential) -> dict[str, str]:
    """Where a new credential for the same location is fetched, in the forms that renew by themselves."""
    server = broker.settings.server
    base = server.public_url
    if base is None:
        # As the client wrote it: what it reached once it reaches again.
        host = request.headers.get("host") or ":".join(map(str, request.scope["server"]))
        base = f"{request.scope['scheme']}://{host}{request.scope.get('root_path', '')}"
    auxiliary = credential.location != table.location
    told = {"unityCatalog": base.rstrip("/")}
    if not auxiliary:
        told["tableId"] = table.id
    if isinstance(credential.keys, AwsKeys):
        path = _container_path(table.share, table.schema, table.name)
        query = "?" + urlencode({"location": credential.location}) if auxiliary else ""
        told["awsContainerCredentials"] = f"{told['unityCatalog']}{server.prefix}{path}{query}"
    return told


@lru_cache(maxsize=4096)
def _container_path(*names: str) -> str:
    share, schema, table = (quote(name, safe="") for name in names)
    return f"/shares/{share}/schemas/{schema}/tables/{table}/aws-container-credentials"
