"""Credentials for Azure: a user-delegation SAS signed for the scope of `azure_scope`.

The broker's identity gets a user delegation key from the account, which signs any number of SAS tokens
without another call. The key is kept apart from them and lives longer. A SAS ends when the key does,
whatever it says of itself, so the end told is the earlier of the two.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lakepass.broker.config import AzureStorage, ConfigurationError
from lakepass.broker.vending.azure_scope import SasScope, authority_for, sas_scope
from lakepass.broker.vending.errors import CloudRefused, CloudUnavailable, VendingError
from lakepass.broker.vending.grantee import Grantee
from lakepass.broker.vending.lifetimes import allowed_lifetime
from lakepass.reader.credentials import AzureSas, Credential, StoreSettings
from lakepass.reader.errors import MissingExtraError
from lakepass.reader.location import Location

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from azure.storage.filedatalake import UserDelegationKey

_CLOCK_SKEW = timedelta(seconds=60)
_KEY_LIFETIME = timedelta(hours=24)
_PATIENCE: dict[str, Any] = {
    "connection_timeout": 3,
    "read_timeout": 10,
    "retry_total": 1,
    "initial_backoff": 1,
}


class AzureVendor:
    """Vends for one storage entry."""

    cloud = "azure"

    def __init__(self, settings: AzureStorage) -> None:
        try:
            import azure.identity
            import azure.storage.filedatalake
        except ImportError:
            raise MissingExtraError("azure", "Vending credentials for Azure") from None
        del azure
        self._settings = settings
        self._keys = _DelegationKeys(settings)
        self.scope = "directory" if settings.hierarchical_namespace else "container"
        self.identity = "|".join(
            (settings.tenant_id or "", settings.client_id or "", settings.endpoint or "", self.scope)
        )

    def check(self, location: Location, grantee: Grantee) -> SasScope:
        """The scope for `location`; raises `ScopeRefused` where none exists."""
        return sas_scope(
            location,
            endpoint=self._settings.endpoint,
            hierarchical_namespace=self._settings.hierarchical_namespace,
            allow_container_scope=self._settings.allow_container_scope,
            source_ranges=grantee.source_ranges if self._settings.bind_source_ip else (),
        )

    def vend(self, location: Location, grantee: Grantee, lifetime: timedelta, request_id: str) -> Credential:
        """A SAS that reads and lists below `location` for `lifetime`."""
        scope = self.check(location, grantee)
        now = datetime.now(UTC).replace(microsecond=0)
        wanted = now + allowed_lifetime(lifetime, self._settings.endpoint)
        key, key_ends = self._keys.lasting_until(location, wanted)
        ends = min(wanted, key_ends)
        token = signed(scope, key, starts=now - _CLOCK_SKEW, ends=ends, request_id=request_id)
        store = StoreSettings(endpoint=self._settings.endpoint)
        return Credential(str(location), AzureSas(token), ends, store)

    def delegation_key(self, location: Location, end: datetime) -> tuple[UserDelegationKey, datetime]:
        """The key that signs for the account of `location`, and its end: for URLs of single blobs."""
        return self._keys.lasting_until(location, end)


def signed(
    scope: SasScope, key: UserDelegationKey, *, starts: datetime, ends: datetime, request_id: str
) -> str:
    """The SAS token for `scope`, without a leading question mark."""
    from azure.storage.filedatalake import generate_directory_sas, generate_file_system_sas

    options: dict[str, Any] = {"protocol": scope.protocol, "correlation_id": request_id}
    if scope.ip is not None:
        options["ip"] = scope.ip
    if scope.directory is None:
        return generate_file_system_sas(
            scope.account, scope.container, key, scope.permissions, ends, start=starts, **options
        )
    return generate_directory_sas(
        scope.account, scope.container, scope.directory, key, scope.permissions, ends, start=starts, **options
    )


class _DelegationKeys:
    """The user delegation key of each account, fetched once for all who wait."""

    def __init__(self, settings: AzureStorage) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._credential: TokenCredential | None = None
        self._held: dict[str, tuple[UserDelegationKey, datetime]] = {}

    def lasting_until(self, location: Location, end: datetime) -> tuple[UserDelegationKey, datetime]:
        """A key for the account of `location`, and its end, which may come sooner than asked."""
        host = location.account_host
        with self._lock:
            held = self._held.get(host)
            if held is None or held[1] < end:
                held = self._fetch(host)
                self._held[host] = held
            return held

    def _fetch(self, host: str) -> tuple[UserDelegationKey, datetime]:
        from azure.core.exceptions import AzureError
        from azure.storage.filedatalake import DataLakeServiceClient

        url = self._settings.endpoint or f"https://{host}"
        now = datetime.now(UTC)
        try:
            if self._credential is None:
                self._credential = azure_identity(self._settings, host)
            entry: dict[str, Any] = {"credential": self._credential}
            told: dict[str, Any] = {}
            if urlsplit(url).scheme != "https":
                # On this machine only, by `protocol_for`; the SDK would send no token there by itself.
                bearer = self._credential.get_token("https://storage.azure.com/.default").token
                entry, told = {}, {"headers": {"Authorization": f"Bearer {bearer}"}}
            with DataLakeServiceClient(url, **entry, **_PATIENCE) as service:
                key = service.get_user_delegation_key(now - _CLOCK_SKEW, now + _KEY_LIFETIME, **told)
        except AzureError as error:
            raise _translated(error) from None
        return key, datetime.fromisoformat(str(key.signed_expiry).replace("Z", "+00:00"))


def azure_identity(settings: AzureStorage, host: str) -> TokenCredential:
    """The broker's own identity in the cloud that `host` belongs to.

    A client secret when the settings hold one; otherwise what the environment offers: workload identity,
    managed identity, environment variables, or a developer's own login.
    """
    from azure.identity import ClientSecretCredential, DefaultAzureCredential

    authority = authority_for(host)
    if settings.client_secret is not None:
        if settings.tenant_id is None or settings.client_id is None:
            raise ConfigurationError(
                "azure.client_secret needs azure.tenant_id and azure.client_id beside it."
            )
        return ClientSecretCredential(
            settings.tenant_id,
            settings.client_id,
            settings.client_secret.get_secret_value(),
            authority=authority,
        )
    named: dict[str, str] = {}
    if settings.client_id is not None:
        named["managed_identity_client_id"] = named["workload_identity_client_id"] = settings.client_id
    if settings.tenant_id is not None:
        named["workload_identity_tenant_id"] = settings.tenant_id
    return DefaultAzureCredential(authority=authority, **named)


def _translated(error: Exception) -> VendingError:
    from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ServiceRequestError

    status = error.status_code if isinstance(error, HttpResponseError) else None
    code = getattr(error, "error_code", None) or ""
    detail = f"Azure user delegation key: {type(error).__name__} {status or ''} {code}: {error}"
    if isinstance(error, ClientAuthenticationError) and status is None:
        return CloudRefused("The broker has no identity at the cloud.", detail=detail)
    if status is None or status in (408, 429) or status >= 500 or isinstance(error, ServiceRequestError):
        return CloudUnavailable("The cloud did not issue a credential just now.", detail=detail)
    return CloudRefused("The cloud refused to issue a credential for this location.", detail=detail)
