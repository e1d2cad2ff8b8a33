"""The state of a table beside its files: protocol, metadata, transactions, domain metadata.

The newest of each wins. To open a table only protocol and metadata are wanted, and reading a large checkpoint
for them would make opening slow, so the version's checksum file (`.crc`), which repeats both, is used where
there is one. A checksum is no part of the log, though: whoever then lists files has the log compared with it
first, and a table whose checksum contradicts its log is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from lakepass.reader.errors import CorruptTableError, DeltaError
from lakepass.reader.log.actions import DomainMetadata, Metadata, Protocol, Transaction
from lakepass.reader.log.cache import LogCache, read_kept
from lakepass.reader.log.checkpoints import CheckpointReader
from lakepass.reader.log.commits import commit_pieces, other_actions
from lakepass.reader.log.names import LogFile
from lakepass.reader.log.segment import Commit, LogSegment
from lakepass.reader.storage import Storage, TooLargeError

_LARGEST_CHECKSUM = 64 << 20
MAX_ENTRIES = 1_000_000
"""Transactions and domains of one table; more are refused."""


@dataclass(frozen=True)
class TableState:
    """Protocol and metadata at a version."""

    protocol: Protocol
    metadata: Metadata
    from_checksum: bool = False
    """Taken from a checksum file, not yet compared with the log."""


def find_state(
    storage: Storage, segment: LogSegment, cache: LogCache | None, known: TableState | None = None
) -> TableState:
    """Protocol and metadata of the segment's version.

    `known` is the state at the version where the segment's checkpoint would be: what a snapshot that is
    brought forward already has.
    """
    if known is None and segment.checksums:
        checksum = segment.checksums[-1]
        later = [commit for commit in segment.commits if commit.version > checksum.version]
        base = _checksum_state(storage, checksum, cache)
        if base is not None:
            return _newest(storage, segment, later, cache, base)
    return _newest(storage, segment, segment.replayed(), cache, known)


def log_state(storage: Storage, segment: LogSegment, cache: LogCache | None) -> TableState:
    """The same from the log alone."""
    return _newest(storage, segment, segment.replayed(), cache, None)


def check_against_log(state: TableState, log: TableState, segment: LogSegment) -> None:
    """Refuses a table whose checksum file says something else than its log about how to read it."""
    theirs, ours = _reading(state), _reading(log)
    if theirs != ours:
        differing = ", ".join(name for name in ours if ours[name] != theirs[name])
        raise CorruptTableError(
            f"The checksum file of version {segment.version} of {segment.root} contradicts the log"
            f" ({differing}). One of them was changed by hand; remove the .crc file if the log is right."
        )


def _reading(state: TableState) -> dict[str, Any]:
    try:
        schema = orjson.loads(state.metadata.schema_string)
    except ValueError:
        schema = state.metadata.schema_string
    return {
        "minReaderVersion": state.protocol.min_reader_version,
        "readerFeatures": sorted(state.protocol.reader_features or ()),
        "schemaString": schema,
        "partitionColumns": state.metadata.partition_columns,
        "configuration": {
            key: value
            for key, value in state.metadata.configuration.items()
            if key.startswith("delta.columnMapping")
        },
    }


def _checksum_state(storage: Storage, checksum: LogFile, cache: LogCache | None) -> TableState | None:
    try:
        document = orjson.loads(read_kept(storage, checksum.status, cache, _LARGEST_CHECKSUM))
        if not isinstance(document, dict):
            return None
        protocol = Protocol.parse(document.get("protocol"), checksum.status.path)
        metadata = Metadata.parse(document.get("metadata"), checksum.status.path)
    except (ValueError, CorruptTableError, TooLargeError):
        # An aid that is damaged helps nobody; the log has it all.
        return None
    return TableState(protocol, metadata, from_checksum=True)


def _newest(
    storage: Storage,
    segment: LogSegment,
    commits: Sequence[Commit],
    cache: LogCache | None,
    base: TableState | None,
) -> TableState:
    found: dict[str, Any] = {}
    for name, action, where in _newest_first(storage, commits, cache, ("protocol", "metaData")):
        found.setdefault(name, (action, where))
        if len(found) == 2:
            break
    if base is None and len(found) < 2 and segment.checkpoint is not None:
        where = segment.checkpoint.files[0].status.path
        wanted = [name for name in ("protocol", "metaData") if name not in found]
        reader = CheckpointReader(storage, segment.root, segment.checkpoint, cache)
        for name, action in reader.rows(wanted, until=wanted):
            found.setdefault(name, (action, where))
    protocol = Protocol.parse(*found["protocol"]) if "protocol" in found else base.protocol if base else None
    metadata = Metadata.parse(*found["metaData"]) if "metaData" in found else base.metadata if base else None
    missing = [name for name, value in (("protocol", protocol), ("metaData", metadata)) if value is None]
    if protocol is None or metadata is None:
        since = (
            "version 0"
            if segment.checkpoint is None
            else f"the checkpoint at version {segment.checkpoint.version}"
        )
        raise CorruptTableError(
            f"The log of {segment.root} has no {' and no '.join(missing)} action from {since} to version"
            f" {segment.version}, so the table cannot be read. Its first commits or its checkpoint are"
            " damaged."
        )
    from_checksum = base is not None and base.from_checksum and len(found) < 2
    return TableState(protocol, metadata, from_checksum)


def _newest_first(
    storage: Storage, commits: Sequence[Commit], cache: LogCache | None, names: Sequence[str]
) -> Iterator[tuple[str, Any, str]]:
    """Actions of some kinds from the newest commit to the oldest; within a commit the last one first."""
    pending: list[tuple[str, Any, str]] = []
    current: Commit | None = None
    for commit, piece in commit_pieces(storage, list(reversed(commits)), cache):
        if commit is not current:
            yield from reversed(pending)
            pending, current = [], commit
        where = commit.status.path
        pending.extend((name, action, where) for name, action in other_actions(piece, names, where))
    yield from reversed(pending)


def transactions(storage: Storage, segment: LogSegment, cache: LogCache | None) -> dict[str, Transaction]:
    """The latest transaction of each application."""
    found: dict[str, Transaction] = {}
    for action, where in _everything(storage, segment, cache, "txn"):
        entry = Transaction.parse(action, where)
        found.setdefault(entry.app_id, entry)
        _bound(found, segment)
    return found


def domain_metadata(
    storage: Storage, segment: LogSegment, cache: LogCache | None
) -> dict[str, DomainMetadata]:
    """The latest configuration of each domain, without those that were removed."""
    found: dict[str, DomainMetadata] = {}
    for action, where in _everything(storage, segment, cache, "domainMetadata"):
        entry = DomainMetadata.parse(action, where)
        found.setdefault(entry.domain, entry)
        _bound(found, segment)
    return {name: entry for name, entry in found.items() if not entry.removed}


def _everything(
    storage: Storage, segment: LogSegment, cache: LogCache | None, name: str
) -> Iterator[tuple[Any, str]]:
    for _, action, where in _newest_first(storage, segment.replayed(), cache, (name,)):
        yield action, where
    if segment.checkpoint is not None:
        where = segment.checkpoint.files[0].status.path
        for _, action in CheckpointReader(storage, segment.root, segment.checkpoint, cache).rows([name]):
            yield action, where


def _bound(found: dict[str, Any], segment: LogSegment) -> None:
    if len(found) > MAX_ENTRIES:
        raise DeltaError(
            f"{segment.root} has more than {MAX_ENTRIES} transactions or domains, which is not read."
        )
