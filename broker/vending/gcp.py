"""Credentials for Google Cloud Storage: an access token narrowed by the boundary of `gcp_scope`.

The broker's own token is exchanged at Google's Security Token Service for one that holds the boundary. The
new token ends when the first one does, whatever is asked for: the end told is what the exchange answers, or
the source token's.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lakepass.broker.config import ConfigurationError, GcpStorage
from lakepass.broker.vending.errors import CloudRefused, CloudUnavailable, VendingError
from lakepass.broker.vending.gcp_scope import access_boundary
from lakepass.broker.vending.grantee import Grantee
from lakepass.broker.vending.lifetimes import allowed_lifetime, is_loopback
from lakepass.reader.credentials import Credential, GcpToken, StoreSettings
from lakepass.reader.errors import MissingExtraError
from lakepass.reader.location import Location

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.auth.transport.requests import Request

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_LONGEST_IMPERSONATION = timedelta(hours=1)
_SOURCE_REUSE_SECONDS = 30
"""A burst of first requests shares one source token; later ones get a fresh one, because its end becomes
theirs."""
_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a type
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


class GcpVendor:
    """Vends for one storage entry."""

    cloud = "gcp"
    scope = "directory"

    def __init__(self, settings: GcpStorage) -> None:
        try:
            import google.auth
            import google.auth.transport.requests
        except ImportError:
            raise MissingExtraError("gcp", "Vending credentials for Google Cloud Storage") from None
        del google
        for key in ("token_endpoint", "iam_endpoint"):
            url = getattr(settings, key)
            if url is not None and urlsplit(url).scheme != "https" and not is_loopback(url):
                raise ConfigurationError(f"gcp.{key} {url!r} is not https: a token could be read on the way.")
        self._settings = settings
        self._source = _Source(settings)
        self.identity = "|".join(
            (str(settings.key_file or ""), settings.service_account or "", settings.token_endpoint or "")
        )

    def check(self, location: Location, grantee: Grantee) -> dict[str, Any]:
        """The boundary for `location`; raises `ScopeRefused` where none exists."""
        return access_boundary(
            location, source_ranges=grantee.source_ranges if self._settings.bind_source_ip else ()
        )

    def vend(self, location: Location, grantee: Grantee, lifetime: timedelta, request_id: str) -> Credential:  # noqa: ARG002 - Google's exchange carries no correlation id
        """A token that reads and lists below `location`, for as long as the broker's own lives."""
        from google.auth.exceptions import GoogleAuthError
        from google.oauth2 import sts

        boundary = self.check(location, grantee)
        wanted = allowed_lifetime(lifetime, self._settings.token_endpoint)
        request = _request()
        try:
            source = self._source.token(request, wanted)
            url = self._settings.token_endpoint or f"https://sts.{source.universe}/v1/token"
            asked = datetime.now(UTC)
            client: Any = sts.Client(url)  # type: ignore[no-untyped-call]  # google-auth is untyped here
            answer = client.exchange_token(
                request=request,
                grant_type=_EXCHANGE,
                subject_token=source.token,
                subject_token_type=_TOKEN_TYPE,
                requested_token_type=_TOKEN_TYPE,
                additional_options=boundary,
            )
        except GoogleAuthError as error:
            raise _translated(error) from None
        ends = source.ends
        if answer.get("expires_in"):
            ends = min(ends, asked + timedelta(seconds=int(answer["expires_in"])))
        token = GcpToken(answer["access_token"])
        return Credential(str(location), token, ends, StoreSettings(endpoint=self._settings.endpoint))


@dataclass(frozen=True)
class _SourceToken:
    token: str = field(repr=False)
    ends: datetime
    universe: str
    fetched: float


class _Source:
    """The broker's own identity: a key file, the environment's, or an account impersonated from either."""

    def __init__(self, settings: GcpStorage) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._credentials: Credentials | None = None
        self._held: _SourceToken | None = None

    def token(self, request: Request, lifetime: timedelta) -> _SourceToken:
        """A token no older than half a minute, fetched once for all who wait."""
        with self._lock:
            held = self._held
            if held is not None and time.monotonic() - held.fetched < _SOURCE_REUSE_SECONDS:
                remaining = held.ends - datetime.now(UTC)
                if remaining > timedelta(minutes=5):
                    return held
            if self._credentials is None:
                self._credentials = source_credentials(self._settings, lifetime)
            self._credentials.refresh(request)  # type: ignore[no-untyped-call]  # google-auth is untyped here
            expiry = self._credentials.expiry
            if self._credentials.token is None or expiry is None:
                raise CloudRefused(
                    "The broker has no identity at the cloud.",
                    detail="The source credential gives no token with an end; use a service account.",
                )
            self._held = _SourceToken(
                self._credentials.token,
                expiry.replace(tzinfo=UTC),
                self._credentials.universe_domain,
                time.monotonic(),
            )
            return self._held


def source_credentials(settings: GcpStorage, lifetime: timedelta) -> Credentials:
    """The broker's own Google credentials, with the scope that the exchange needs."""
    import google.auth
    from google.auth import impersonated_credentials
    from google.oauth2 import service_account

    if settings.key_file is not None:
        try:
            found: Credentials = service_account.Credentials.from_service_account_file(  # type: ignore[no-untyped-call]  # google-auth is untyped here
                str(settings.key_file), scopes=_SCOPES
            )
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"gcp.key_file {settings.key_file} is not a service account's key: {type(error).__name__}."
            ) from None
    else:
        found, _ = google.auth.default(scopes=_SCOPES)
    if settings.service_account is None:
        return found
    return impersonated_credentials.Credentials(  # type: ignore[no-untyped-call]  # google-auth is untyped here
        source_credentials=found,
        target_principal=settings.service_account,
        target_scopes=list(_SCOPES),
        lifetime=int(min(lifetime, _LONGEST_IMPERSONATION).total_seconds()),
        iam_endpoint_override=_impersonation_url(settings),
    )


def _impersonation_url(settings: GcpStorage) -> str | None:
    if settings.iam_endpoint is None:
        return None
    path = f"/v1/projects/-/serviceAccounts/{settings.service_account}:generateAccessToken"
    return settings.iam_endpoint.rstrip("/") + path


def _request() -> Request:
    import google.auth.transport.requests

    return google.auth.transport.requests.Request()


def _translated(error: Exception) -> VendingError:
    from google.auth.exceptions import DefaultCredentialsError, TransportError

    detail = f"Google token exchange: {type(error).__name__}: {error}"
    if isinstance(error, DefaultCredentialsError):
        return CloudRefused("The broker has no identity at the cloud.", detail=detail)
    if isinstance(error, TransportError) or getattr(error, "retryable", False):
        return CloudUnavailable("The cloud did not issue a credential just now.", detail=detail)
    return CloudRefused("The cloud refused to issue a credential for this location.", detail=detail)
