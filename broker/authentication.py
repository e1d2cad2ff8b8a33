"""Who is calling: the bearer token of a request, and the recipient it belongs to.

A token is looked up by the start of its SHA-256 and compared whole in constant time. A token that is not
known takes the same steps as one that is: the row is then a stand-in that nothing equals.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakepass.broker.catalog.models import now_ms
from lakepass.broker.errors import Forbidden, Unauthenticated

if TYPE_CHECKING:
    from starlette.requests import Request

    from lakepass.broker.catalog.lookups import Lookups

_STAND_IN = secrets.token_hex(32)
_LONGEST_TOKEN = 4096


@dataclass(frozen=True)
class Caller:
    """The recipient behind a request, and the token it was made with."""

    recipient_id: str
    recipient: str
    token_id: str
    source_ranges: tuple[str, ...]


@dataclass(frozen=True)
class HashedSecret:
    """A secret's hash, and the part of it that finds its row."""

    selector: str
    digest: str

    @classmethod
    def of(cls, secret: str) -> HashedSecret:
        """The hash of a token or an activation code."""
        digest = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
        return cls(digest[:16], digest)


def new_secret() -> str:
    """256 random bits, as text that fits into a header and a URL."""
    return secrets.token_urlsafe(32)


def bearer_token(request: Request) -> str:
    """The token of the Authorization header; raises `Unauthenticated` when there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > _LONGEST_TOKEN:
        raise Unauthenticated(
            "The request needs the header 'Authorization: Bearer <token>' with your profile's token."
        )
    return token


async def authenticate(token: str, lookups: Lookups) -> Caller:
    """The recipient that `token` belongs to; `Unauthenticated` when it is unknown, expired or revoked."""
    hashed = HashedSecret.of(token)
    row = await lookups.token(hashed.selector)
    known = row.digest if row is not None else _STAND_IN
    equal = hmac.compare_digest(known, hashed.digest)
    if row is None or not equal or row.revoked_at is not None:
        raise Unauthenticated("The token is not valid. Ask the provider for a new profile file.")
    if row.expires_at is not None and row.expires_at <= now_ms():
        raise Unauthenticated("The token has expired. Ask the provider for a new profile file.")
    return Caller(row.recipient_id, row.recipient, row.token_id, row.source_ranges)


def check_address(caller: Caller, address: str) -> None:
    """Hold a recipient to the addresses it may call from; raises `Forbidden`."""
    try:
        source = ipaddress.ip_address(address)
    except ValueError:
        source = None
    if source is None or not any(source in ipaddress.ip_network(known) for known in caller.source_ranges):
        raise Forbidden("This recipient may not call from your address. Ask the provider to add it.")
