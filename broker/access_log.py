"""The access log: a line for each request, as text for people or as JSON for machines.

There is one for every request, so it does without the records of `logging`: the line is made at once, and
the lines of one turn of the event loop are written together.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import BinaryIO

import orjson
from starlette.types import Scope


class AccessLog:
    """Used on the event loop only."""

    def __init__(self, stream: BinaryIO, log_format: str) -> None:
        self._stream = stream
        self._json = log_format == "json"
        self._waiting: list[bytes] = []
        self._second, self._stamp = -1, ""

    def write(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        """Tell of a request that was answered."""
        method, path, milliseconds = scope["method"], _loggable_path(scope), round(seconds * 1000, 1)
        message = f"{method} {path} {status} {milliseconds:.1f}ms"
        if self._json:
            told = {
                "time": self._now() + "+00:00",
                "level": "info",
                "logger": "lakepass.access",
                "message": message,
                "request_id": request_id,
                "method": method,
                "path": path,
                "status": status,
                "milliseconds": milliseconds,
                "address": (scope.get("client") or ("-",))[0],
            }
            if (recipient := scope.get("lakepass.recipient")) is not None:
                told["recipient"] = recipient
            line = orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)
        else:
            line = f"{self._now()}+00:00 info    {request_id} {message}\n".encode()
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self.flush)
        self._waiting.append(line)

    def flush(self) -> None:
        """Write what is waiting."""
        lines, self._waiting = self._waiting, []
        # There is nowhere left to tell that the log cannot be written; a request does not fail for it.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(b"".join(lines))
            self._stream.flush()

    def _now(self) -> str:
        second, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
        if second != self._second:
            self._second, self._stamp = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._stamp}.{milliseconds:03}"


def _loggable_path(scope: Scope) -> str:
    """The path in one harmless line, without an activation link's code, which is secret until it is used."""
    path = str(scope["path"])
    if path.startswith("/activate/"):
        return "/activate/…"
    return path if path.isprintable() else path.encode("unicode_escape").decode("ascii")
