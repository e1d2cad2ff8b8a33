"""How the broker itself reaches a table's stores: to read the log, and to sign URLs.

It uses a credential that it vends for itself on the table's own directory, never a wider one. Only where a
storage entry has no role to assume is the broker's own identity used as it is; such a table has no `dir`
access.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from lakepass.broker.config import AwsStorage, ConfigurationError, GcpStorage, Settings, StorageEntry
from lakepass.broker.signing.azure import AzureSigner
from lakepass.broker.signing.gcs import GcsSigner
from lakepass.broker.signing.s3 import S3Signer
from lakepass.broker.vending import Grantee, Vending
from lakepass.broker.vending.azure import AzureVendor
from lakepass.broker.vending.azure_scope import protocol_for
from lakepass.broker.vending.gcp import source_credentials
from lakepass.reader.credentials import AwsKeys, Credential, CredentialProvider, StoreSettings
from lakepass.reader.errors import MissingExtraError
from lakepass.reader.location import Location


class UrlSigner(Protocol):
    """Signs reads of objects in one bucket or container, all with the same end."""

    expires_at_ms: int

    def sign(self, keys: list[str]) -> list[str]:
        """A URL for each key."""
        ...


class BrokerStorage:
    """Credentials and signers for the broker's own use, by location."""

    def __init__(self, settings: Settings, vending: Vending) -> None:
        self._settings = settings
        self._vending = vending
        self._own: dict[StorageEntry, Callable[[], Credential]] = {}

    def entry(self, location: Location) -> StorageEntry:
        """The storage entry of a location; raises `ConfigurationError` when there is none."""
        entry = self._settings.storage_for(location)
        if entry is None:
            raise ConfigurationError(f"No storage is configured for {location}.")
        return entry

    def provider(self, location: Location) -> CredentialProvider:
        """Credentials that read below `location`."""
        entry = self.entry(location)
        if entry.aws is not None and entry.aws.role_arn is None:
            if entry not in self._own:
                self._own[entry] = _own_aws_identity(entry.aws)
            return self._own[entry]
        return lambda: self._vending.vend(entry, location, Grantee.broker())

    def signer(self, location: Location, lifetime: timedelta) -> UrlSigner:
        """Signs URLs for what lies below `location`."""
        entry = self.entry(location)
        if entry.aws is not None:
            return S3Signer(self.provider(location)(), location.bucket, lifetime)
        if entry.azure is not None:
            return self._azure_signer(entry, location, lifetime)
        assert entry.gcp is not None
        return _gcs_signer(entry.gcp, location, lifetime)

    def _azure_signer(self, entry: StorageEntry, location: Location, lifetime: timedelta) -> AzureSigner:
        vendor = self._vending.vendor(entry)
        assert isinstance(vendor, AzureVendor)
        assert entry.azure is not None
        key, ends = vendor.delegation_key(location, datetime.now(UTC) + lifetime)
        endpoint = entry.azure.endpoint or f"https://{location.account_host.replace('.dfs.', '.blob.')}"
        return AzureSigner(
            key,
            ends,
            account=location.account,
            container=location.bucket,
            blob_endpoint=endpoint,
            lifetime=lifetime,
            protocol=protocol_for(entry.azure.endpoint),
        )


def _own_aws_identity(settings: AwsStorage) -> Callable[[], Credential]:
    try:
        import boto3
    except ImportError:
        raise MissingExtraError("aws", "Reading tables on S3 with the broker's own identity") from None
    secret = settings.secret_access_key
    session = boto3.session.Session(
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=None if secret is None else secret.get_secret_value(),
        profile_name=settings.profile,
    )
    # Where the environment points every AWS SDK elsewhere, that is a store which is reached by path.
    elsewhere = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    by_path = settings.path_style or (settings.endpoint is None and elsewhere is not None)
    region = settings.region or session.region_name
    store = StoreSettings(settings.endpoint or elsewhere, region, by_path)
    held = session.get_credentials()
    if held is None:
        raise ConfigurationError(
            "The broker has no AWS identity: set aws.role_arn, keys, or its environment."
        )

    def credential() -> Credential:
        frozen = held.get_frozen_credentials()
        # botocore renews them by itself; asked again this soon, what is handed on never ends in use.
        ends = datetime.now(UTC) + timedelta(minutes=15) if frozen.token else None
        keys = AwsKeys(frozen.access_key or "", frozen.secret_key or "", frozen.token)
        return Credential("", keys, ends, store)

    return credential


def _gcs_signer(settings: GcpStorage, location: Location, lifetime: timedelta) -> GcsSigner:
    credentials: Any = source_credentials(settings, lifetime)
    account = settings.service_account or getattr(credentials, "service_account_email", None)
    local = settings.service_account is None and getattr(credentials, "signer", None) is not None
    if not local and (account is None or account == "default"):
        raise ConfigurationError(
            "gcp.service_account is needed to sign URLs: the broker's identity has no key of its own, so "
            "Google signs "
            "in the name of an account."
        )
    sign = credentials.signer.sign if local else _iam_signing(settings, credentials, str(account))
    return GcsSigner(
        sign,
        account=str(account),
        bucket=location.bucket,
        lifetime=lifetime,
        endpoint=settings.endpoint,
        remote=not local,
    )


def _iam_signing(settings: GcpStorage, credentials: Any, account: str) -> Callable[[bytes], bytes]:
    """Google's IAM signs for an account: the way without a private key."""
    from google.auth.transport.requests import AuthorizedSession

    session: Any = AuthorizedSession(credentials)  # type: ignore[no-untyped-call]  # google-auth is untyped here
    endpoint = (settings.iam_endpoint or "https://iamcredentials.googleapis.com").rstrip("/")
    url = f"{endpoint}/v1/projects/-/serviceAccounts/{account}:signBlob"

    def sign(message: bytes) -> bytes:
        answer = session.post(url, json={"payload": base64.b64encode(message).decode()}, timeout=10)
        answer.raise_for_status()
        return base64.b64decode(answer.json()["signedBlob"])

    return sign
