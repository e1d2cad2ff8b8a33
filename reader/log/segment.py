"""Which files of the log make up a version: one checkpoint at most, and the commits after it.

One listing finds them, starting where `_last_checkpoint` points when that can be believed. The rules carried
out here: the newest complete checkpoint wins, a multi-part one with missing parts is ignored, commits must
follow one another without a gap, a compaction may stand for the commits it covers, and commits that a catalog
ratified go before published ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakepass.reader.errors import CorruptTableError, NotATableError, VersionNotFoundError
from lakepass.reader.location import Location
from lakepass.reader.log.cache import LogCache
from lakepass.reader.log.hint import last_checkpoint
from lakepass.reader.log.names import LOG_DIRECTORY, LogFile, file_name, parse_name
from lakepass.reader.log.ratified import RatifiedCommit
from lakepass.reader.storage import FileStatus, Storage

MAX_LOG_FILES = 5_000_000
_WINDOWS = (100, 1_000, 10_000)
"""How far before a version asked for a checkpoint is looked for, before the whole log is listed."""


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint: one file, or all parts."""

    version: int
    files: tuple[LogFile, ...]


@dataclass(frozen=True)
class Commit:
    """The actions of one version, or of several when it is a compaction."""

    version: int
    end: int
    status: FileStatus
    content: bytes | None = None
    """For a commit that a catalog holds inline; its file is not in the store."""


@dataclass(frozen=True)
class LogSegment:
    """The files from which a version is built."""

    root: Location
    version: int
    checkpoint: Checkpoint | None
    commits: tuple[Commit, ...]
    """Those after the checkpoint, each version once, oldest first."""
    compactions: tuple[LogFile, ...] = ()
    checksums: tuple[LogFile, ...] = ()
    """Checksum files of the versions in this segment, oldest first."""
    commit: Commit | None = None
    """The commit of the version itself; None where only its checkpoint is left."""

    @property
    def last(self) -> FileStatus | None:
        """The file of the version itself: its commit, or the checkpoint where the commit is gone."""
        if self.commit is not None:
            return self.commit.status
        return self.checkpoint.files[0].status if self.checkpoint else None

    def replayed(self) -> tuple[Commit, ...]:
        """The commits to read for replay, oldest first; compactions stand for the commits they cover."""
        by_start: dict[int, LogFile] = {}
        for compaction in self.compactions:
            best = by_start.get(compaction.version)
            if compaction.end <= self.version and (best is None or compaction.end > best.end):
                by_start[compaction.version] = compaction
        chosen: list[Commit] = []
        covered = -1
        for commit in self.commits:
            if commit.version <= covered:
                continue
            longer = by_start.get(commit.version) if commit.content is None else None
            if longer is None:
                chosen.append(commit)
            else:
                chosen.append(Commit(longer.version, longer.end, longer.status))
                covered = longer.end
        return tuple(chosen)

    def extended(self, commits: Sequence[Commit], checksums: Sequence[LogFile]) -> LogSegment:
        """The segment of a later version, with the commits since this one."""
        return replace(
            self,
            version=commits[-1].version,
            commits=self.commits + tuple(commits),
            checksums=self.checksums + tuple(checksums),
            commit=commits[-1],
        )


class LogListing:
    """What a listing of the log shows, sorted by kind."""

    def __init__(self, root: Location, files: Iterable[LogFile]) -> None:
        self.root = root
        self.commits: dict[int, Commit] = {}
        self.checksums: dict[int, LogFile] = {}
        self.compactions: list[LogFile] = []
        candidates: dict[tuple[int, str, int, str], list[LogFile]] = {}
        for file in files:
            if file.kind == "commit":
                self.commits[file.version] = Commit(file.version, file.version, file.status)
            elif file.kind == "checksum":
                self.checksums[file.version] = file
            elif file.kind == "compaction":
                self.compactions.append(file)
            elif file.status.size > 0:
                name = file.status.name if file.kind == "uuid" else ""
                candidates.setdefault((file.version, file.kind, file.parts, name), []).append(file)
        self.checkpoints: dict[int, Checkpoint] = {}
        for (version, *_), parts in sorted(candidates.items()):
            if len(parts) == parts[0].parts:
                self.checkpoints[version] = Checkpoint(
                    version, tuple(sorted(parts, key=lambda each: each.part))
                )

    @classmethod
    def read(cls, storage: Storage, root: Location, start: int = 0, end: int | None = None) -> LogListing:
        """The log's files from version `start` on, and up to `end`."""
        return cls(root, _log_files(storage, root, start, end))

    def ratify(self, ratified: Mapping[int, RatifiedCommit], storage: Storage) -> None:
        """Puts the catalog's commits in place of published ones and leaves out what is beyond the last of
        them.
        """
        if not ratified:
            return
        latest = max(ratified)
        self.commits = {version: commit for version, commit in self.commits.items() if version <= latest}
        self.checkpoints = {version: each for version, each in self.checkpoints.items() if version <= latest}
        for version, commit in ratified.items():
            self.commits[version] = Commit(
                version, version, commit.status(self.root, storage), commit.content
            )

    @property
    def latest(self) -> int | None:
        """The newest version there is."""
        return max((*self.commits, *self.checkpoints), default=None)

    @property
    def earliest(self) -> int | None:
        """The oldest version that can still be built."""
        if 0 in self.commits:
            return 0
        return min(self.checkpoints, default=None)

    def segment(self, version: int) -> LogSegment:
        """The files that make up a version, all of them present."""
        start = max((each for each in self.checkpoints if each <= version), default=None)
        first = 0 if start is None else start + 1
        missing = next((each for each in range(first, version + 1) if each not in self.commits), None)
        if missing is not None:
            self._refuse(missing, start, version)
        checkpoint = None if start is None else self.checkpoints[start]
        return LogSegment(
            root=self.root,
            version=version,
            checkpoint=checkpoint,
            commits=tuple(self.commits[each] for each in range(first, version + 1)),
            compactions=tuple(
                each for each in self.compactions if first <= each.version and each.end <= version
            ),
            checksums=tuple(
                self.checksums[each] for each in sorted(self.checksums) if first - 1 <= each <= version
            ),
            commit=self.commits.get(version),
        )

    def since(self, version: int) -> list[Commit]:
        """The commits after a version, without a gap."""
        latest = self.latest
        wanted = range(version + 1, (latest if latest is not None else version) + 1)
        missing = next((each for each in wanted if each not in self.commits), None)
        if missing is not None:
            self._refuse(missing, None, wanted[-1])
        return [self.commits[each] for each in wanted]

    def _refuse(self, missing: int, checkpoint: int | None, version: int) -> None:
        later = min((each for each in self.commits if each > missing), default=None)
        since = (
            "no checkpoint is there"
            if checkpoint is None
            else f"the last checkpoint before is at {checkpoint}"
        )
        until = f"the next commit is {later}" if later is not None else f"version {version} was wanted"
        raise CorruptTableError(
            f"The log of {self.root} has a gap: version {missing} ({file_name(missing)}) is missing, {since},"
            f" and {until}. Restore the missing commit, or read a version before the gap."
        )


