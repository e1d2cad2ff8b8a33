"""Commits of a catalog-managed table, as its catalog hands them over.

The catalog alone knows which commits were ratified and not yet published as `<version>.json`. A caller who
asked it gives the answer to `Table(commits=...)`; these commits then go before published ones, and the last
of them is the latest version there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lakepass.reader.errors import CorruptTableError
from lakepass.reader.location import Location
from lakepass.reader.log.names import STAGED_DIRECTORY, file_name, staged_version
from lakepass.reader.storage import FileStatus, Storage


@dataclass(frozen=True)
class RatifiedCommit:
    """A ratified commit: a file among the staged commits, or the content itself.

    >>> RatifiedCommit.parse("00000000000000000008.7d17ac10-5cc3-401b-bd1a-9c82dd2ea032.json").version
    8
    """

    version: int
    path: str | None = None
    """The staged file's name, or its path from the table's root."""
    content: bytes | None = field(default=None, repr=False)
    timestamp_ms: int = 0

    @classmethod
    def parse(cls, commit: RatifiedCommit | str) -> RatifiedCommit:
        """From the name of a staged commit, whose version is authoritative."""
        if isinstance(commit, RatifiedCommit):
            return commit
        version = staged_version(commit)
        if version is None:
            raise CorruptTableError(
                f"{commit!r} is not the name of a staged commit (<version>.<uuid>.json). Give what the"
                " catalog answered, or RatifiedCommit(version, content=...) for a commit that it holds"
                " inline."
            )
        return cls(version, commit)

    def status(self, root: Location, storage: Storage) -> FileStatus:
        """The commit as a file; one that a catalog holds inline has a name and no place."""
        if self.path is None:
            return FileStatus(
                root.join(f"{STAGED_DIRECTORY}/{file_name(self.version)}"), len(self.content or b""), 0
            )
        name = self.path.rsplit("/", 1)[-1]
        if staged_version(name) != self.version:
            raise CorruptTableError(f"The staged commit {name!r} is not of version {self.version}.")
        path = root.join(f"{STAGED_DIRECTORY}/{name}")
        return next(
            (each for each in storage.list(root.join(STAGED_DIRECTORY), name[:-1]) if each.path == path),
            FileStatus(path, 0, self.timestamp_ms),
        )


def ratified_commits(commits: Iterable[RatifiedCommit | str] | None) -> dict[int, RatifiedCommit]:
    """By version, without gaps."""
    parsed = {each.version: each for each in map(RatifiedCommit.parse, commits or ())}
    if parsed and sorted(parsed) != list(range(min(parsed), max(parsed) + 1)):
        raise CorruptTableError(
            f"The ratified commits have a gap: {sorted(parsed)}. The catalog's list is incomplete."
        )
    return parsed
