"""Stores that fail: each failure has its answer, and tables elsewhere are not held up. Few requests "
"when all is well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.errors import StorageUnavailable
from lakepass.broker.protocol.capabilities import Capabilities
from lakepass.broker.tables.answer import Answer
from lakepass.reader.errors import AccessRefusedError, StorageError
from tests.broker.flaky_store import FlakyStore, flaky_store
from tests.broker.lake import error
from tests.broker.server import RunningBroker, running_broker, s3_storage
from tests.clouds.ministack import Ministack
from tests.tables.fixtures import fixture

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Setup:
    broker: RunningBroker
    store: FlakyStore
    client: httpx.Client
    bucket: str
    behind: Ministack

    def get(self, table: str, call: str = "version") -> httpx.Response:
        return self.client.get(f"/shares/s/schemas/d/tables/{table}/{call}")


@pytest.fixture(scope="module")
def setup(ministack: Ministack) -> Iterator[Setup]:
    bucket = ministack.create_bucket()
    for name in ("first", "second", "third", "fourth"):
        ministack.seed(fixture("checkpoint_classic").path, f"s3://{bucket}/{name}")
    with flaky_store(ministack.endpoint) as store:
        # The host that is signed must be the one the store behind sees.
        entry = s3_storage(ministack, f"s3://{bucket}/", endpoint=store.endpoint)
        with running_broker(storage=[entry]) as broker:
            for name in ("first", "second", "third", "fourth"):
                broker.share_table(f"s.d.{name}", f"s3://{bucket}/{name}")
            with broker.client(broker.recipient("ann", shares=["s"])) as client:
                yield Setup(broker, store, client, bucket, ministack)


def test_a_version_that_is_known_costs_at_most_two_requests(setup: Setup) -> None:
    setup.get("first")
    setup.get("first", "metadata")
    for call in ("version", "metadata"):
        before = len(setup.store.asked)
        assert setup.get("first", call).status_code == 200
        assert len(setup.store.asked) - before <= 2


@pytest.mark.parametrize(("fault", "status"), [(403, 502), (404, 404), (500, 503), (503, 503)])
@pytest.mark.parametrize("call", ["version", "metadata"])
def test_each_failure_has_its_answer(setup: Setup, fault: int, status: int, call: str) -> None:
    if fault == 404:
        answer = setup.client.get(f"/shares/s/schemas/d/tables/none/{call}")
        error(answer, 404)
        return
    setup.store.faults = {f"{setup.bucket}/second": fault, "prefix=second": fault}
    try:
        answer = setup.get("second", call)
        message = error(answer, status)
        assert setup.bucket not in message
        if status == 503:
            assert int(answer.headers["retry-after"]) > 0
        assert setup.get("first", call).status_code == 200
    finally:
        setup.store.faults = {}
    assert setup.get("second", call).status_code == 200


def test_a_store_that_hangs_does_not_hold_up_other_tables(setup: Setup) -> None:
    from concurrent.futures import ThreadPoolExecutor

    setup.get("third"), setup.get("fourth")
    setup.store.faults = {f"{setup.bucket}/third": 8.0, "prefix=third": 8.0}
    try:
        with ThreadPoolExecutor(20) as pool:
            slow = [pool.submit(setup.get, "third") for _ in range(20)]
            others = [setup.get("fourth").status_code for _ in range(5)]
            assert others == [200] * 5
            assert not all(future.done() for future in slow), "the other table did not wait for this one"
            assert setup.client.get("/shares").status_code == 200
            assert {future.result().status_code for future in slow} == {200}
    finally:
        setup.store.faults = {}


def test_a_failure_in_the_middle_ends_the_stream_with_a_message() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"first\n"
        raise AccessRefusedError("refused at s3://bucket/secret/place")

    row = TableRow("i", "t", "d", "s", "sid", "s3://bucket/secret/place", (), ("url",), True, None)
    answer = Answer(row, 1, "parquet", Capabilities(), chunks())
    assert answer.first() == b"first\n"
    end = json.loads(answer.next() or b"")["endStreamAction"]
    assert set(end) == {"errorMessage"}
    assert "secret" not in end["errorMessage"]
    assert answer.next() is None


def _refuse(line: bytes) -> bytes:
    raise StorageError(f"no {line!r}: the store is slow at s3://bucket/secret/place")


def test_a_failure_before_the_first_line_is_a_status() -> None:
    def chunks() -> Iterator[bytes]:
        yield from map(_refuse, [b"line"])

    row = TableRow("i", "t", "d", "s", "sid", "s3://bucket/secret/place", (), ("url",), True, None)
    with pytest.raises(StorageUnavailable) as refused:
        Answer(row, 1, "parquet", Capabilities(), chunks()).first()
    assert "secret" not in refused.value.message