def find_segment(
    storage: Storage,
    root: Location,
    version: int | None = None,
    ratified: Mapping[int, RatifiedCommit] | None = None,
    cache: LogCache | None = None,
) -> LogSegment:
    """The files that make up a version, or the latest one."""
    listing = _latest(storage, root, cache) if version is None else _around(storage, root, version)
    listing.ratify(ratified or {}, storage)
    latest = listing.latest
    if version is None and latest is not None:
        return listing.segment(latest)
    if version is not None and latest is not None and latest >= version:
        whole = listing if 0 in listing.commits or listing.checkpoints else None
        if whole is not None and (listing.earliest or 0) <= version:
            return listing.segment(version)
    everything = LogListing.read(storage, root)
    everything.ratify(ratified or {}, storage)
    if version is not None and everything.latest is not None and everything.earliest is None:
        # Nothing can be built from this log, and why is more to the point than which versions it holds.
        return everything.segment(version)
    raise _not_found(everything, version)


def _not_found(everything: LogListing, version: int | None) -> NotATableError | VersionNotFoundError:
    if everything.latest is None:
        return NotATableError(
            f"{everything.root} is not a Delta table: there is no commit and no checkpoint in"
            f" {LOG_DIRECTORY}. Check the location; it must be the directory that holds _delta_log."
        )
    return VersionNotFoundError(
        f"Version {version} of {everything.root} cannot be read: the log holds versions {everything.earliest}"
        f" to {everything.latest}."
    )


def _latest(storage: Storage, root: Location, cache: LogCache | None) -> LogListing:
    """A listing from the last checkpoint on, as far as that is known, or from the beginning."""
    known = cache.start(str(root)) if cache else None
    listing = None if known is None else _from(storage, root, known)
    if listing is None:
        listing = _from(storage, root, last_checkpoint(storage, root) or 0)
    if listing is None:
        listing = LogListing.read(storage, root)
    if cache and listing.latest is not None:
        cache.started(str(root), max(listing.checkpoints, default=0))
    return listing


def _from(storage: Storage, root: Location, start: int) -> LogListing | None:
    """A listing from a checkpoint on; None when it is not there."""
    listing = LogListing.read(storage, root, start)
    return listing if start == 0 or listing.checkpoints else None


def _around(storage: Storage, root: Location, version: int) -> LogListing:
    """A listing that ends at a version and goes back far enough for a checkpoint, if there is one."""
    for window in _WINDOWS:
        if version <= window:
            break
        listing = LogListing.read(storage, root, version - window, version)
        if listing.checkpoints and listing.latest == version:
            return listing
    return LogListing.read(storage, root, 0, version)


def _log_files(storage: Storage, root: Location, start: int, end: int | None) -> Iterator[LogFile]:
    count = 0
    after = f"{start:020d}." if start else ""
    for status in storage.list(root.join(LOG_DIRECTORY), after):
        if status.name[:1] > "9":
            # Everything the protocol defines here begins with a digit; folders of other files follow.
            break
        file = parse_name(status)
        if file is None:
            continue
        if end is not None and file.version > end:
            break
        count += 1
        if count > MAX_LOG_FILES:
            raise CorruptTableError(
                f"The log of {root} holds more than {MAX_LOG_FILES} files. Clean it up first."
            )
        yield file
