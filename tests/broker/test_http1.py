"""Requests as Java's HTTP client sends them, with an offer to go on in HTTP/2."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from lakepass.broker.http1 import without_upgrade
from tests.broker.server import running_broker

OFFER = "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\nUpgrade: h2c\r\n"


def test_the_body_of_such_a_request_is_read() -> None:
    with running_broker() as broker:
        token = broker.recipient("ann")["bearerToken"]
        address = urlsplit(broker.origin)
        body = '{"table_id": "00000000-0000-0000-0000-000000000000", "operation": "READ"}'
        request = (
            "POST /api/2.1/unity-catalog/temporary-table-credentials HTTP/1.1\r\n"
            f"Content-Length: {len(body)}\r\nHost: {address.netloc}\r\n{OFFER}"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\r\n{body}"
        )
        with socket.create_connection(
            (str(address.hostname), int(address.port or 0)), timeout=20
        ) as connection:
            connection.sendall(request.encode())
            answer = connection.recv(65536).decode()
    assert answer.startswith("HTTP/1.1 404")  # there is no such table; the body was understood


def test_only_the_offer_is_taken_out() -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nUpgrade: websocket\r\n\r\n"
    assert without_upgrade(head) == head
    offer = OFFER.encode()
    assert without_upgrade(b"GET / HTTP/1.1\r\n" + offer + b"Host: h\r\n\r\nUpgrade: h2c\r\n") == (
        b"GET / HTTP/1.1\r\nHost: h\r\n\r\nUpgrade: h2c\r\n"
    )
