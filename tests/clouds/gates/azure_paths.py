"""The Data Lake endpoint's shapes on top of blobs: our reading of "Path - List" and "Path - Get Properties"
(learn.microsoft.com/rest/api/storageservices/datalakestoragegen2/path).

Azurite holds blobs in a flat namespace; a directory is wherever a blob's name has a slash.
"""

from __future__ import annotations

import base64
import binascii
import xml.etree.ElementTree as ElementTree
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx
from starlette.responses import JSONResponse, Response

from tests.clouds.gates.azure_sas import Refused

ListBlobs = Callable[[str], Coroutine[Any, Any, httpx.Response]]
"""Calls the emulator's container with a query."""

_EPOCH = "Thu, 01 Jan 1970 00:00:00 GMT"
_OWNER = {"owner": "$superuser", "group": "$superuser"}


@dataclass(frozen=True)
class _Blob:
    name: str
    size: str
    modified: str
    etag: str


async def list_paths(query: Mapping[str, str], call: ListBlobs) -> Response:
    """Path - List: what lies in a directory, or below it when recursive, by name."""
    directory = query.get("directory", "").strip("/")
    prefix = f"{directory}/" if directory else ""
    recursive = query.get("recursive", "false").lower() == "true"
    paths: dict[str, dict[str, str]] = {}
    async for blob in _blobs(prefix, call):
        inner = blob.name.removeprefix(prefix).split("/")
        for depth in range(1, len(inner)):
            paths.setdefault(
                prefix + "/".join(inner[:depth]), _directory_entry(prefix + "/".join(inner[:depth]))
            )
            if not recursive:
                break
        if recursive or len(inner) == 1:
            paths[blob.name] = _file_entry(blob)
    if directory and not paths:
        raise Refused("PathNotFound", "The specified path does not exist.", 404)
    start = _position(query.get("continuation", ""))
    size = min(int(query.get("maxResults", "5000")), 5000)
    ordered = [paths[name] for name in sorted(paths)]
    headers = {}
    if start + size < len(ordered):
        headers["x-ms-continuation"] = base64.b64encode(str(start + size).encode()).decode()
    return JSONResponse({"paths": ordered[start : start + size]}, headers=headers)


async def directory_properties(path: str, call: ListBlobs) -> Response | None:
    """Path - Get Properties of a directory, or None when nothing lies in it."""
    async for _ in _blobs(f"{path}/", call, at_most=1):
        headers = {
            "x-ms-resource-type": "directory",
            "x-ms-meta-hdi_isfolder": "true",
            "x-ms-permissions": "rwxr-x---",
            **{f"x-ms-{name}": value for name, value in _OWNER.items()},
            "last-modified": _EPOCH,
            "etag": '"0x1"',
        }
        return Response(headers=headers)
    return None


async def _blobs(prefix: str, call: ListBlobs, at_most: int | None = None) -> AsyncIterator[_Blob]:
    marker = ""
    while True:
        asked = {"restype": "container", "comp": "list", "prefix": prefix, "marker": marker}
        if at_most is not None:
            asked["maxresults"] = str(at_most)
        answer = await call(urlencode({name: value for name, value in asked.items() if value}))
        if answer.status_code != 200:
            raise Refused(
                answer.headers.get("x-ms-error-code", "Unknown"), "The list failed.", answer.status_code
            )
        tree = ElementTree.fromstring(answer.text.removeprefix("\ufeff"))
        for blob in tree.iter("Blob"):
            properties = blob.find("Properties")
            assert properties is not None
            yield _Blob(
                blob.findtext("Name", ""),
                properties.findtext("Content-Length", "0"),
                properties.findtext("Last-Modified", _EPOCH),
                properties.findtext("Etag", ""),
            )
        marker = tree.findtext("NextMarker") or ""
        if not marker or at_most is not None:
            return


def _file_entry(blob: _Blob) -> dict[str, str]:
    return {
        "name": blob.name,
        "contentLength": blob.size,
        "lastModified": blob.modified,
        "etag": blob.etag.strip('"'),
        "permissions": "rw-r-----",
        **_OWNER,
    }


def _directory_entry(name: str) -> dict[str, str]:
    return {
        "name": name,
        "isDirectory": "true",
        "contentLength": "0",
        "lastModified": _EPOCH,
        "etag": "0x1",
        "permissions": "rwxr-x---",
        **_OWNER,
    }


def _position(continuation: str) -> int:
    try:
        return int(base64.b64decode(continuation, validate=True) or b"0")
    except (ValueError, binascii.Error):
        raise Refused("InvalidQueryParameterValue", "The continuation is not one of ours.", 400) from None
