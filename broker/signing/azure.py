"""Pre-signed URLs for Azure: a user-delegation SAS for each blob (`sr=b`, read only).

The delegation key is the one that vending holds; it signs any number of tokens without another call. The
string to sign is the one of the service version below, and equal to what azure-storage-blob signs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol
from urllib.parse import quote

from lakepass.broker.signing.encoding import KeyEncoder

SERVICE_VERSION = "2026-10-06"
"""The version whose string to sign is built here."""
_CLOCK_SKEW = timedelta(seconds=60)
_LONGEST = timedelta(days=7)


class DelegationKey(Protocol):
    """A user delegation key, as the Azure SDK gives it."""

    signed_oid: str | None
    signed_tid: str | None
    signed_start: str | None
    signed_expiry: str | None
    signed_service: str | None
    signed_version: str | None
    value: str | None


class AzureSigner:
    """Signs reads of blobs in one container."""

    def __init__(
        self,
        key: DelegationKey,
        key_ends: datetime,
        *,
        account: str,
        container: str,
        blob_endpoint: str,
        lifetime: timedelta,
        protocol: str = "https",
        now: datetime | None = None,
    ) -> None:
        now = (now or datetime.now(UTC)).replace(microsecond=0)
        expires = min(now + min(lifetime, _LONGEST), key_ends)
        self.expires_at_ms = int(expires.timestamp()) * 1000
        start, end = (_text(moment) for moment in (now - _CLOCK_SKEW, expires))
        self._encoder = KeyEncoder(f"{blob_endpoint.rstrip('/')}/{container}/")
        self._before_path = f"r\n{start}\n{end}\n/blob/{account}/{container}/"
        told = [key.signed_oid, key.signed_tid, key.signed_start, key.signed_expiry, key.signed_service]
        # After the key: identities, correlation id and address, all empty.
        after = [*told, key.signed_version, "", "", "", "", "", "", protocol, SERVICE_VERSION, "b"]
        self._after_path = "\n" + "\n".join(str(part or "") for part in after) + "\n" * 9
        fields = {
            "st": start, "se": end, "sp": "r", "spr": protocol, "sv": SERVICE_VERSION, "sr": "b",
            "skoid": key.signed_oid, "sktid": key.signed_tid, "skt": key.signed_start,
            "ske": key.signed_expiry, "sks": key.signed_service, "skv": key.signed_version,
        }  # fmt: skip
        self._query = "&".join(f"{name}={quote(str(value), safe='/~')}" for name, value in fields.items())
        self._key = base64.b64decode(key.value or "")

    def sign(self, keys: Sequence[str]) -> list[str]:
        """A URL for each blob's name."""
        urls = []
        for name in keys:
            to_sign = f"{self._before_path}{name}{self._after_path}".encode()
            signature = base64.b64encode(hmac.digest(self._key, to_sign, hashlib.sha256)).decode()
            urls.append(f"{self._encoder.path(name)}?{self._query}&sig={quote(signature, safe='/~')}")
        return urls


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
