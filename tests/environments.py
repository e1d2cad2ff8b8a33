"""Environments that hold the built wheel: a really empty one filled by pip, and views for each extra.

A view is a virtual environment in which exactly the distributions that an extra declares can be imported,
and what they declare in turn, linked from the environment the tests run in. A dependency that is used but
not declared is not there, as it would not be for a user; nothing is downloaded a second time.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.clouds.tools import ROOT

_NOT_SOURCE = (
    ".venv",
    ".tools",
    ".git",
    "build",
    "dist",
    "site",
    "*.egg-info",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
)


@dataclass(frozen=True)
class Wheel:
    """The built distribution."""

    file: Path

    def names(self) -> list[str]:
        """Every file inside."""
        with zipfile.ZipFile(self.file) as archive:
            return archive.namelist()

    def requirements(self) -> list[Requirement]:
        """What it declares, extras included."""
        with zipfile.ZipFile(self.file) as archive:
            (name,) = (entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
            headers = HeaderParser().parsestr(archive.read(name).decode())
        return [Requirement(text) for text in headers.get_all("Requires-Dist", [])]

    def extras(self) -> set[str]:
        """The extras it offers."""
        with zipfile.ZipFile(self.file) as archive:
            (name,) = (entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
            return set(HeaderParser().parsestr(archive.read(name).decode()).get_all("Provides-Extra", []))


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return self.folder / "bin"

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs away from the repository, so that only what is installed can be
        imported.
        """
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.folder,
            env={
                "PATH": f"{self.bin}:/usr/bin:/bin",
                "HOME": str(self.folder),
                "COLUMNS": "100",
                "NO_COLOR": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def install(self, *arguments: str) -> None:
        """What pip does with `arguments`, here."""
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "--python",
                str(self.bin / "python"),
                "install",
                "--quiet",
                *arguments,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def python(self, code: str) -> str:
        """What `code` prints; an error is an error here."""
        done = self.run("python", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout


def build_wheel(folder: Path) -> Wheel:
    """Build from a copy of the sources: setuptools would put old files from build/ into the wheel."""
    sources = folder / "sources"
    shutil.copytree(ROOT, sources, ignore=shutil.ignore_patterns(*_NOT_SOURCE), symlinks=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(sources),
    ]
    subprocess.run(command, check=True)
    (file,) = folder.glob("lakepass-*.whl")
    return Wheel(file)


def empty_environment(folder: Path) -> Environment:
    """A virtual environment with nothing in it."""
    venv.create(folder, with_pip=False)
    return Environment(folder)


def view(wheel: Wheel, extras: set[str], folder: Path) -> Environment:
    """The wheel with the distributions that it and `extras` declare, and no others."""
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel.file) as archive:
        archive.extractall(site)
    for name in declared(wheel, extras):
        _link(metadata.distribution(name), site)
    return Environment(folder)


def declared(wheel: Wheel, extras: set[str]) -> set[str]:
    """The distributions that an install of the wheel with `extras` brings, by canonical name."""
    found: dict[str, set[str]] = {}

    def take(requirements: list[Requirement], wanted: set[str]) -> None:
        for requirement in requirements:
            if requirement.marker and not any(
                requirement.marker.evaluate({"extra": extra}) for extra in {"", *wanted}
            ):
                continue
            name = canonicalize_name(requirement.name)
            if name == "lakepass":
                take(wheel.requirements(), requirement.extras)
                continue
            if name in found and requirement.extras <= found[name]:
                continue
            found.setdefault(name, set()).update(requirement.extras)
            needed = metadata.distribution(name).requires or []
            take([Requirement(text) for text in needed], found[name])

    take(wheel.requirements(), extras)
    return set(found)


def _link(distribution: metadata.Distribution, site: Path) -> None:
    """Link a distribution's packages as a whole, and what shares a folder with others file by file."""
    files = [
        file
        for file in distribution.files or []
        if ".." not in file.parts and "__pycache__" not in file.parts
    ]
    packages = {file.parts[0] for file in files if len(file.parts) == 2 and file.name == "__init__.py"}
    for name in packages:
        (site / name).symlink_to(Path(str(distribution.locate_file(name))))
    for file in files:
        if file.parts[0] not in packages:
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(distribution.locate_file(file))))
