"""Spark Connect, the examples, and the command that prints settings: each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.clouds.ministack import Ministack
from tests.spark_conf.scene import SHARE, Scene, running_scene

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scene(ministack: Ministack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with running_scene(ministack, tmp_path_factory.mktemp("scripts"), ["plain", "clustering"]) as running:
        yield running


def run(*command: str, java_home: Path) -> str:
    scripts = Path(sys.executable).parent
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home),
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]
    return done.stdout


def test_spark_connect(scene: Scene, java_home: Path) -> None:
    module = [sys.executable, "-m", "tests.spark_conf.connect_job"]
    answer = run(*module, scene.reference("plain"), java_home=java_home)
    found = json.loads(answer.partition("RESULT ")[2])
    ids: list[Any] = scene.fixture("plain").rows()["id"].to_pylist()
    kept = [i for i in ids if i > 95]
    assert found == {"ids": sorted(kept), "views": 4}


def test_the_nightly_job_by_spark_submit(scene: Scene, java_home: Path, tmp_path: Path) -> None:
    job = [scene.reference("clustering"), "place", "v", str(tmp_path / "report")]
    assert "5 groups" in run("sh", "examples/spark_submit.sh", *job, java_home=java_home)
    report = pq.read_table(tmp_path / "report").to_pylist()
    rows = scene.fixture("clustering").rows()
    assert sum(group["rows"] for group in report) == rows.num_rows
    values: list[Any] = rows["v"].to_pylist()
    assert sum(group["total"] for group in report) == pytest.approx(sum(values))


def test_the_streaming_job(scene: Scene, java_home: Path, tmp_path: Path) -> None:
    script = [sys.executable, "examples/spark_stream.py", scene.reference("plain"), str(tmp_path / "copy")]
    for _ in range(2):
        run(*script, "--once", "--master", "local[2]", java_home=java_home)
    files = list((tmp_path / "copy").glob("*.parquet"))
    assert sum(pq.read_metadata(file).num_rows for file in files) == 96


def test_the_notebook(scene: Scene, java_home: Path) -> None:
    answer = run(sys.executable, "examples/spark_notebook.py", str(scene.profile), SHARE, java_home=java_home)
    assert "views: dir_clustering" in answer
