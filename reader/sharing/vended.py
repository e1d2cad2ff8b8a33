"""Credentials a sharing server vends for a table's root and auxiliary locations.

The answer of Generate Temporary Table Credential becomes a `Credential`, its end corrected for the
difference between the server's clock and ours. There is one renewing provider per table and location in a
process, however many tables, scans and threads ask for it; it pickles as names, and is found again in the
process it arrives in.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lakepass.reader.credentials import AwsKeys, AzureSas, Credential, GcpToken, Renewing, StoreSettings
from lakepass.reader.errors import SharingError
from lakepass.reader.location import Location
from lakepass.reader.sharing.access import CredentialKindError
from lakepass.reader.sharing.names import TableName
from lakepass.reader.sharing.numbers import with_numbers
from lakepass.reader.sharing.profile import Profile
from lakepass.reader.sharing.rest import Rest


@dataclass(frozen=True)
class Renewal:
    """Where other programs can renew this credential by themselves, if the server says so."""

    aws_container_credentials: str | None = None
    unity_catalog: str | None = None
    table_id: str | None = None


@dataclass(frozen=True)
class Vended:
    """A credential and what the server said beside it."""

    credential: Credential
    renewal: Renewal = Renewal()


def parse_vended(answer: dict[str, Any], wanted: Location, name: TableName, skew: timedelta) -> Vended:
    """The credential in an answer to a request for `wanted`."""
    fields = with_numbers(answer.get("credentials"))
    if not isinstance(fields, dict):
        raise SharingError(f"The server's credential answer for {name} holds no credentials.", 200)
    location = fields.get("location")
    if location and not Location.parse(str(location), allow_root=True).contains(wanted):
        raise SharingError(
            f"The server vended a credential for {location} when {wanted} of {name} was asked for. Ask the "
            "provider.",
            200,
        )
    end = fields.get("expirationTime")
    expires_at = None
    if isinstance(end, int | float) and not isinstance(end, bool):
        expires_at = datetime.fromtimestamp(end / 1000, UTC) - skew
    extension = _object(answer, "lakepass")
    store, renewal = _object(extension, "storage"), _object(extension, "renewal")
    credential = Credential(
        str(wanted),
        _keys(fields, name),
        expires_at,
        StoreSettings(store.get("endpoint"), store.get("region"), bool(store.get("pathStyle"))),
    )
    return Vended(
        credential,
        Renewal(renewal.get("awsContainerCredentials"), renewal.get("unityCatalog"), renewal.get("tableId")),
    )


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """A field of our extension; another server may use the name for something else."""
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def _keys(fields: dict[str, Any], name: TableName) -> AwsKeys | AzureSas | GcpToken:
    aws, azure, gcp = (
        fields.get(key) for key in ("awsTempCredentials", "azureUserDelegationSas", "gcpOauthToken")
    )
    try:
        if aws:
            return AwsKeys(aws["accessKeyId"], aws["secretAccessKey"], aws.get("sessionToken"))
        if azure:
            return AzureSas(str(azure["sasToken"]).removeprefix("?"))
        if gcp:
            return GcpToken(gcp["oauthToken"])
    except (KeyError, TypeError) as error:
        raise SharingError(f"The server's credential for {name} lacks {error}.", 200) from None
    kinds = ", ".join(sorted(set(fields) - {"location", "expirationTime"})) or "nothing"
    raise CredentialKindError(
        f"The server's credential for {name} is of a kind that is not known here ({kinds}). Upgrade "
        "lakepass, or use access='url'."
    )


class VendedProvider(Renewing):
    """The renewing credential of one location of a shared table; made by `provider_for`, one per process."""

    def __init__(self, rest: Rest, name: TableName, location: Location, *, root: bool) -> None:
        super().__init__(self._ask)
        self._rest = rest
        self._name = name
        self._location = location
        self._root = root
        self._renewal = Renewal()

    @property
    def vended(self) -> Vended:
        """The credential in use with what the server said beside it."""
        credential = self()
        return Vended(credential, self._renewal)

    def _ask(self) -> Credential:
        # The root is what a request without a location means, on servers that know no other as well.
        wanted = None if self._root else str(self._location)
        answer = self._rest.credentials(self._name, wanted)
        vended = parse_vended(answer, self._location, self._name, self._rest.transport.skew)
        self._renewal = vended.renewal
        return vended.credential

    def __reduce__(self) -> tuple[Any, ...]:
        return provider_for, (self._rest, self._name, self._location, self._root)

    def __repr__(self) -> str:
        return f"VendedProvider({str(self._name)!r}, {str(self._location)!r})"


_providers: dict[tuple[Profile, tuple[str, str, str], Location], VendedProvider] = {}
_lock = threading.Lock()


def provider_for(rest: Rest, name: TableName, location: Location, root: bool) -> VendedProvider:
    """The process's provider for a location of a table, the same one for all who ask."""
    key = (rest.transport.profile, name.folded, location)
    with _lock:
        found = _providers.get(key)
        if found is None:
            found = _providers[key] = VendedProvider(rest, name, location, root=root)
        return found


def _after_fork() -> None:
    """Locks that another thread held at the fork would never be released in the child."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    for provider in _providers.values():
        provider._flight = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
