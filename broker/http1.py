"""HTTP/1.1 as Java's own client speaks it.

`java.net.http.HttpClient`, which Spark's credential providers use, offers an upgrade to HTTP/2 with every
first request (`Connection: Upgrade, HTTP2-Settings`, `Upgrade: h2c`). A server that does not take the offer
answers as if it had not been made (RFC 9113 drops it altogether). The parser behind uvicorn however stops
at such a header and loses the request's body, so the offer is taken out before it parses.
"""

from __future__ import annotations

import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_OFFER = re.compile(rb"\r\n(?:Upgrade: *h2c|HTTP2-Settings:[^\r\n]*)(?=\r\n)", re.IGNORECASE)
_CONNECTION = re.compile(rb"\r\nConnection: *Upgrade, *HTTP2-Settings(?=\r\n)", re.IGNORECASE)


class Http1Protocol(HttpToolsProtocol):
    """uvicorn's protocol, deaf to the offer of an upgrade."""

    def data_received(self, data: bytes) -> None:
        """Take what arrived on the connection."""
        super().data_received(without_upgrade(data))


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
