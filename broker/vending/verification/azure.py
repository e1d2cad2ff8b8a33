"""Attacks on Azure storage, with azure-storage-blob, which the Data Lake SDK brings along."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from lakepass.broker.vending.verification.probe import Missing, Refused
from lakepass.reader.credentials import AzureSas, StoreSettings
from lakepass.reader.errors import MissingExtraError
from lakepass.reader.location import Location


class AzureProbe:
    """One container, one SAS."""

    def __init__(self, location: Location, keys: AzureSas, store: StoreSettings) -> None:
        try:
            from azure.storage.blob import BlobServiceClient
        except ImportError:
            raise MissingExtraError("azure", "Verifying credentials for Azure") from None
        endpoint = store.endpoint or f"https://{location.account_host.replace('.dfs.', '.blob.', 1)}"
        self._service = BlobServiceClient(
            endpoint, keys.sas_token, retry_total=1, initial_backoff=1, connection_timeout=5, read_timeout=20
        )
        self._container = self._service.get_container_client(location.bucket)

    def list(self, prefix: str | None) -> list[str]:
        """Names that begin with `prefix`."""
        with _translated():
            return list(islice(self._container.list_blob_names(name_starts_with=prefix), 200))

    def read(self, name: str) -> None:
        """The first byte."""
        with _translated():
            if self._container.get_blob_client(name).get_blob_properties().size:
                self._container.download_blob(name, 0, 1).readall()

    def write(self, name: str) -> None:
        """A small blob."""
        with _translated():
            self._container.upload_blob(name, b"lakepass verify")

    def delete(self, name: str) -> None:
        """Delete."""
        with _translated():
            self._container.delete_blob(name)

    def copy(self, source: str, target: str) -> None:
        """Copy within the container."""
        url = self._container.get_blob_client(source).url
        with _translated():
            self._container.get_blob_client(target).start_copy_from_url(url)

    def close(self) -> None:
        """Let go of connections."""
        self._service.close()


@contextmanager
def _translated() -> Iterator[None]:
    from azure.core.exceptions import HttpResponseError

    try:
        yield
    except HttpResponseError as error:
        if error.status_code in (401, 403):
            raise Refused(str(getattr(error, "error_code", "") or error.status_code)) from None
        if error.status_code == 404:
            raise Missing("404") from None
        raise
