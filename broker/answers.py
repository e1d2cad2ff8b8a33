"""Answers in JSON, and errors as answers. Nothing that leaves the broker may rest in a cache."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

from lakepass.broker.errors import RequestError

JSON = "application/json; charset=utf-8"
NO_STORE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def json_answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer that no cache keeps."""
    return Response(orjson.dumps(content), status, {**NO_STORE, **(headers or {})}, JSON)


def error_answer(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    """An error in the protocol's shape."""
    return json_answer({"errorCode": code, "message": message}, status, headers)


def refusal(error: RequestError) -> Response:
    """The answer to a request that was refused."""
    return error_answer(error.status, error.code, error.message, error.headers)
