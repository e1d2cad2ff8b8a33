"""Credentials a sharing server vends for a table's root and auxiliary locations.

The answer of Generate Temporary Table Credential becomes a `Credential`, its end corrected for the
difference between the server's clock and ours. There is one renewing provider per table and location in a
process, however many tables, scans and threads ask for it; it pickles as names, and is found again in the
process it arrives in.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lakepass.reader.credentials import AwsKeys, AzureSas, Credential, GcpToken, StoreSettings
from lakepass.reader.errors import SharingError
from lakepass.reader.location import Location
from lakepass.reader.sharing.access import CredentialKindError
from lakepass.reader.sharing.names import TableName


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
    fields = answer.get("credentials")
    if not isinstance(fields, dict):
        raise SharingError(f"The server's credential answer for {name} holds no credentials.", 200)
    location = fields.get("location")
    if location and not Location.parse(str(location), allow_root=True).contains(wanted):
        raise SharingError(
            f"The server vended a credential for {location} when {wanted} of {name} was asked for. Ask "
            "the provider.",
            200,
        )
    end = fields.get("expirationTime")
    expires_at = None
    if isinstance(end, int | float) and not isinstance(end, bool):
        expires_at = datetime.fromtimestamp(end / 1000, UTC) - skew
    extension = answer.get("lakepass") if isinstance(answer.get("lakepass"), dict) else {}
    assert isinstance(extension, dict)
    store, renewal = extension.get("storage") or {}, extension.get("renewal") or {}
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
        "lakepass, or use "
        "access='url'."
    )
