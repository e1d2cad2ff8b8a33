"""The admin API: the catalog over HTTP, under its own prefix and with its own token.

It exists only where `admin.token_sha256` is configured. Secrets are in the answers that create them and
nowhere else.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from lakepass.broker.answers import json_answer
from lakepass.broker.audit import trail
from lakepass.broker.audit.events import Outcome
from lakepass.broker.authentication import bearer_token
from lakepass.broker.catalog.descriptions import (
    described_recipient,
    described_share,
    described_table,
    described_token,
)
from lakepass.broker.catalog.shares import TableDefinition
from lakepass.broker.config import parse_duration
from lakepass.broker.errors import Unauthenticated
from lakepass.broker.protocol.timestamps import parse_timestamp
from lakepass.broker.routes.activation import profile
from lakepass.broker.state import Broker, CurrentBroker, current_broker
from lakepass.broker.tables import registration


async def _administrator(request: Request) -> None:
    admin = current_broker(request).settings.admin
    digest = hashlib.sha256(bearer_token(request).encode("utf-8", "surrogateescape")).hexdigest()
    if admin is None or not hmac.compare_digest(digest, admin.token_sha256.lower()):
        raise Unauthenticated("The admin token is not valid.")
    request.scope["lakepass.recipient"] = ":admin"


router = APIRouter(tags=["Administration"], dependencies=[Depends(_administrator)])

Lifetime = Annotated[timedelta | None, BeforeValidator(parse_duration)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewShare(_Body):
    """A share to create."""

    name: str
    display_name: str | None = None
    comment: str | None = None
    properties: dict[str, str] | None = None


class NewTable(_Body):
    """A table to share, or its new settings."""

    name: str
    location: str
    auxiliary_locations: list[str] = []
    access_modes: list[str] = ["url"]
    history_shared: bool = True
    start_version: int | None = Field(default=None, ge=0, le=2**63 - 1)
    comment: str | None = None
    check: bool = True

    def definition(self) -> TableDefinition:
        """What the catalog keeps."""
        return TableDefinition(**self.model_dump(exclude={"check"}))


class NewRecipient(_Body):
    """A recipient to create."""

    name: str
    comment: str | None = None
    source_ranges: list[str] = []


class NewToken(_Body):
    """A token to issue; with `grace`, the others end after it."""

    lifetime: Lifetime = None
    grace: Lifetime = None


class NewActivation(_Body):
    """An activation link to make."""

    lifetime: Annotated[timedelta, BeforeValidator(parse_duration)] = timedelta(days=7)
    token_lifetime: Lifetime = None


async def _do(broker: Broker, work: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return await broker.workers.run("catalog", work, *args, **options)


@router.get("/shares", summary="All shares")
async def shares(broker: CurrentBroker) -> Response:
    """All shares."""
    found = await _do(broker, broker.catalog.shares.all)
    return json_answer({"items": [described_share(share) for share in found]})


@router.post("/shares", summary="Create a share", status_code=201)
async def add_share(broker: CurrentBroker, body: NewShare) -> Response:
    """Create a share."""
    options = body.model_dump(exclude={"name"})
    share = await _do(broker, broker.catalog.shares.add, body.name, **options)
    return json_answer(described_share(share), 201)


@router.delete("/shares/{share}", summary="Delete a share", status_code=204)
async def remove_share(broker: CurrentBroker, share: str) -> Response:
    """Delete a share with its tables and grants; the data is not touched."""
    await _do(broker, broker.catalog.shares.remove, share)
    return Response(status_code=204)


@router.get("/tables", summary="All tables")
async def tables(broker: CurrentBroker, share: str | None = None) -> Response:
    """All tables, or those of a share."""
    found = await _do(broker, broker.catalog.shares.tables, share)
    return json_answer({"items": [described_table(*row) for row in found]})


@router.post("/shares/{share}/schemas/{schema}/tables", summary="Share a table", status_code=201)
async def add_table(broker: CurrentBroker, share: str, schema: str, body: NewTable) -> Response:
    """Share a table, after a look at it."""
    await _examine(broker, body)
    await _do(broker, broker.catalog.shares.add_table, share, schema, body.definition())
    return json_answer(await _described(broker, share, schema, body.name), 201)


@router.put("/shares/{share}/schemas/{schema}/tables/{table}", summary="Change a table's settings")
async def replace_table(
    broker: CurrentBroker, share: str, schema: str, table: str, body: NewTable
) -> Response:
    """Give a table new settings; it keeps its id."""
    await _examine(broker, body)
    definition = body.model_copy(update={"name": table}).definition()
    await _do(broker, broker.catalog.shares.replace_table, share, schema, definition)
    return json_answer(await _described(broker, share, schema, table))


@router.delete(
    "/shares/{share}/schemas/{schema}/tables/{table}", summary="Stop sharing a table", status_code=204
)
async def remove_table(broker: CurrentBroker, share: str, schema: str, table: str) -> Response:
    """Stop sharing a table; its data is not touched."""
    await _do(broker, broker.catalog.shares.remove_table, share, schema, table)
    return Response(status_code=204)


@router.delete("/shares/{share}/schemas/{schema}", summary="Delete a schema", status_code=204)
async def remove_schema(broker: CurrentBroker, share: str, schema: str) -> Response:
    """Delete a schema with its tables."""
    await _do(broker, broker.catalog.shares.remove_schema, share, schema)
    return Response(status_code=204)


@router.get("/recipients", summary="All recipients")
async def recipients(broker: CurrentBroker) -> Response:
    """All recipients."""
    found = await _do(broker, broker.catalog.recipients.all)
    return json_answer({"items": [described_recipient(recipient) for recipient in found]})


@router.post("/recipients", summary="Create a recipient", status_code=201)
async def add_recipient(broker: CurrentBroker, body: NewRecipient) -> Response:
    """Create a recipient, who holds nothing yet."""
    options = body.model_dump(exclude={"name"})
    recipient = await _do(broker, broker.catalog.recipients.add, body.name, **options)
    return json_answer(described_recipient(recipient), 201)


@router.delete("/recipients/{recipient}", summary="Delete a recipient", status_code=204)
async def remove_recipient(broker: CurrentBroker, recipient: str) -> Response:
    """Delete a recipient with tokens and grants."""
    await _do(broker, broker.catalog.recipients.remove, recipient)
    return Response(status_code=204)


@router.get("/recipients/{recipient}/tokens", summary="A recipient's tokens")
async def tokens(broker: CurrentBroker, recipient: str) -> Response:
    """The tokens of a recipient, without their secrets."""
    found = await _do(broker, broker.catalog.recipients.tokens, recipient)
    return json_answer({"items": [described_token(*row) for row in found]})


@router.post("/recipients/{recipient}/tokens", summary="Issue or rotate a token", status_code=201)
async def add_token(request: Request, broker: CurrentBroker, recipient: str, body: NewToken) -> Response:
    """A new token, in a profile file's content."""
    found = broker.catalog.recipients
    if body.grace is None:
        token = await _do(broker, found.issue_token, recipient, body.lifetime)
    else:
        token = await _do(broker, found.rotate_token, recipient, body.lifetime, body.grace)
    return json_answer({"id": token.id, "profile": profile(broker, request, token)}, 201)


