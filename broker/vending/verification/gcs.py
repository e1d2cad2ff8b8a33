"""Attacks on Google Cloud Storage, over its JSON API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from lakepass.broker.vending.verification.probe import Missing, Refused
from lakepass.reader.credentials import GcpToken, StoreSettings
from lakepass.reader.location import Location


class GcsProbe:
    """One bucket, one access token."""

    def __init__(self, location: Location, keys: GcpToken, store: StoreSettings) -> None:
        self._bucket = quote(location.bucket, safe="")
        self._client = httpx.Client(
            base_url=store.endpoint or "https://storage.googleapis.com",
            headers={"Authorization": f"Bearer {keys.oauth_token}"},
            timeout=20,
        )

    def list(self, prefix: str | None) -> list[str]:
        """Names that begin with `prefix`."""
        options = {"maxResults": "200"} if prefix is None else {"maxResults": "200", "prefix": prefix}
        answer = self._call("GET", f"/storage/v1/b/{self._bucket}/o", params=options)
        return [item["name"] for item in answer.json().get("items", [])]

    def read(self, name: str) -> None:
        """The first byte."""
        self._call("GET", self._path(name), params={"alt": "media"}, headers={"Range": "bytes=0-0"})

    def write(self, name: str) -> None:
        """A small object."""
        self._call(
            "POST",
            f"/upload/storage/v1/b/{self._bucket}/o",
            params={"uploadType": "media", "name": name},
            content=b"lakepass verify",
        )

    def delete(self, name: str) -> None:
        """Delete."""
        self._call("DELETE", self._path(name))

    def copy(self, source: str, target: str) -> None:
        """Copy within the bucket."""
        to = f"/b/{self._bucket}/o/{quote(target, safe='')}"
        self._call("POST", f"{self._path(source)}/rewriteTo{to}")

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def _path(self, name: str) -> str:
        return f"/storage/v1/b/{self._bucket}/o/{quote(name, safe='')}"

    def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer = self._client.request(method, path, **options)
        if answer.status_code in (401, 403):
            raise Refused(str(answer.status_code))
        if answer.status_code == 404:
            raise Missing("404")
        if answer.status_code != 416:  # an empty object has no first byte
            answer.raise_for_status()
        return answer
