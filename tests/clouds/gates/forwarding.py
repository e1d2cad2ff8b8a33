"""Passing an allowed request on to the emulator, and serving a gate on plain and encrypted ports."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from urllib.parse import unquote

import httpx
import uvicorn
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp

_NOT_PASSED_ON = {b"host", b"connection", b"keep-alive", b"transfer-encoding", b"te", b"upgrade", b"expect"}


class Upstream:
    """The emulator behind a gate."""

    def __init__(self, base: str, ca_file: str | None = None) -> None:
        self._base = httpx.URL(base)
        verify = ssl.create_default_context(cafile=ca_file) if ca_file else False
        self._client = httpx.AsyncClient(verify=verify, timeout=60, trust_env=False)

    async def call(self, method: str, target: str, headers: dict[str, str] | None = None) -> httpx.Response:
        """A request of the gate's own; `target` is path and query, percent-encoded."""
        return await self._client.request(method, self._url(target), headers=headers)

    async def send(
        self, request: Request, target: str, *, without: Iterable[str] = (), body: bytes | None = None
    ) -> Response:
        """The caller's request, sent to `target`, with the emulator's answer streamed back as it is."""
        dropped = _NOT_PASSED_ON | {name.lower().encode() for name in without}
        headers = [(name, value) for name, value in request.headers.raw if name not in dropped]
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in request.headers.raw)
        content: bytes | AsyncIterator[bytes] | None = body
        if body is not None:
            headers = [(name, value) for name, value in headers if name != b"content-length"]
        elif has_body:
            content = request.stream()
        outgoing = self._client.build_request(
            request.method, self._url(target), headers=headers, content=content
        )
        for name in ("user-agent", "accept", "accept-encoding"):
            if name not in request.headers and name in outgoing.headers:
                del outgoing.headers[name]
        answer = await self._client.send(outgoing, stream=True)

        async def pass_back() -> AsyncIterator[bytes]:
            try:
                async for piece in answer.aiter_raw():
                    yield piece
            finally:
                await answer.aclose()

        response = StreamingResponse(pass_back(), answer.status_code)
        response.raw_headers = [(n, v) for n, v in answer.headers.raw if n.lower() not in _NOT_PASSED_ON]
        return response

    def _url(self, target: str) -> httpx.URL:
        return self._base.copy_with(raw_path=target.encode("ascii"))


def decoded_segments(raw_path: str) -> list[str] | None:
    """The segments of a percent-encoded path, decoded; None when they could name a second place."""
    segments = [unquote(segment) for segment in raw_path.split("/")]
    if any(segment in (".", "..") or "/" in segment or "\\" in segment for segment in segments):
        return None
    return segments


def serve(app: ASGIApp, plain_port: int, encrypted: tuple[int, str, str] | None = None) -> None:
    """Serve `app` on loopback until ended: on a plain port, and on an encrypted one (port, certificate,
    key).
    """

    def server(port: int, certificate: str | None = None, key: str | None = None) -> uvicorn.Server:
        return uvicorn.Server(
            uvicorn.Config(
                app,
                host="127.0.0.1",
                port=port,
                ssl_certfile=certificate,
                ssl_keyfile=key,
                log_level="warning",
                access_log=False,
                timeout_keep_alive=60,
                server_header=False,
            )
        )

    servers = [server(plain_port)] + ([server(*encrypted)] if encrypted else [])

    async def run() -> None:
        await asyncio.gather(*(each.serve() for each in servers))

    asyncio.run(run())
