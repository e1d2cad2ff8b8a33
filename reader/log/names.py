"""The names of files in `_delta_log`: which version each belongs to and what it is.

Commits `<v>.json`, checksums `<v>.crc`, checkpoints (classic, multi-part, UUID-named) and log compactions.
Any other name is not ours to understand and is passed over, as the protocol asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lakepass.reader.storage import FileStatus

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = "_delta_log/_sidecars"
STAGED_DIRECTORY = "_delta_log/_staged_commits"
LAST_CHECKPOINT = "_delta_log/_last_checkpoint"

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NAME = re.compile(
    r"(?P<version>\d{20})\.(?:"
    r"(?P<commit>json)|"
    r"(?P<checksum>crc)|"
    r"(?P<classic>checkpoint\.parquet)|"
    r"checkpoint\.(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet|"
    rf"checkpoint\.(?P<uuid>{_UUID})\.(?P<format>json|parquet)|"
    r"(?P<end>\d{20})\.compacted\.json)"
)
_STAGED = re.compile(rf"(\d{{20}})\.{_UUID}\.json")

Kind = Literal["commit", "checksum", "classic", "part", "uuid", "compaction"]
MAX_VERSION = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the log whose name is understood."""

    status: FileStatus
    kind: Kind
    version: int
    end: int
    """The last version it covers: its own, except for a compaction."""
    part: int = 1
    parts: int = 1


def parse_name(status: FileStatus) -> LogFile | None:
    """What a file of the log is, from its name; None when the protocol does not define it.

    >>> file = parse_name(FileStatus("s3://b/t/_delta_log/00000000000000000010.checkpoint.parquet", 1, 0))
    >>> file.kind, file.version
    ('classic', 10)
    >>> parse_name(FileStatus("s3://b/t/_delta_log/_last_checkpoint", 1, 0))
    """
    match = _NAME.fullmatch(status.name)
    if match is None:
        return None
    version = int(match["version"])
    if version > MAX_VERSION:
        return None
    if match["commit"]:
        return LogFile(status, "commit", version, version)
    if match["checksum"]:
        return LogFile(status, "checksum", version, version)
    if match["classic"]:
        return LogFile(status, "classic", version, version)
    if match["uuid"]:
        return LogFile(status, "uuid", version, version)
    if match["end"]:
        end = int(match["end"])
        return LogFile(status, "compaction", version, end) if end > version else None
    part, parts = int(match["part"]), int(match["parts"])
    return LogFile(status, "part", version, version, part, parts) if 1 <= part <= parts else None


def staged_version(path: str) -> int | None:
    """The version that a staged commit's name carries, which is authoritative."""
    match = _STAGED.fullmatch(path.rsplit("/", 1)[-1])
    return int(match[1]) if match else None


def file_name(version: int) -> str:
    """The name of a version's commit."""
    return f"{version:020d}.json"
