"""Long answers to clients that leave in the middle, or stop reading: the others notice nothing."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.log_tables import COMMITS, write_table
from tests.broker.server import RunningBroker, running_broker, s3_storage
from tests.clouds.ministack import Ministack

_FILES = 20_000
_TABLE = "/shares/long/schemas/data/tables/table"


@dataclass(frozen=True)
class Long:
    """A broker with a table whose answer is larger than what the sockets hold."""

    broker: RunningBroker
    profile: dict[str, Any]

    def ask(self) -> socket.socket:
        """Ask for all files; nothing is read yet."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        connection.connect(("127.0.0.1", self.broker.settings.server.port))
        head = [
            f"POST /delta-sharing{_TABLE}/query HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {self.profile['bearerToken']}",
            "Content-Type: application/json",
            "Content-Length: 2",
        ]
        connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n{}")
        return connection


@pytest.fixture(scope="module")
def long(ministack: Ministack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Long]:
    folder: Path = tmp_path_factory.mktemp("long")
    bucket = ministack.create_bucket()
    write_table(folder, _FILES)
    ministack.seed(folder, f"s3://{bucket}/table")
    storage = [s3_storage(ministack, f"s3://{bucket}/")]
    with running_broker(storage=storage, server={"send_timeout": "1s"}) as broker:
        broker.share_table("long.data.table", f"s3://{bucket}/table")
        yield Long(broker, broker.recipient("ann", shares=["long"]))


def _answered(long: Long) -> int:
    return long.broker.log().count(f"POST /delta-sharing{_TABLE}/query 200 ")


def test_clients_that_leave_stop_the_work(long: Long) -> None:
    before = _answered(long)
    for pieces in range(12):
        with long.ask() as connection:
            for _ in range(pieces * 4):
                connection.recv(64 << 10)
    long.broker.server.wait_until(lambda: _answered(long) == before + 12)
    assert " error " not in long.broker.log()
    assert "Traceback" not in long.broker.log()


def test_a_client_that_stops_reading_is_cut_off(long: Long) -> None:
    before = _answered(long)
    with long.ask() as stuck, long.broker.client(long.profile) as client:
        assert stuck.recv(12) == b"HTTP/1.1 200"
        whole = client.post(f"{_TABLE}/query", json={})
        long.broker.server.wait_until(lambda: _answered(long) == before + 2)
        received = b""
        while piece := stuck.recv(1 << 20):
            received += piece
        assert len(received) < len(whole.content)
        assert not received.endswith(b"\r\n0\r\n\r\n")
    # Each commit of the table removes a file and adds ten.
    assert len(whole.text.splitlines()) == 2 + _FILES + COMMITS * 9


def test_a_slow_client_that_reads_gets_everything(long: Long) -> None:
    received = b""
    with long.ask() as slow:
        # Takes several times as long as a client may take nothing.
        while not received.endswith(b"\r\n0\r\n\r\n"):
            piece = slow.recv(64 << 10)
            assert piece, "cut off"
            received += piece
            time.sleep(0.02)
    assert received.count(b'{"file":') == _FILES + COMMITS * 9
