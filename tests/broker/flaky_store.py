"""A store in front of another that fails as it is told: an HTTP proxy whose next answers are chosen by "
"path."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx


@dataclass
class FlakyStore:
    """Where it is, what it does wrong below which path, and what was asked of it."""

    endpoint: str = ""
    faults: dict[str, int | float] = field(default_factory=dict)
    """A status to answer with below a path, or as a float the seconds to wait before answering."""
    asked: list[str] = field(default_factory=list)


@contextmanager
def flaky_store(endpoint: str) -> Iterator[FlakyStore]:
    """A proxy for the store at `endpoint`; signatures stay good, for the host is passed on."""
    store = FlakyStore()
    client = httpx.Client(timeout=60)
    behind = urlsplit(endpoint).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            store.asked.append(self.path)
            for path, fault in store.faults.items():
                if path not in self.path:
                    continue
                if isinstance(fault, float):
                    time.sleep(fault)
                    break
                code = {403: "AccessDenied", 404: "NoSuchKey", 503: "SlowDown"}.get(fault, "InternalError")
                self._send(fault, f"<Error><Code>{code}</Code></Error>".encode(), {})
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            answer = client.request(self.command, f"http://{behind}{self.path}", headers=headers)
            kept = ("content-type", "etag", "last-modified", "content-range", "accept-ranges")
            self._send(
                answer.status_code,
                answer.content,
                {name: value for name, value in answer.headers.items() if name in kept},
            )

        do_HEAD = do_GET

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    store.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        client.close()
