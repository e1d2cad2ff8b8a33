"""`lakepass demo` in a process of its own: every answer right, PySpark shown, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.spark
def test_the_demo_shows_everything_and_leaves_nothing(java_home: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lakepass.cli.main", "demo"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "JAVA_HOME": str(java_home), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    assert "Everything was as it should be" in done.stdout
    assert "with PySpark" in done.stdout
    assert "not shown" not in done.stdout
    assert not list(tmp_path.glob("lakepass-demo-*"))
