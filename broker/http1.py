"""HTTP/1.1 as clients really speak it.

`java.net.http.HttpClient`, which Spark's credential providers use, offers an upgrade to HTTP/2 with every
first request (`Connection: Upgrade, HTTP2-Settings`, `Upgrade: h2c`). A server that does not take the offer
answers as if it had not been made (RFC 9113 drops it altogether). The parser behind uvicorn however stops
at such a header and loses the request's body, so the offer is taken out before it parses.

A client that stops reading its answer without going away would keep what the answer holds in memory for
as long as it likes. When it has taken nothing for `patience` seconds, its connection is cut.
"""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_OFFER = re.compile(rb"\r\n(?:Upgrade: *h2c|HTTP2-Settings:[^\r\n]*)(?=\r\n)", re.IGNORECASE)
_CONNECTION = re.compile(rb"\r\nConnection: *Upgrade, *HTTP2-Settings(?=\r\n)", re.IGNORECASE)


class Http1Protocol(HttpToolsProtocol):
    """uvicorn's protocol, deaf to the offer of an upgrade, and not endlessly patient."""

    patience = 60.0
    _watch: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Take what arrived on the connection."""
        super().data_received(without_upgrade(data))

    def pause_writing(self) -> None:
        """The client is slower than its answer: from now on it is watched."""
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._watched()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        self._watched()
        super().connection_lost(exc)

    def _watch_writing(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._watch = self.loop.call_later(self.patience, self._look_again, waiting)

    def _look_again(self, waiting: int) -> None:
        if self.transport.get_write_buffer_size() < waiting:
            self._watch_writing()  # slow, but it reads
        else:
            self.transport.abort()

    def _watched(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None


def http1_protocol(patience: timedelta) -> type[Http1Protocol]:
    """The protocol with that much patience."""
    return type("Http1Protocol", (Http1Protocol,), {"patience": patience.total_seconds()})


def without_upgrade(data: bytes) -> bytes:
    """A request's head without the offer; what follows the head is left alone.

    >>> without_upgrade(b"GET / HTTP/1.1\\r\\nHost: h\\r\\nUpgrade: h2c\\r\\n\\r\\nbody")
    b'GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\nbody'
    """
    head, separator, rest = data.partition(b"\r\n\r\n")
    if b"h2c" not in head.lower():
        return data
    head = _CONNECTION.sub(b"", _OFFER.sub(b"", head + b"\r\n"))
    return head.removesuffix(b"\r\n") + separator + rest
