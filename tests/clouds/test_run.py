"""A run starts each server once, whoever asks, and leaves none behind, however it ends."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from lakepass.cli.demo.keeper import Lifeline, Server, ServerError, keep
from tests.clouds.ministack import Ministack
from tests.clouds.run import OwnedRun, Run, Unavailable
from tests.clouds.tools import ROOT

_INNER = """
import os, pickle, time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_waits(number, ministack, postgres):
    folder = Path(os.environ["INNER_FOLDER"])
    (folder / f"{number}.tmp").write_bytes(pickle.dumps([ministack, *postgres.servers]))
    (folder / f"{number}.tmp").rename(folder / f"{number}.asked")
    time.sleep(float(os.environ["INNER_SECONDS"]))
"""


def _eventually(true: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def _inner_run(tmp_path: Path, *options: str, seconds: float = 300) -> subprocess.Popen[bytes]:
    """A run of pytest with the project's fixtures and two tests that wait, in a process group of its own."""
    (tmp_path / "test_inner.py").write_text(_INNER)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(ROOT),
        "INNER_FOLDER": str(tmp_path),
        "INNER_SECONDS": str(seconds),
    }
    # Only the plugins that matter here: the others take seconds to import.
    plugins = ("tests.conftest", "no:cacheprovider", "xdist.plugin", "pytest_timeout")
    command = [sys.executable, "-m", "pytest", "-q", *(part for name in plugins for part in ("-p", name))]
    return subprocess.Popen(
        [*command, "-c", str(ROOT / "pyproject.toml"), str(tmp_path / "test_inner.py"), *options],
        cwd=tmp_path,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _asked(tmp_path: Path, count: int) -> tuple[Ministack, list[Server]]:
    """What the inner tests were given, once that many of them run."""
    _eventually(lambda: len(list(tmp_path.glob("*.asked"))) == count)
    given = [pickle.loads(file.read_bytes()) for file in tmp_path.glob("*.asked")]
    assert len({entry[0].endpoint for entry in given}) == 1, "each worker started a server of its own"
    store: Ministack = given[0][0]
    return store, [*store.servers, *given[0][1:]]


def _family(servers: list[Server]) -> list[psutil.Process]:
    keepers = [psutil.Process(server.keeper_pid) for server in servers]
    return [process for keeper in keepers for process in (keeper, *keeper.children(recursive=True))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "whole_group"),
    [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)],
)
def test_nothing_is_left_behind(tmp_path: Path, ending: signal.Signals, whole_group: bool) -> None:
    outer = _inner_run(tmp_path, "-n", "2", "--dist", "load")
    try:
        _, servers = _asked(tmp_path, 2)
        family = _family(servers)
        assert len(family) >= 4
        (os.killpg if whole_group else os.kill)(outer.pid, ending)
        _eventually(lambda: not any(server.running() for server in servers))
        _eventually(
            lambda: not any(process.is_running() and process.status() != "zombie" for process in family)
        )
        _eventually(lambda: not any(server.folder.exists() for server in servers))
    finally:
        os.killpg(outer.pid, signal.SIGKILL)
        outer.communicate()


@pytest.mark.slow
def test_a_run_that_ends_by_itself_waits_for_its_servers(tmp_path: Path) -> None:
    outer = _inner_run(tmp_path, "-n", "2", "--dist", "load", seconds=0)
    printed, _ = outer.communicate(timeout=60)
    assert outer.returncode == 0, printed.decode()
    _, servers = _asked(tmp_path, 2)
    assert not any(server.running() for server in servers)
    assert not servers[0].folder.parent.exists()


def test_a_server_goes_down_with_a_killed_keeper() -> None:
    run = OwnedRun()
    try:
        server = keep("sleeper", ["sleep", "600"], folder=run.folder / "sleeper", lifeline=run.lifeline)
        _eventually(lambda: bool(psutil.Process(server.keeper_pid).children()))
        family = _family([server])
        os.kill(server.keeper_pid, signal.SIGKILL)
        if sys.platform == "linux":
            _eventually(lambda: not server.running())
            assert not any(process.is_running() and process.status() != "zombie" for process in family)
    finally:
        run.end()


def test_a_grandchild_goes_too(tmp_path: Path) -> None:
    lifeline = Lifeline(tmp_path / "lifeline")
    command = ["sh", "-c", "trap '' TERM; sleep 600 & wait"]
    server = keep("stubborn", command, folder=tmp_path / "server", lifeline=lifeline.path, abrupt=True)
    _eventually(lambda: len(psutil.Process(server.keeper_pid).children(recursive=True)) == 2)
    family = _family([server])
    lifeline.release()
    server.wait()
    assert not any(process.is_running() and process.status() != "zombie" for process in family)
    assert not (tmp_path / "server").exists()


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with Lifeline(tmp_path / "lifeline") as lifeline:
        command = ["sh", "-c", "echo no disk left >&2; exit 3"]
        server = keep("failing", command, folder=tmp_path / "server", lifeline=lifeline.path)
        with pytest.raises(ServerError, match="failing ended before it was ready:\nno disk left"):
            server.wait_until(lambda: False)


def test_why_a_server_cannot_be_had_is_told_to_everyone() -> None:
    run = OwnedRun()
    asked = 0

    def unavailable(_: Run) -> Ministack:
        nonlocal asked
        asked += 1
        raise Unavailable("there is no such program")

    try:
        for _ in range(2):
            with pytest.raises(Unavailable, match="no such program"):
                Run(run.folder).once("missing", unavailable)
        assert asked == 1
    finally:
        run.end()
