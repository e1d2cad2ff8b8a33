"""Credentials for a location, and how they stay fresh.

A provider is any callable that returns a `Credential`. `Renewing` wraps one: it is called again before the
credential ends, once however many threads wait. Secrets are kept out of every repr.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True)
class AwsKeys:
    """Temporary keys for S3 or a compatible store."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class AzureSas:
    """A shared access signature, without a leading question mark."""

    sas_token: str = field(repr=False)


@dataclass(frozen=True)
class GcpToken:
    """An OAuth access token for Cloud Storage."""

    oauth_token: str = field(repr=False)


@dataclass(frozen=True)
class StoreSettings:
    """Where a store is reached, when it is not the cloud's own public endpoint."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False


@dataclass(frozen=True)
class Credential:
    """Keys for one location, until `expires_at`."""

    location: str
    keys: AwsKeys | AzureSas | GcpToken
    expires_at: datetime | None
    """The real end of the keys' life, with a time zone; None for keys that do not end."""
    store: StoreSettings = StoreSettings()

    def remaining(self, now: datetime | None = None) -> timedelta:
        """How long the keys still live."""
        if self.expires_at is None:
            return timedelta.max
        return self.expires_at - (now or datetime.now(UTC))


CredentialProvider = Callable[[], Credential]
