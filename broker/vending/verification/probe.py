"""What a holder of a credential can try at a store. Each cloud has its own probe behind the same few
operations."""

from __future__ import annotations

from typing import Protocol

from lakepass.reader.credentials import AwsKeys, AzureSas, Credential
from lakepass.reader.location import Location


class Refused(Exception):
    """The store said no: this credential is not for that."""


class Missing(Exception):
    """The store let the request through and there was nothing there."""


class Probe(Protocol):
    """Requests with one credential. Each raises `Refused`, or `Missing`, or gives its result."""

    def list(self, prefix: str | None) -> list[str]:
        """Names that begin with `prefix`, a page of them; None asks without a prefix."""

    def read(self, name: str) -> None:
        """The first byte of an object."""

    def write(self, name: str) -> None:
        """A small object under a name that does not exist."""

    def delete(self, name: str) -> None:
        """Delete an object."""

    def copy(self, source: str, target: str) -> None:
        """Copy an object to a name that does not exist."""

    def close(self) -> None:
        """Let go of connections."""


def probe_for(location: Location, credential: Credential) -> Probe:
    """The probe for a credential's cloud; its requests go to the bucket of `location`."""
    if isinstance(credential.keys, AwsKeys):
        from lakepass.broker.vending.verification.s3 import S3Probe

        return S3Probe(location, credential.keys, credential.store)
    if isinstance(credential.keys, AzureSas):
        from lakepass.broker.vending.verification.azure import AzureProbe

        return AzureProbe(location, credential.keys, credential.store)
    from lakepass.broker.vending.verification.gcs import GcsProbe

    return GcsProbe(location, credential.keys, credential.store)
