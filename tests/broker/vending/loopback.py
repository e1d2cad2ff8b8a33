"""A small HTTP server on loopback that answers as a test says, and remembers what it was asked.

For what a real store does not do on request: throttle, fail, hang, refuse a duration.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs


@dataclass(frozen=True)
class Asked:
    """A request, with its form decoded."""

    path: str
    form: dict[str, str]
    body: bytes = field(repr=False)
    authorization: str = field(default="", repr=False)


Answer = tuple[int, str]


@dataclass
class LoopbackServer:
    """`answer` decides; `asked` is what came."""

    answer: Callable[[Asked], Answer]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""


@contextmanager
def loopback_server(answer: Callable[[Asked], Answer]) -> Iterator[LoopbackServer]:
    """Run a server until the block ends."""
    server = LoopbackServer(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            form = {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
            asked = Asked(self.path, form, body, self.headers.get("authorization", ""))
            server.asked.append(asked)
            status, text = server.answer(asked)
            self.send_response(status)
            self.send_header("Content-Type", "application/json" if text.startswith("{") else "text/xml")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST

        def log_message(self, *_arguments: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        request_queue_size = 256
        daemon_threads = True

    listener = Listener(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{listener.server_port}"
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()


def sts_answer(seconds: float = 3600, *, after: float = 0.0) -> Callable[[Asked], Answer]:
    """STS' answer to AssumeRole: fresh keys that live for `seconds`, given `after` a while."""
    count = 0
    lock = threading.Lock()

    def answer(_asked: Asked) -> Answer:
        nonlocal count
        with lock:
            count += 1
            number = count
        time.sleep(after)
        end = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return 200, (
            '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>'
            f"<Credentials><AccessKeyId>ASIALOCAL{number}</AccessKeyId>"
            f"<SecretAccessKey>local-secret-{number}</SecretAccessKey>"
            f"<SessionToken>local-session-token-{number}</SessionToken><Expiration>{end}</Expiration></Credentials>"
            "<PackedPolicySize>7</PackedPolicySize></AssumeRoleResult></AssumeRoleResponse>"
        )

    return answer


def sts_error(
    code: str, message: str = "told by the cloud: account 123456789012", status: int = 400
) -> Answer:
    """An error of STS."""
    return status, (
        '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    )
