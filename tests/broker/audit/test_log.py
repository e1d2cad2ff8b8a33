"""The audit log: durable before it returns, one commit for many rows, no row lost or made up."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, select, text

from lakepass.broker.audit import AuditLog, AuditUnavailable, Outcome, VendEvent
from lakepass.broker.audit.table import audit_events
from lakepass.broker.audit.trail import Filter, follow, latest
from lakepass.broker.catalog.database import migrate, open_engine
from tests.clouds.postgres import Postgres


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    if request.param == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.create_database()
    made = open_engine(url)
    migrate(made)
    yield made
    made.dispose()


@pytest.fixture
def log(engine: Engine) -> Iterator[AuditLog]:
    made = AuditLog(engine)
    yield made
    made.close()


def vended(number: int = 0, **changes: object) -> VendEvent:
    told = VendEvent(
        request_id=f"req-{number}",
        interface="delta-sharing",
        outcome=Outcome.VENDED,
        recipient="ann",
        token_id="token-1",
        table="sales.eu.orders",
        location="s3://lake/orders",
        cloud="aws",
        scope="directory",
        expires_at=1_900_000_000_000,
        source_address="192.0.2.7",
    )
    return dataclasses.replace(told, **changes)  # type: ignore[arg-type]  # any field


def count(engine: Engine) -> int:
    with engine.connect() as connection:
        return len(connection.execute(select(audit_events.columns.id)).all())


def test_a_row_holds_everything(engine: Engine, log: AuditLog) -> None:
    told = vended(reason="ü \" ' % \n line")
    log.record(told)
    assert latest(engine, Filter(), 10) == [told]


def test_a_row_is_there_when_record_returns(engine: Engine, log: AuditLog) -> None:
    for number in range(5):
        log.record(vended(number))
        assert count(engine) == number + 1


def test_many_rows_share_a_commit(engine: Engine, log: AuditLog) -> None:
    commits = 0

    def counted(_connection: object) -> None:
        nonlocal commits
        commits += 1
        time.sleep(0.02)  # a slow disk: what arrives meanwhile gathers

    event.listen(engine, "commit", counted)

    async def record_all() -> None:
        await asyncio.gather(*(log.record_async(vended(number)) for number in range(300)))

    asyncio.run(record_all())
    assert count(engine) == 300
    assert commits <= 5


def test_threads_and_tasks_together(engine: Engine, log: AuditLog) -> None:
    async def record_all() -> None:
        await asyncio.gather(*(log.record_async(vended(number)) for number in range(100)))

    with ThreadPoolExecutor(8) as pool:
        loops = pool.submit(asyncio.run, record_all())
        list(pool.map(lambda number: log.record(vended(number)), range(100, 200)))
        loops.result()
    assert {told.request_id for told in latest(engine, Filter(), 500)} == {f"req-{n}" for n in range(200)}


def test_what_cannot_be_written_fails_the_request(engine: Engine, log: AuditLog) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE audit_events RENAME TO hidden"))
    with pytest.raises(AuditUnavailable):
        log.record(vended())
    with pytest.raises(AuditUnavailable):
        asyncio.run(log.record_async(vended()))
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE hidden RENAME TO audit_events"))
    log.record(vended(7))
    assert [told.request_id for told in latest(engine, Filter(), 10)] == ["req-7"]


def test_closing_writes_what_waits(engine: Engine) -> None:
    log = AuditLog(engine)
    with ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(log.record, vended(number)) for number in range(20)]
        for one in waiting:
            one.result()
    log.close()
    assert count(engine) == 20
    with pytest.raises(AuditUnavailable):
        log.record(vended())


def test_kill_loses_no_row_that_was_told(tmp_path: Path) -> None:
    """A process that tells each number only after `record` returned is killed with SIGKILL at work."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    program = (
        "import sys, threading\n"
        "from lakepass.broker.audit import AuditLog, Outcome, VendEvent\n"
        "from lakepass.broker.catalog.database import migrate, open_engine\n"
        f"engine = open_engine({url!r}); migrate(engine); log = AuditLog(engine)\n"
        "def work(start):\n"
        "    number = start\n"
        "    while True:\n"
        "        log.record(VendEvent(request_id=str(number), interface='x', outcome=Outcome.VENDED))\n"
        "        sys.stdout.write(f'{number}\\n'); sys.stdout.flush(); number += 8\n"
        "for start in range(8): threading.Thread(target=work, args=(start,)).start()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(200)]
    process.send_signal(signal.SIGKILL)
    told += process.stdout.read().splitlines(keepends=True)
    process.wait()
    numbers = {line.strip() for line in told if line.endswith("\n")}
    assert len(numbers) >= 200
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        written = {row[0] for row in connection.execute("SELECT request_id FROM audit_events")}
    assert numbers <= written


