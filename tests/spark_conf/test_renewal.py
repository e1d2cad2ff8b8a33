"""A job of ten times a credential's life, both ways in, with executors in JVMs of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.clouds.ministack import Ministack
from tests.spark_conf.scene import SHARE, Scene, running_scene

pytestmark = [pytest.mark.spark, pytest.mark.slow]
LIFE = timedelta(seconds=5)
FILES = 24
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scene(ministack: Ministack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("renewal")
    ids = pa.array(range(FILES * 100), pa.int64())
    parts = pa.array([each // 100 for each in range(FILES * 100)], pa.int64())
    write_deltalake(folder / "many", pa.table({"id": ids, "part": parts}), partition_by="part")
    with running_scene(ministack, folder, [], LIFE) as running:
        location = f"s3://{running.bucket}/many"
        ministack.seed(folder / "many", location)
        running.broker.share_table(f"{SHARE}.dir.many", location, modes=("dir",))
        yield running


def run(scene: Scene, events: Path) -> dict[str, Any]:
    job = {"table": scene.reference("many"), "seconds": 4.5, "lead_ms": 2500, "events": events.as_uri()}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark_conf.long_job", json.dumps(job)],
        capture_output=True,
        text=True,
        timeout=540,
        cwd=ROOT,
    )
    results = [
        line.removeprefix("RESULT ") for line in done.stdout.splitlines() if line.startswith("RESULT ")
    ]
    assert results, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(results[0])
    return found


def test_a_job_outlives_its_credentials(scene: Scene, tmp_path: Path, java_home: Path) -> None:
    result = run(scene, tmp_path)
    rows = FILES * 100
    for engine in ("delta", "native"):
        found = result[engine]
        assert (found["rows"], found["sum"]) == (rows, rows * (rows - 1) // 2), engine
        assert found["parts"] >= FILES / 2, engine
    # Four tasks at a time, each of four and a half seconds.
    assert result["took"] > 10 * LIFE.total_seconds()
    log = scene.broker.log()
    assert log.count("unity-catalog/temporary-table-credentials 200") > 5
    assert log.count("tables/many/temporary-table-credentials 200") > 5
    events = "".join(file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file())
    assert "SparkListenerJobEnd" in events
    token = json.loads(scene.profile.read_text())["bearerToken"]
    assert token not in events
    assert not any(f'"{name}":"A' in events for name in ("fs.s3a.access.key", "fs.s3a.secret.key"))
