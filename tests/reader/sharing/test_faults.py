"""What networks, servers and stores do: the right rows or a clear error, never a part as if the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakepass.reader import SharingClient, Table
from lakepass.reader.errors import AccessRefusedError, DeltaError, SharingError
from lakepass.reader.sharing import vended
from lakepass.reader.sharing.transport import Patience
from tests.clouds.ministack import Ministack
from tests.reader.sharing.conftest import QUICK
from tests.reader.sharing.folder import FolderShare
from tests.reader.sharing.gate import Gate
from tests.reader.sharing.server import Asked, Reply, Server, as_json
from tests.reader.sharing.shared_s3 import sharing_on_s3
from tests.tables import fixtures

FOLDER = fixtures.fixture("deletion_vectors_partitioned").path
QUERY = "/shares/s/schemas/d/tables/t/query"


def in_order(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return in_order(Table(FOLDER).to_arrow())


def rows(server: Server, patience: Patience = QUICK, **options: Any) -> list[str]:
    return in_order(SharingClient(server.profile, patience=patience).table("s.d.t", **options).to_arrow())


def answer_of(server: Server) -> Callable[[Asked], Reply]:
    found = server._answers["POST", f"/api{QUERY}"][0]
    assert callable(found)
    return found


def test_two_failures_then_rows(server: Server, share: FolderShare, expected: list[str]) -> None:
    share.add("t", FOLDER)
    failure = as_json({"errorCode": "INTERNAL", "message": "restarting"}, 500)
    server.on("POST", QUERY, failure, failure, answer_of(server))
    assert rows(server) == expected


def test_a_server_that_hangs(server: Server, share: FolderShare) -> None:
    share.add("t", FOLDER)
    whole = answer_of(server)
    server.on("POST", QUERY, lambda asked: Reply(200, whole(asked).body, delay=1.0))
    with pytest.raises(SharingError, match="did not answer in time"):
        rows(server, Patience(first_pause=0.01, read=0.2))


@pytest.mark.parametrize("lines", [2, 3, 4])
def test_a_truncated_answer_at_a_line_or_in_one(
    server: Server, share: FolderShare, expected: list[str], lines: int
) -> None:
    """Announced as whole, so that only the missing endStreamAction, or half a line, tells."""
    share.add("t", FOLDER)
    whole = answer_of(server)

    def cut(at_line: bool) -> Callable[[Asked], Reply]:
        def answer(asked: Asked) -> Reply:
            reply = whole(asked)
            kept = b"".join(reply.body.splitlines(keepends=True)[:lines])
            return Reply(200, kept if at_line else kept[:-7], reply.headers)

        return answer

    for at_line in (True, False):
        server.on("POST", QUERY, cut(at_line), whole)
        assert rows(server) == expected
        server.on("POST", QUERY, cut(at_line))
        with pytest.raises(SharingError, match=r"broke off|breaks off"):
            rows(server)


def test_an_error_at_the_end_of_the_stream(server: Server, share: FolderShare) -> None:
    share.add("t", FOLDER)
    whole = answer_of(server)

    def failing(asked: Asked) -> Reply:
        reply = whole(asked)
        kept = b"".join(reply.body.splitlines(keepends=True)[:-1])
        return Reply(200, kept + b'{"endStreamAction":{"errorMessage":"the disk is full"}}\n', reply.headers)

    server.on("POST", QUERY, failing)
    with pytest.raises(SharingError, match="the disk is full"):
        rows(server)


@pytest.fixture
def gate(server: Server) -> Iterator[Gate]:
    made = Gate(server.origin)
    yield made
    made.stop()


@pytest.mark.parametrize(
    "trouble", [["503", "503"], ["drop"], ["403"], ["503", "drop", "403"]], ids=lambda each: "+".join(each)
)
def test_a_store_that_throttles_drops_and_refuses_by_url(
    server: Server, share: FolderShare, gate: Gate, expected: list[str], trouble: list[str]
) -> None:
    share.file_origin = gate.endpoint
    share.add("t", FOLDER)
    gate.trouble = list(trouble)
    assert rows(server) == expected
    assert gate.met == len(trouble)


def test_a_store_that_keeps_refusing_is_a_clear_error(server: Server, share: FolderShare, gate: Gate) -> None:
    share.file_origin = gate.endpoint
    share.add("t", FOLDER)
    gate.trouble = ["403"] * 100
    with pytest.raises(AccessRefusedError, match="refused the address"):
        rows(server)


def test_a_store_whose_name_does_not_resolve(server: Server, share: FolderShare) -> None:
    share.file_origin = "http://no-such-store.invalid"
    share.add("t", FOLDER)
    with pytest.raises(DeltaError, match=r"no-such-store\.invalid"):
        rows(server)


@pytest.mark.slow
def test_the_broker_restarts_in_the_middle_of_a_scan(ministack: Ministack, tmp_path: Path) -> None:
    """`dir` needs the broker only for keys: a restart goes unnoticed; new keys come from the new one."""
    with sharing_on_s3(ministack, lifetime="3s") as shared:
        shared.add("t", FOLDER)
        table = SharingClient(shared.profile).table("s.d.t")
        by_url = SharingClient(shared.profile).table("s.d.t", access="url")
        reader, url_reader = table.to_reader(), by_url.to_reader()
        first, url_first = reader.read_next_batch(), url_reader.read_next_batch()
        shared.restart_broker()
        whole = pa.Table.from_batches([first, *reader])
        url_whole = pa.Table.from_batches([url_first, *url_reader])
        assert in_order(whole) == in_order(url_whole) == in_order(Table(FOLDER).to_arrow())
        assert in_order(table.to_arrow()) == in_order(whole)
    vended._providers.clear()
