"""What surrounds every request: its id, its limits, its log line, its count, and the last word on failures.

A plain ASGI layer, because it must not hold back a streamed answer. The request id is the client's own
`X-Request-Id` when that is harmless text, and is in every answer and log line.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from contextvars import ContextVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakepass.broker.access_log import AccessLog
from lakepass.broker.answers import error_answer, refusal
from lakepass.broker.config import ServerSettings
from lakepass.broker.errors import MalformedRequest, RequestError, TooLarge
from lakepass.broker.metrics import Metrics

logger = logging.getLogger("lakepass.broker")

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the request at hand, for log lines and for what is done on its behalf."""

_HARMLESS = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


class Envelope:
    """The outermost layer of the application."""

    def __init__(
        self, app: ASGIApp, *, server: ServerSettings, metrics: Metrics, access_log: AccessLog | None
    ) -> None:
        self._app = app
        self._access_log = access_log
        self._server = server
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identifier = _identifier(scope)
        request_id.set(identifier)
        scope["lakepass.request_id"] = identifier
        started = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", identifier.encode())]
            await send(message)

        try:
            self._check_headers(scope)
            await self._app(scope, self._bounded(receive), send_with_id)
        except RequestError as error:
            if status == 0:
                await refusal(error)(scope, receive, send_with_id)
        except Exception:
            logger.exception("request %s failed", identifier)
            if status == 0:
                message = f"The server failed on this request. Tell the provider the request id {identifier}."
                await error_answer(500, "INTERNAL_ERROR", message)(scope, receive, send_with_id)
            else:
                raise
        finally:
            seconds = time.perf_counter() - started
            route = _route(scope)
            self._metrics.observe(scope["method"], route, status, seconds)
            if self._access_log is not None:
                self._access_log.write(scope, identifier, status, seconds)

    def _check_headers(self, scope: Scope) -> None:
        size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if size > self._server.max_headers:
            error = TooLarge(f"The request's headers are larger than {self._server.max_headers} bytes.")
            error.status = 431
            raise error
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > self._server.max_body):
                raise TooLarge(f"The request's body is larger than {self._server.max_body} bytes.")

    def _bounded(self, receive: Receive) -> Receive:
        limit = self._server.max_body
        patience = self._server.request_timeout.total_seconds()
        received = 0
        whole = False

        async def bounded() -> Message:
            nonlocal received, whole
            if whole:  # only the client's leaving is waited for from here on
                return await receive()
            try:
                async with asyncio.timeout(patience):
                    message = await receive()
            except TimeoutError:
                error = MalformedRequest("The request's body did not arrive in time.")
                error.status = 408
                raise error from None
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if received > limit:
                    raise TooLarge(f"The request's body is larger than {limit} bytes.")
            return message

        return bounded


def _identifier(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _HARMLESS.fullmatch(value):
            return str(value, "ascii")
    return f"{random.getrandbits(128):032x}"


def _route(scope: Scope) -> str:
    """The route's template, so that names never become labels."""
    return getattr(scope.get("route"), "path", "other")
