"""When each version was committed, and which version was the latest at a time.

With in-commit timestamps, the time is in the commit itself, from the version on that enabled them; before
that, and without them, it is the commit file's modification time. Files copied together or clocks gone wrong
can put those out of order, so each is moved to at least one millisecond after the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import index
from typing import SupportsIndex

from lakepass.reader.errors import CorruptTableError, DeltaError, VersionNotFoundError
from lakepass.reader.log.cache import LogCache
from lakepass.reader.log.commits import commit_pieces, other_actions
from lakepass.reader.log.segment import Commit, LogListing, LogSegment
from lakepass.reader.log.state import TableState
from lakepass.reader.storage import Storage


@dataclass(frozen=True)
class InCommitTimestamps:
    """From which version on commits carry their own time."""

    since_version: int
    since_ms: int | None

    @classmethod
    def of(cls, state: TableState) -> InCommitTimestamps | None:
        """As the table's properties say; None when the feature is off."""
        configuration = state.metadata.configuration
        if configuration.get("delta.enableInCommitTimestamps", "").lower() != "true":
            return None
        return cls(
            _number(configuration.get("delta.inCommitTimestampEnablementVersion")) or 0,
            _number(configuration.get("delta.inCommitTimestampEnablementTimestamp")),
        )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else None


def version_timestamp(
    storage: Storage, segment: LogSegment, state: TableState, cache: LogCache | None
) -> int:
    """When the segment's version was committed."""
    enabled = InCommitTimestamps.of(state)
    if enabled and segment.version >= enabled.since_version and segment.commit is not None:
        return in_commit_timestamp(storage, segment.commit, cache)
    times = [each.status.modified_ms for each in segment.commits]
    if not times and segment.last is not None:
        times = [segment.last.modified_ms]
    return monotonic(times)[-1] if times else 0


def in_commit_timestamp(storage: Storage, commit: Commit, cache: LogCache | None) -> int:
    """The time that a commit carries."""
    for _, piece in commit_pieces(storage, [commit], cache):
        for _, info in other_actions(piece, ("commitInfo",), commit.status.path):
            stamp = info.get("inCommitTimestamp") if isinstance(info, dict) else None
            if isinstance(stamp, int) and not isinstance(stamp, bool):
                return stamp
        break
    raise CorruptTableError(
        f"{commit.status.path} has no inCommitTimestamp in its commitInfo, although the table has in-commit"
        " timestamps enabled at that version. The commit was not written by a correct writer."
    )


def monotonic(times: list[int]) -> list[int]:
    """The times, each at least one millisecond after the one before.

    >>> monotonic([10, 5, 5, 30])
    [10, 11, 12, 30]
    """
    adjusted: list[int] = []
    for time in times:
        adjusted.append(max(time, adjusted[-1] + 1) if adjusted else time)
    return adjusted


def parse_version(version: SupportsIndex) -> int:
    """A version number; NumPy's integers are numbers too.

    >>> parse_version(3)
    3
    """
    if isinstance(version, bool) or not isinstance(version, SupportsIndex) or index(version) < 0:
        raise VersionNotFoundError(f"{version!r} is not a version: versions are whole numbers from 0 on.")
    return index(version)


def parse_timestamp(timestamp: str | datetime) -> int:
    """Milliseconds since 1970 of ISO text or a datetime; without a zone it is UTC.

    >>> parse_timestamp("1970-01-01T00:00:01")
    1000
    """
    if isinstance(timestamp, str):
        try:
            timestamp = datetime.fromisoformat(timestamp.strip())
        except ValueError:
            raise DeltaError(
                f"{timestamp!r} is not a timestamp. Give ISO 8601 text such as '2024-05-01T12:00:00Z', or a"
                " datetime."
            ) from None
    if not isinstance(timestamp, datetime):
        raise DeltaError(
            f"{timestamp!r} is not a timestamp. Give ISO 8601 text such as '2024-05-01T12:00:00Z', or a"
            " datetime."
        )
    if timestamp.tzinfo is None:
        timestamp = timestamp.replace(tzinfo=UTC)
    since = timestamp - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def show(milliseconds: int) -> str:
    """Milliseconds since 1970 as ISO text, as far as a calendar goes."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms since 1970"


class Timeline:
    """The times of the versions that a listing shows."""

    def __init__(
        self, listing: LogListing, state: TableState, storage: Storage, cache: LogCache | None
    ) -> None:
        self._enabled = InCommitTimestamps.of(state)
        self._storage = storage
        self._cache = cache
        self._root = listing.root
        earliest = listing.earliest
        self._commits = {
            version: listing.commits[version]
            for version in sorted(listing.commits)
            if earliest is not None and version >= earliest
        }
        boundary = self._enabled.since_version if self._enabled else None
        by_file = [version for version in self._commits if boundary is None or version < boundary]
        self._file_times = dict(
            zip(by_file, monotonic([self._commits[each].status.modified_ms for each in by_file]), strict=True)
        )

    @property
    def versions(self) -> list[int]:
        """The versions whose commits are there, oldest first."""
        return list(self._commits)

    def at(self, version: int) -> int:
        """When a version was committed."""
        if version in self._file_times:
            return self._file_times[version]
        return in_commit_timestamp(self._storage, self._commits[version], self._cache)

    def version_at(self, milliseconds: int) -> int:
        """The latest version committed at or before a time; reads a handful of commits at most."""
        versions = self._looked_at(milliseconds)
        found = self._count(versions, lambda time: time <= milliseconds)
        if found == 0:
            raise self._outside(milliseconds)
        version = versions[found - 1]
        if version == max(self._commits) and milliseconds > self.at(version):
            raise self._outside(milliseconds)
        return version

    def version_from(self, milliseconds: int) -> int:
        """The earliest version committed at or after a time."""
        versions = self._looked_at(milliseconds)
        before = self._count(versions, lambda time: time < milliseconds)
        found = versions[before] if before < len(versions) else versions[-1] + 1
        if found not in self._commits:
            raise self._outside(milliseconds)
        return found

    def _looked_at(self, milliseconds: int) -> list[int]:
        """The versions among which a time is looked up, in the order of their times."""
        versions = list(self._commits)
        if not versions:
            raise VersionNotFoundError(
                f"The log of {self._root} holds no commits, so a time cannot be looked up."
            )
        if self._enabled and self._enabled.since_ms is not None and self._file_times:
            # The protocol's rule: the time of enablement decides which of the two kinds of time is looked at.
            new = milliseconds >= self._enabled.since_ms
            versions = [each for each in versions if (each not in self._file_times) == new] or versions
        return versions

    def _count(self, versions: list[int], fits: Callable[[int], bool]) -> int:
        """How many of the versions, from the first on, have a time that fits."""
        low, high = 0, len(versions)
        while low < high:
            middle = (low + high) // 2
            if fits(self.at(versions[middle])):
                low = middle + 1
            else:
                high = middle
        return low

    def _outside(self, milliseconds: int) -> VersionNotFoundError:
        first, last = min(self._commits), max(self._commits)
        return VersionNotFoundError(
            f"No version of {self._root} can be given for {show(milliseconds)}: its versions {first} to"
            f" {last} were committed from {show(self.at(first))} to {show(self.at(last))}."
        )
