"""Java, Node and PostgreSQL: those of the machine where they fit, brought from PyPI where they do not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from tests import toolchain
from tests.clouds import postgres
from tests.clouds.run import running


def _program(path: Path, printed: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{printed}'\n")
    path.chmod(0o755)
    return path


def test_the_java_of_the_machine_is_used_when_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path / "old" / "bin" / "java", 'openjdk version "11.0.2"')
    _program(tmp_path / "fits" / "bin" / "java", 'openjdk version "17.0.9" 2023-10-17')
    monkeypatch.setattr(toolchain, "_java_candidates", lambda: [tmp_path / "old", tmp_path / "fits"])
    assert toolchain.java_home() == tmp_path / "fits"


def test_the_node_of_the_machine_is_used_when_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = _program(tmp_path / "node", "v22.3.0")
    npm = _program(tmp_path / "npm", "11.0.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolchain.node() == toolchain.Node(str(node), (str(npm),))


@pytest.mark.slow
def test_without_a_java_one_is_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_java_candidates", list)
    home = toolchain.java_home()
    # As Spark starts it: with a module that this Java does not have.
    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 'version "21' in told.stderr


@pytest.mark.slow
@pytest.mark.node
def test_with_an_old_node_one_is_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path / "node", "v16.20.0")
    _program(tmp_path / "npm", "8.0.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    brought = toolchain.node()
    for command in ([brought.node, "--version"], [*brought.npm, "--version"]):
        assert subprocess.run(command, capture_output=True, check=True).stdout
    assert brought.node != str(tmp_path / "node")


@pytest.mark.slow
def test_without_a_postgresql_one_is_brought() -> None:
    programs = toolchain.brought_postgres()
    with running(lambda run: postgres.start(run, programs)) as store:
        with psycopg.connect(store.create_database()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        postgres.stop(store)
