"""The fixture tables, found by name and placed where a test wants them.

`fixture(name)` describes one where it lies in the repository; most tests read it there. `place` copies one
into a temporary folder: with the real folder in the place of the placeholder in logs that name files by
absolute path, and with the modification times that the commits state, which a checkout does not keep.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
PLACEHOLDER = "file:///LAKEPASS_FIXTURE"


@dataclass(frozen=True)
class Fixture:
    """A fixture table and what Spark reads from it."""

    home: Path
    """The folder that holds `delta/`, `expected/` and perhaps `auxiliary/`."""
    expected: dict[str, Any]
    """What `expected.json` says: versions, schema, notes."""

    @property
    def name(self) -> str:
        return str(self.expected["name"])

    @property
    def path(self) -> Path:
        """The table's root."""
        return self.home / "delta"

    @property
    def auxiliary(self) -> Path | None:
        """Where files lie that the log names by absolute path."""
        folder = self.home / "auxiliary"
        return folder if folder.is_dir() else None

    @property
    def latest(self) -> int:
        return int(self.expected["versions"]["latest"])

    @property
    def earlier(self) -> int | None:
        version = self.expected["versions"].get("earlier")
        return None if version is None else int(version)

    def rows(self, version: int | None = None) -> pa.Table:
        """Spark's rows, at the latest or the earlier version."""
        folder = "latest" if version is None or version == self.latest else f"v{version}"
        return self._read(folder)

    def changes(self) -> pa.Table:
        """Spark's change rows, for the versions in `expected["changes"]`."""
        return self._read("changes")

    def row_tracking(self) -> pa.Table:
        """Spark's rows with `_row_id` and `_row_commit_version`."""
        return self._read("row_tracking")

    def _read(self, folder: str) -> pa.Table:
        return pq.read_table(self.home / "expected" / folder / "rows.parquet", partitioning=None)


def names() -> list[str]:
    """The names of all fixture tables."""
    return sorted(file.parent.name for file in HERE.glob("*/expected.json"))


def fixture(name: str, home: Path | None = None) -> Fixture:
    """A fixture table by name, in the repository or where `place` put it."""
    folder = home or HERE / name
    return Fixture(folder, json.loads((folder / "expected.json").read_text(encoding="utf-8")))


def place(name: str, folder: Path, location: str | None = None) -> Fixture:
    """Copy a fixture table below `folder`.

    `location` is what absolute paths in the log begin with, if the copy is to be put elsewhere afterwards,
    such as `s3://bucket/auxiliary`; without it, the copy's own folder.
    """
    home = folder / name
    shutil.copytree(HERE / name, home)
    real = location or home.resolve().as_uri()
    for log in home.rglob("_delta_log"):
        for file in [*log.glob("*.json"), *log.glob("*.crc")]:
            text = file.read_text(encoding="utf-8")
            if PLACEHOLDER in text:
                file.write_text(text.replace(PLACEHOLDER, real), encoding="utf-8")
        _stamp(log)
    return fixture(name, home)


def _stamp(log: Path) -> None:
    for file in log.glob("*.json"):
        if not file.stem.isdigit():
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            info = json.loads(line).get("commitInfo")
            if info:
                os.utime(file, ns=(info["timestamp"] * 1_000_000,) * 2)