@router.delete("/tokens/{token}", summary="Revoke a token", status_code=204)
async def revoke_token(broker: CurrentBroker, token: str) -> Response:
    """End a token, from the next request on."""
    await _do(broker, broker.catalog.recipients.revoke_token, token)
    return Response(status_code=204)


@router.post("/recipients/{recipient}/activations", summary="Make an activation link", status_code=201)
async def add_activation(
    request: Request, broker: CurrentBroker, recipient: str, body: NewActivation
) -> Response:
    """A link that gives the recipient a profile file, once."""
    made = await _do(
        broker, broker.catalog.recipients.add_activation, recipient, body.lifetime, body.token_lifetime
    )
    origin = (broker.settings.server.public_url or str(request.base_url)).rstrip("/")
    return json_answer({"url": f"{origin}/activate/{made.code}", "expiresAt": made.expires_at}, 201)


@router.get("/grants", summary="Grants")
async def grants(broker: CurrentBroker, recipient: str | None = None, share: str | None = None) -> Response:
    """All grants, or those of a recipient or a share."""
    found = await _do(broker, broker.catalog.recipients.grants, recipient, share)
    items = [{"recipient": who, "share": what, "grantedAt": at} for who, what, at in found]
    return json_answer({"items": items})


@router.put("/grants/{recipient}/{share}", summary="Grant a share", status_code=204)
async def grant(broker: CurrentBroker, recipient: str, share: str) -> Response:
    """Let a recipient read a share."""
    await _do(broker, broker.catalog.recipients.grant, recipient, share)
    return Response(status_code=204)


@router.delete("/grants/{recipient}/{share}", summary="Withdraw a grant", status_code=204)
async def revoke_grant(broker: CurrentBroker, recipient: str, share: str) -> Response:
    """Withdraw a grant, from the next request on."""
    await _do(broker, broker.catalog.recipients.revoke_grant, recipient, share)
    return Response(status_code=204)


@router.get("/audit", summary="Requests for credentials")
async def audit(  # noqa: PLR0917 - each is a parameter of the query
    broker: CurrentBroker,
    recipient: str | None = None,
    table: str | None = None,
    outcome: Outcome | None = None,
    request_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Response:
    """The newest requests for credentials and how they ended, oldest first; times as in the protocol."""
    wanted = trail.Filter(
        recipient=recipient,
        table=table,
        outcome=outcome,
        request_id=request_id,
        since=None if since is None else parse_timestamp("since", since),
        until=None if until is None else parse_timestamp("until", until),
    )
    events = await _do(broker, trail.latest, broker.catalog.engine, wanted, limit)
    return json_answer({"items": [event.as_json() for event in events]})


async def _examine(broker: Broker, body: NewTable) -> None:
    if body.check:
        await broker.workers.run(
            body.location[:200], registration.checked, broker.settings, broker.vending, body.definition()
        )


async def _described(broker: Broker, share: str, schema: str, table: str) -> dict[str, Any]:
    for row in await _do(broker, broker.catalog.shares.tables, share):
        described = described_table(*row)
        if (described["schema"].lower(), described["name"].lower()) == (schema.lower(), table.lower()):
            return described
    return {}
