"""What was done to a table: the commit info of each commit that the log still holds.

Carries out "Commit Provenance Information": checkpoints do not keep it, so it is read from the commits,
newest first, as many as are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakepass.reader.errors import CorruptTableError
from lakepass.reader.log.commits import commit_pieces, other_actions
from lakepass.reader.log.segment import LogListing
from lakepass.reader.log.timeline import Timeline

if TYPE_CHECKING:
    from lakepass.reader.snapshot import LogSource, Snapshot


@dataclass(frozen=True)
class HistoryEntry:
    """One commit."""

    version: int
    timestamp: datetime
    operation: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    user: str | None = None
    engine: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    """The whole commit info, as it was written."""

    def as_dict(self) -> dict[str, Any]:
        """The commit info with version and timestamp, in the shape deltalake users know."""
        return {**self.info, "version": self.version, "timestamp": self.timestamp}


def read_history(source: LogSource, latest: Snapshot, limit: int | None) -> list[HistoryEntry]:
    """The commits up to the latest snapshot, newest first, at most `limit`."""
    listing = LogListing.read(source.storage, source.root)
    listing.ratify(source.ratified or {}, source.storage)
    timeline = Timeline(listing, latest._state, source.storage, source.cache)
    versions = [version for version in timeline.versions if version <= latest.version]
    versions = list(reversed(versions))[: limit if limit is None or limit >= 0 else 0]
    commits = [listing.commits[version] for version in versions]
    infos: dict[int, Mapping[str, Any]] = {}
    for commit, piece in commit_pieces(source.storage, commits, source.cache):
        for _, info in other_actions(piece, ("commitInfo",), commit.status.path):
            if not isinstance(info, dict):
                raise CorruptTableError(f"{commit.status.path} holds a commitInfo that is not an object.")
            infos.setdefault(commit.version, info)
    return [_entry(version, timeline.at(version), infos.get(version, {})) for version in versions]


def _entry(version: int, milliseconds: int, info: Mapping[str, Any]) -> HistoryEntry:
    return HistoryEntry(
        version,
        _datetime(milliseconds),
        _text(info.get("operation")),
        _mapping(info.get("operationParameters")),
        _mapping(info.get("operationMetrics")),
        _text(info.get("userName")) or _text(info.get("userId")),
        _text(info.get("engineInfo")),
        info,
    )


def _datetime(milliseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC) if milliseconds > 0 else datetime.min.replace(tzinfo=UTC)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
