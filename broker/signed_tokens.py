"""Tokens that the server hands out and gets back: page tokens and refresh tokens.

They hold what is needed to go on, so that no replica has to remember anything, and a signature over that
and over their purpose: the list or table, the caller and the other parameters of the request. A token
altered, or used for anything else than it was made for, is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from datetime import timedelta
from typing import Any

import orjson

from lakepass.broker.errors import InvalidParameter

_MAC_BYTES = 16
_LONGEST = 16384


class TokenSigner:
    """Makes and opens tokens with a key that all replicas share."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, purpose: str, content: dict[str, Any], lifetime: timedelta) -> str:
        """A token good for `purpose` only."""
        body = orjson.dumps([int(time.time() + lifetime.total_seconds()), content])
        return base64.urlsafe_b64encode(self._mac(purpose, body) + body).rstrip(b"=").decode()

    def open(self, purpose: str, token: str, *, name: str = "the page token") -> dict[str, Any]:
        """The token's content; raises `InvalidParameter` for any token not made for `purpose`."""
        refused = InvalidParameter(
            f"Error decoding {name}: it is damaged, or was made for another list, table or recipient."
        )
        if len(token) > _LONGEST:
            raise refused
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise refused from None
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(purpose, body)):
            raise refused
        expires_at, content = orjson.loads(body)
        if expires_at <= time.time():
            raise InvalidParameter(f"{name[0].upper()}{name[1:]} has expired. Start again without it.")
        assert isinstance(content, dict)
        return content

    def _mac(self, purpose: str, body: bytes) -> bytes:
        text = purpose.encode("utf-8", "surrogatepass")
        message = len(text).to_bytes(4, "big") + text + body
        return hmac.digest(self._key, message, hashlib.sha256)[:_MAC_BYTES]
