"""A real HTTP server on loopback whose answers a test lays out, and which remembers what it was asked.

Each path has a list of replies, given in turn; the last one stays. A reply can be cut off in the middle of
its body, or come late: what a network does, for real.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "local-test-token"


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def fields(self) -> dict[str, Any]:
        decoded = json.loads(self.body) if self.body else {}
        assert isinstance(decoded, dict)
        return decoded


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Close the connection after so many bytes of a body announced as whole."""
    delay: float = 0.0


Answer = Reply | Callable[[Asked], Reply]


def as_json(value: object, status: int = 200, **headers: str) -> Reply:
    sent = {"Content-Type": "application/json; charset=utf-8", **headers}
    return Reply(status, json.dumps(value).encode(), sent)


def ndjson(*lines: object, version: int | None = 0, capabilities: str = "", **more: Any) -> Reply:
    headers = {"Content-Type": "application/x-ndjson; charset=utf-8"}
    if version is not None:
        headers["Delta-Table-Version"] = str(version)
    if capabilities:
        headers["delta-sharing-capabilities"] = capabilities
    return Reply(200, b"".join(json.dumps(line).encode() + b"\n" for line in lines), headers, **more)


class Server:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                server._handle(self)

            do_POST = do_HEAD = do_GET

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def profile(self) -> dict[str, Any]:
        return {"shareCredentialsVersion": 1, "endpoint": f"{self.origin}/api/", "bearerToken": TOKEN}

    def on(self, method: str, path: str, *answers: Answer) -> None:
        """Lay out the answers of a path below the profile's endpoint, or of any path that begins with
        `//`."""
        full = path.removeprefix("/") if path.startswith("//") else f"/api{path}"
        with self._lock:
            self._answers[method, full] = list(answers)

    def requests(self, suffix: str) -> list[Asked]:
        return [one for one in self.asked if one.path.endswith(suffix)]

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in handler.headers.items()}
        asked = Asked(handler.command, parts.path, query, headers, body)
        with self._lock:
            self.asked.append(asked)
            answers = self._answers.get((asked.method, asked.path))
            answer: Answer
            if not answers:
                answer = as_json({"errorCode": "RESOURCE_DOES_NOT_EXIST", "message": "no such thing"}, 404)
            else:
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
        reply = answer(asked) if callable(answer) else answer
        time.sleep(reply.delay)
        try:
            handler.send_response_only(reply.status)
            if "Date" not in reply.headers:
                handler.send_header("Date", handler.date_time_string())
            for name, value in reply.headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(reply.body)))
            handler.end_headers()
            if handler.command != "HEAD":
                handler.wfile.write(reply.body[: reply.cut_after])
            if reply.cut_after is not None:
                handler.close_connection = True
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.stop()
