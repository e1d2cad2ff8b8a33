"""Objects as the two APIs of Cloud Storage show them, on top of an emulator that knows the JSON one in
part: our reading of "Objects: list", "Objects: get" (cloud.google.com/storage/docs/json_api/v1/objects)
and "GET Bucket (List Objects)", "GET Object" (cloud.google.com/storage/docs/xml-api).
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

from tests.clouds.gates.forwarding import Upstream

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class Page:
    """A part of a list: objects and common prefixes, by name."""

    entries: list[dict[str, Any]]
    next_token: str | None

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The objects of the page."""
        return [entry for entry in self.entries if "prefix" not in entry]

    @property
    def prefixes(self) -> list[str]:
        """The common prefixes of the page."""
        return [entry["prefix"] for entry in self.entries if "prefix" in entry]


class Objects:
    """Reads from the emulator."""

    def __init__(self, upstream: Upstream, public_base: str) -> None:
        self._upstream = upstream
        self._public = public_base

    async def describe(self, bucket: str, name: str) -> dict[str, Any] | None:
        """An object's resource, or None."""
        answer = await self._upstream.call("GET", f"/storage/v1/b/{quote(bucket)}/o/{quote(name, safe='')}")
        if answer.status_code != 200:
            return None
        resource: dict[str, Any] = answer.json()
        return self._with_links(resource)

    async def page(
        self, bucket: str, prefix: str, delimiter: str, after: str, token: str, most: int
    ) -> Page | None:
        """Objects whose names begin with `prefix`, after `after`; None without such a bucket."""
        query = {"prefix": prefix, "delimiter": delimiter}
        asked = urlencode({name: value for name, value in query.items() if value})
        answer = await self._upstream.call("GET", f"/storage/v1/b/{quote(bucket)}/o?{asked}")
        if answer.status_code != 200:
            return None
        found = answer.json()
        named = [(item["name"], self._with_links(item)) for item in found.get("items", [])]
        named += [(common, {"prefix": common}) for common in found.get("prefixes", [])]
        last = base64.urlsafe_b64decode(token).decode() if token else ""
        rest = sorted(
            (pair for pair in named if pair[0] > last and pair[0] >= after), key=lambda pair: pair[0]
        )
        shown = rest[:most]
        more = (
            base64.urlsafe_b64encode(shown[-1][0].encode()).decode()
            if len(rest) > len(shown) and shown
            else None
        )
        return Page([entry for _, entry in shown], more)

    async def content(self, resource: dict[str, Any], headers: Headers, *, body: bool) -> Response:
        """An object's bytes, or those of a range, with the headers of both APIs."""
        size = int(resource["size"])
        answered = {
            "etag": f'"{resource["etag"] or resource["generation"]}"',
            "last-modified": format_datetime(_moment(resource["updated"]), usegmt=True),
            "x-goog-generation": resource["generation"],
            "x-goog-metageneration": resource["metageneration"],
            "x-goog-stored-content-length": str(size),
            "x-goog-stored-content-encoding": "identity",
            "accept-ranges": "bytes",
            "content-type": resource.get("contentType") or "application/octet-stream",
        }
        for name in ("if-match", "if-none-match"):
            if name in headers and (headers[name] in (answered["etag"], "*")) != (name == "if-match"):
                return Response(status_code=412 if name == "if-match" else 304, headers=answered)
        span = _span(headers.get("range"), size)
        if span is None:
            return Response(status_code=416, headers={"content-range": f"bytes */{size}"})
        first, last = span
        status = 200
        if "range" in headers:
            status = 206
            answered["content-range"] = f"bytes {first}-{last}/{size}"
        else:
            answered["x-goog-hash"] = f"crc32c={resource['crc32c']},md5={resource['md5Hash']}"
        if not body:
            return Response(status_code=200, headers={**answered, "content-length": str(size)})
        data = b""
        if size:
            path = f"/download/storage/v1/b/{quote(resource['bucket'])}/o/{quote(resource['name'], safe='')}"
            fetched = await self._upstream.call(
                "GET", f"{path}?alt=media", {"range": f"bytes={first}-{last}"}
            )
            data = fetched.content
        return Response(data, status, answered)

    def _with_links(self, resource: dict[str, Any]) -> dict[str, Any]:
        path = f"/b/{quote(resource['bucket'])}/o/{quote(resource['name'], safe='')}"
        resource["size"] = str(resource["size"])
        resource["selfLink"] = f"{self._public}/storage/v1{path}"
        resource["mediaLink"] = (
            f"{self._public}/download/storage/v1{path}?generation={resource['generation']}&alt=media"
        )
        return resource


def json_list(page: Page) -> Response:
    """A page as the JSON API has it."""
    answer: dict[str, Any] = {"kind": "storage#objects"}
    if page.objects:
        answer["items"] = page.objects
    if page.prefixes:
        answer["prefixes"] = page.prefixes
    if page.next_token:
        answer["nextPageToken"] = page.next_token
    return JSONResponse(answer)


def xml_list(bucket: str, prefix: str, page: Page) -> Response:
    """A page as the XML API has it (list-type=2)."""
    parts = [f"<Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix>"]
    parts.append(f"<IsTruncated>{'true' if page.next_token else 'false'}</IsTruncated>")
    if page.next_token:
        parts.append(f"<NextContinuationToken>{page.next_token}</NextContinuationToken>")
    for item in page.objects:
        parts.append(
            f"<Contents><Key>{escape(item['name'])}</Key><Generation>{item['generation']}</Generation>"
            f"<LastModified>{_moment(item['updated']).strftime('%Y-%m-%dT%H:%M:%S.%f')[:-3]}Z</LastModified>"
            f'<ETag>"{item["etag"] or item["generation"]}"</ETag><Size>{item["size"]}</Size></Contents>'
        )
    parts += [
        f"<CommonPrefixes><Prefix>{escape(common)}</Prefix></CommonPrefixes>" for common in page.prefixes
    ]
    namespace = "http://doc.s3.amazonaws.com/2006-03-01"
    opening = f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="{namespace}">'
    text = f"{opening}{''.join(parts)}</ListBucketResult>"
    return Response(text, media_type="application/xml")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _span(asked: str | None, size: int) -> tuple[int, int] | None:
    """First and last byte of what is asked for; None when the range lies beyond the end."""
    match = _RANGE.fullmatch(asked or "")
    if match is None or not any(match.groups()):
        return 0, size - 1
    if not match[1]:
        return (max(0, size - int(match[2])), size - 1) if size and int(match[2]) else None
    first = int(match[1])
    last = min(int(match[2]), size - 1) if match[2] else size - 1
    return (first, last) if first <= last else None
