"""Programs that stores need and that do not belong in the project's own environment, brought to .tools/
on demand.

Each is installed once, under a lock, into a folder named after what was asked for: a changed version is a
new folder.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.clouds.run import Unavailable, locked

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"


def installed(name: str, asked: str, install: Callable[[Path], None]) -> Path:
    """The folder where `install` put a tool; `asked` is whatever decides what would be installed."""
    folder = TOOLS / f"{name}-{hashlib.sha256(asked.encode()).hexdigest()[:10]}"
    with locked(TOOLS / f"{name}.lock"):
        if not (folder / ".complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            install(folder)
            (folder / ".complete").touch()
    return folder


def python_environment(name: str, requirement: str, constraints: Path) -> Path:
    """A virtual environment that holds `requirement` in the exact versions of `constraints`; gives its
    python.
    """

    def install(folder: Path) -> None:
        call([sys.executable, "-m", "venv", str(folder)], f"{name}: no virtual environment could be made")
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        call(
            [*pip, "--constraint", str(constraints), requirement], f"{name} could not be installed from PyPI"
        )

    asked = f"{sys.version} {requirement} {constraints.read_text()}"
    return installed(name, asked, install) / "bin" / "python"


def call(command: Sequence[str], complaint: str, *, folder: Path | None = None) -> None:
    """Run an installer; what it printed becomes the reason why a store is unavailable."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Unavailable(f"{complaint}: {' / '.join(last)}")
