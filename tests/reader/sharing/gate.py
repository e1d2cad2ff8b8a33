"""Stands before a store: sees what is asked of it, and does to some requests what networks and stores do."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import httpx


class Gate:
    """Stands before a store and does to some requests what a test says; passes the others on as they are."""

    def __init__(self, target: str) -> None:
        self.trouble: list[str] = []
        self.met = 0
        self.seen: list[str] = []
        """The paths that were asked for."""
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                gate._handle(self, target)

            do_HEAD = do_GET

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._http.server_address[1]}"

    def _next(self, handler: BaseHTTPRequestHandler) -> str:
        with self._lock:
            if not self.trouble or ".parquet" not in handler.path:
                return ""
            self.met += 1
            return self.trouble.pop(0)

    def _handle(self, handler: BaseHTTPRequestHandler, target: str) -> None:
        trouble = self._next(handler)
        self.seen.append(urlsplit(handler.path).path)
        if trouble in ("503", "403"):
            code = "SlowDown" if trouble == "503" else "AccessDenied"
            body = f"<Error><Code>{code}</Code></Error>".encode()
            handler.send_response(int(trouble))
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
            return
        headers = {name: value for name, value in handler.headers.items() if name.lower() != "connection"}
        with httpx.Client(timeout=30) as client:
            answer = client.request(handler.command, target + handler.path, headers=headers)
        handler.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "content-encoding"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer.content)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(answer.content[:10] if trouble == "drop" else answer.content)
        if trouble == "drop":
            handler.close_connection = True

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
