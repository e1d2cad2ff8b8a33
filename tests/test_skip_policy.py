"""In CI a skip that nobody wrote down fails the run; elsewhere it is counted and shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clouds.tools import ROOT
from tests.skip_policy import ALLOWED

_TESTS = """
import pytest

def test_passes():
    pass

@pytest.mark.parametrize("number", [1, 2])
def test_is_skipped(number):
    pytest.skip("{reason}")

@pytest.mark.xfail
def test_is_expected_to_fail():
    assert False
"""
LISTED = ALLOWED.read_text().splitlines()[-1]


def _run(folder: Path, reason: str, ci: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_inner.py").write_text(_TESTS.format(reason=reason))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    plugins = ("tests.conftest", "no:cacheprovider", "xdist.plugin", "pytest_timeout")
    command = [sys.executable, "-m", "pytest", "-q", *(part for name in plugins for part in ("-p", name))]
    return subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), str(folder / "test_inner.py"), *options],
        cwd=folder,
        env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "workers"])
def test_an_unlisted_skip_fails_in_ci(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = _run(tmp_path, "no such luck", "true", *options)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "2 × no such luck" in done.stdout
    assert "must be listed in tests/allowed_skips.txt" in done.stdout


def test_a_listed_skip_passes_in_ci(tmp_path: Path) -> None:
    done = _run(tmp_path, LISTED, "true")
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert f"2 × {LISTED}" in done.stdout


def test_elsewhere_a_skip_is_counted_and_passes(tmp_path: Path) -> None:
    done = _run(tmp_path, "no such luck", "")
    assert done.returncode == pytest.ExitCode.OK
    assert "2 × no such luck  [not on the list: fails in CI]" in done.stdout
