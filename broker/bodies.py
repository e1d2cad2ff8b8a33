"""The JSON body of a request: its size is bounded by the envelope, its depth by the parser."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request

from lakepass.broker.errors import MalformedRequest, UnsupportedMediaType


async def json_object(request: Request) -> dict[str, Any]:
    """The body's JSON object; `{}` when there is neither a body nor a content type."""
    body = await request.body()
    kind = request.headers.get("content-type")
    if kind is None and not body:
        return {}
    if kind is not None:
        essence = kind.partition(";")[0].strip().lower()
        if essence != "application/json" and not essence.endswith("+json"):
            raise UnsupportedMediaType(f"The body is application/json, not {kind[:100]!r}.")
    if not body.strip():
        raise MalformedRequest("No content to map due to end-of-input: send {} when there is nothing to say.")
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise MalformedRequest("The body is not valid JSON.") from None
    if not isinstance(content, dict):
        raise MalformedRequest("The body is a JSON object.")
    return content
