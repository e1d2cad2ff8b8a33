"""kill -9 under load loses no change that was answered; replicas that start together migrate once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from sqlalchemy import create_engine, inspect, text

from lakepass.broker.catalog.database import database_url
from lakepass.broker.catalog.models import Base
from lakepass.broker.catalog.store import Catalog
from lakepass.broker.config import Settings
from lakepass.cli.demo.keeper import free_port
from tests.broker.server import ADMIN_TOKEN, running_broker

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.db'}"
    created: str = request.getfixturevalue("postgres").create_database()
    return created


def test_what_was_answered_survives_a_kill(database: str) -> None:
    answered: list[str] = []
    stop = threading.Event()
    with running_broker(database=database) as broker:

        def create(worker: int) -> None:
            headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
            with httpx.Client(base_url=f"{broker.origin}/admin", headers=headers, timeout=10) as admin:
                for number in range(10_000):
                    if stop.is_set():
                        return
                    name = f"share-{worker}-{number}"
                    try:
                        if admin.post("/shares", json={"name": name}).status_code == 201:
                            answered.append(name)
                    except httpx.HTTPError:
                        return

        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(create, worker) for worker in range(4)]
            while len(answered) < 40:
                assert not all(future.done() for future in running), "no change was answered"
                stop.wait(0.01)
            (server,) = psutil.Process(broker.server.keeper_pid).children()
            os.kill(server.pid, signal.SIGKILL)
            stop.set()
    catalog = Catalog(Settings(database=database))
    kept = {share.name for share in catalog.shares.all()}
    catalog.close()
    assert set(answered) <= kept


def test_replicas_that_start_together_migrate_once(database: str) -> None:
    script = (
        "import sys\n"
        "from lakepass.broker.catalog.store import Catalog\n"
        "from lakepass.broker.config import Settings\n"
        "c = Catalog(Settings(database=sys.argv[1])); print(c.secret('page-tokens').hex())"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, database],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0], outputs
    assert len({output for output, _ in outputs}) == 1, "all replicas sign with the same key"


def test_migrations_make_what_the_models_say(database: str) -> None:
    Catalog(Settings(database=database)).close()
    engine = create_engine(database_url(database))
    found = inspect(engine)
    for table in Base.metadata.sorted_tables:
        columns = {column["name"]: column["nullable"] for column in found.get_columns(table.name)}
        assert columns == {column.name: column.nullable for column in table.columns}, table.name
        assert {index["name"] for index in found.get_indexes(table.name) if not index["unique"]} >= {
            index.name for index in table.indexes if not index.unique
        }
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
    engine.dispose()


def test_a_stopped_server_finishes_and_ends_with_zero(tmp_path: Path) -> None:
    port = free_port()
    environment = {
        **os.environ,
        "LAKEPASS_DATABASE": f"sqlite:///{tmp_path / 'c.db'}",
        "LAKEPASS_SERVER__PORT": str(port),
        "LAKEPASS_SERVER__LOG_FORMAT": "json",
    }
    command = [sys.executable, "-m", "lakepass.cli.main", "serve"]
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(400):
            try:
                if httpx.get(f"http://127.0.0.1:{port}/health/ready").status_code == 200:
                    break
            except httpx.HTTPError:
                threading.Event().wait(0.1)
        process.terminate()
        _, log = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, log
    import json

    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    ready = [line for line in lines if line.get("path") == "/health/ready"]
    assert ready
    assert {"time", "level", "request_id", "status", "milliseconds"} <= set(ready[0])