def test_export_as_json_lines(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    log = AuditLog(engine, file)
    log.record(vended(1, at=1_893_456_000_123))
    file.rename(tmp_path / "audit.jsonl.1")  # rotated
    log.record(vended(2, outcome=Outcome.REFUSED, reason="not granted", expires_at=None))
    log.close()
    first = json.loads((tmp_path / "audit.jsonl.1").read_text())
    assert first == {
        "time": "2030-01-01T00:00:00.123Z",
        "request_id": "req-1",
        "interface": "delta-sharing",
        "outcome": "vended",
        "recipient": "ann",
        "token_id": "token-1",
        "table": "sales.eu.orders",
        "location": "s3://lake/orders",
        "cloud": "aws",
        "scope": "directory",
        "expires_at": "2030-03-17T17:46:40.000Z",
        "source_address": "192.0.2.7",
    }
    assert json.loads(file.read_text())["reason"] == "not granted"


def test_a_copy_that_cannot_be_written_does_not_stop_the_record(engine: Engine, tmp_path: Path) -> None:
    log = AuditLog(engine, tmp_path / "no" / "such" / "folder.jsonl")
    log.record(vended())
    log.close()
    assert count(engine) == 1


NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), ["req-0", "req-1", "req-2"]),
        (Filter(recipient="bob"), ["req-1"]),
        (Filter(table="sales.eu.items"), ["req-2"]),
        (Filter(outcome=Outcome.REFUSED), ["req-1", "req-2"]),
        (Filter(request_id="req-2"), ["req-2"]),
        (Filter(since=NOW + timedelta(hours=1)), ["req-1", "req-2"]),
        (Filter(until=NOW + timedelta(hours=1)), ["req-0"]),
        (Filter(recipient="bob", outcome=Outcome.VENDED), []),
    ],
)
def test_filters(engine: Engine, log: AuditLog, wanted: Filter, expected: list[str]) -> None:
    start = int(NOW.timestamp() * 1000)
    log.record(vended(0, at=start))
    log.record(vended(1, at=start + 3_600_000, recipient="bob", outcome=Outcome.REFUSED))
    log.record(vended(2, at=start + 7_200_000, table="sales.eu.items", outcome=Outcome.REFUSED))
    assert [told.request_id for told in latest(engine, wanted, 10)] == expected
    assert [told.request_id for told in latest(engine, wanted, 1)] == expected[-1:]


def test_follow_tells_new_rows_once(engine: Engine, log: AuditLog) -> None:
    log.record(vended(0))
    seen: list[str] = []
    enough = threading.Event()

    def watch() -> None:
        for told in follow(engine, Filter(recipient="ann"), poll_seconds=0.02):
            seen.append(told.request_id)
            if len(seen) == 3:
                enough.set()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    time.sleep(0.3)
    for number in (1, 2):
        log.record(vended(number))
    log.record(vended(99, recipient="bob"))
    log.record(vended(3))
    assert enough.wait(10)
    assert seen == ["req-1", "req-2", "req-3"]


def test_an_event_cannot_hold_a_secret() -> None:
    names = {field.name for field in dataclasses.fields(VendEvent)}
    assert names == {column.name for column in audit_events.columns} - {"id"}
    assert not any(word in name for name in names for word in ("secret", "key", "sas", "session"))
