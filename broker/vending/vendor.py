"""What every cloud's vendor has in common, and which one a storage entry gets."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from lakepass.broker.config import ConfigurationError, StorageEntry
from lakepass.broker.vending.grantee import Grantee
from lakepass.reader.credentials import Credential
from lakepass.reader.location import Location


class Vendor(Protocol):
    """Mints credentials at one cloud with one identity. Threads may share it."""

    @property
    def cloud(self) -> str:
        """`aws`, `azure` or `gcp`."""

    @property
    def identity(self) -> str:
        """Whom the cloud takes the broker for; two vendors with the same one give the same credentials."""

    @property
    def scope(self) -> str:
        """What one credential opens: `directory`, or `container` where the administrator accepted that."""

    def check(self, location: Location, grantee: Grantee) -> object:
        """The scope document for `location`, without calling the cloud; raises `ScopeRefused` where none
        exists."""

    def vend(self, location: Location, grantee: Grantee, lifetime: timedelta, request_id: str) -> Credential:
        """A credential that reads and lists below `location`; raises a `VendingError`."""


def vendor_for(entry: StorageEntry) -> Vendor:
    """The vendor of a storage entry; raises an error that names the missing key or the extra to install."""
    if entry.aws is not None:
        from lakepass.broker.vending.aws import AwsVendor

        return AwsVendor(entry.aws)
    if entry.azure is not None:
        from lakepass.broker.vending.azure import AzureVendor

        return AzureVendor(entry.azure)
    if entry.gcp is not None:
        from lakepass.broker.vending.gcp import GcpVendor

        return GcpVendor(entry.gcp)
    raise ConfigurationError(f"The storage entry {entry.location} names no cloud (aws, azure or gcp).")
