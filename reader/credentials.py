"""Credentials for a location, and how they stay fresh.

A provider is any callable that returns a `Credential`. `Renewing` wraps one: it is called again before the
credential ends, once however many threads wait. Secrets are kept out of every repr.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lakepass.reader.errors import AccessRefusedError


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


_EARLIEST = timedelta(minutes=5)
_RETRY_FIRST = timedelta(seconds=2)
_RETRY_LONGEST = timedelta(minutes=1)
_FORCED_AGAIN = timedelta(minutes=1)


def renewal_margin(life: timedelta) -> timedelta:
    """How long before its end a credential is renewed: five minutes, or a fifth of a short life.

    >>> renewal_margin(timedelta(hours=1)), renewal_margin(timedelta(minutes=10))
    (datetime.timedelta(seconds=300), datetime.timedelta(seconds=120))
    """
    return min(_EARLIEST, life / 5)


class Renewing:
    """A provider that asks another one again before the credential ends, once for all threads.

    While one thread renews, the others go on with the credential that still lives; the same when a renewal
    fails, which is then tried again a little later. Only a credential that has ended makes a failure
    everybody's error. It pickles as its provider alone: keys never leave the process.
    """

    def __init__(self, provider: CredentialProvider, *, now: Callable[[], datetime] | None = None) -> None:
        self._provider = provider
        self._now = now or (lambda: datetime.now(UTC))
        self._current: Credential | None = None
        self._due: datetime | None = None
        self._failures = 0
        self._forced: datetime | None = None
        self._flight = threading.Lock()

    def __call__(self) -> Credential:
        """A credential that lives, renewed if it is time."""
        current = self._current
        if current is not None and not self._is_due():
            return current
        if current is not None and current.remaining(self._now()) > timedelta(0):
            # It still works: only one thread needs to wait for the next one.
            if not self._flight.acquire(blocking=False):
                return current
        else:
            self._flight.acquire()
        try:
            if self._current is not current and self._current is not None and not self._is_due():
                return self._current
            return self._renew()
        finally:
            self._flight.release()

    def refused(self, credential: Credential) -> bool:
        """Told that a store refused this credential: asks for another one, and says whether there is one now.

        Asks once in a while only: where the new credential is refused too, the reason is not its age.
        """
        with self._flight:
            if self._current is not credential:
                return True
            if self._forced is not None and self._now() - self._forced < _FORCED_AGAIN:
                return False
            self._forced = self._now()
            self._renew()
            return self._current is not credential

    def _is_due(self) -> bool:
        return self._due is not None and self._now() >= self._due

    def _renew(self) -> Credential:
        previous = self._current
        try:
            credential = self._provider()
            if not isinstance(credential, Credential):
                raise TypeError(f"the provider returned a {type(credential).__name__}, not a Credential")
        except Exception:
            if previous is None or previous.remaining(self._now()) <= timedelta(0):
                raise
            wait = min(_RETRY_FIRST * 2**self._failures, _RETRY_LONGEST)
            self._failures = min(self._failures + 1, 10)
            # At the latest when the keys end: nobody is to be given ended ones.
            self._due = min(self._now() + wait, previous.expires_at or datetime.max.replace(tzinfo=UTC))
            return previous
        life = credential.remaining(self._now())
        if life <= timedelta(0):
            raise AccessRefusedError(
                f"The credential for {credential.location} ended at {credential.expires_at} before it could"
                " be used. Check this machine's clock, and the credential's source."
            )
        self._failures = 0
        # Jitter, so that many readers that began together do not come back together.
        margin = renewal_margin(life) * (1 + random.random() / 4)  # noqa: S311
        self._due = None if credential.expires_at is None else credential.expires_at - margin
        self._current = credential
        return credential

    def __reduce__(self) -> tuple[type[Renewing], tuple[CredentialProvider]]:
        return Renewing, (self._provider,)

    def __repr__(self) -> str:
        place = self._current.location if self._current else "no location yet"
        return f"Renewing({place})"
