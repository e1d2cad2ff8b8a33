"""The file actions of single commits, in order: what change data and incremental readers work on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from lakepass.reader.log.actions import DomainMetadata, Metadata, Protocol, Transaction
from lakepass.reader.log.cache import LogCache
from lakepass.reader.log.commits import changed_files, commit_pieces
from lakepass.reader.log.files import FileColumns
from lakepass.reader.log.lines import actions
from lakepass.reader.log.segment import Commit
from lakepass.reader.storage import Storage


@dataclass(frozen=True)
class CommitActions:
    """What one commit says."""

    version: int
    timestamp_ms: int
    commit_info: dict[str, Any] | None
    protocol: Protocol | None
    """Set when the commit changes it."""
    metadata: Metadata | None
    adds: pa.RecordBatch
    """`FILE_SCHEMA`, what was asked for beside it, and `data_change`; the same for removes and change files.
    """
    removes: pa.RecordBatch
    cdc: pa.RecordBatch
    domain_metadata: tuple[DomainMetadata, ...] = ()
    transactions: tuple[Transaction, ...] = ()

    @property
    def is_idle_merge(self) -> bool:
        """A MERGE that rewrote files without changing a row, as it says itself.

        It marks them as changed data all the same; Delta's readers of change data leave them out, too.
        """
        info = self.commit_info or {}
        metrics = info.get("operationMetrics")
        return (
            info.get("operation") == "MERGE"
            and isinstance(metrics, dict)
            and all(
                str(metrics.get(f"numTargetRows{done}")) == "0" for done in ("Inserted", "Updated", "Deleted")
            )
        )


def read_commit(
    storage: Storage, commit: Commit, cache: LogCache | None, columns: FileColumns
) -> tuple[CommitActions, int | None]:
    """A commit's actions, with its file's time, and the in-commit timestamp if it has one."""
    where = commit.status.path
    files: dict[Literal["add", "remove", "cdc"], list[dict[str, Any]]] = {"add": [], "remove": [], "cdc": []}
    info: dict[str, Any] | None = None
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    domains: list[DomainMetadata] = []
    applications: list[Transaction] = []
    for _, piece in commit_pieces(storage, [commit], cache):
        for action in actions(piece, where):
            for kind, found in files.items():
                if isinstance(action.get(kind), dict):
                    found.append(action[kind])
            if isinstance(action.get("commitInfo"), dict):
                info = action["commitInfo"]
            if action.get("protocol") is not None:
                protocol = Protocol.parse(action["protocol"], where)
            if action.get("metaData") is not None:
                metadata = Metadata.parse(action["metaData"], where)
            if action.get("domainMetadata") is not None:
                domains.append(DomainMetadata.parse(action["domainMetadata"], where))
            if action.get("txn") is not None:
                applications.append(Transaction.parse(action["txn"], where))
    stamp = (info or {}).get("inCommitTimestamp")
    result = CommitActions(
        commit.version,
        commit.status.modified_ms,
        info,
        protocol,
        metadata,
        changed_files(files["add"], columns, where),
        changed_files(files["remove"], columns, where),
        changed_files(files["cdc"], columns, where),
        tuple(domains),
        tuple(applications),
    )
    return result, stamp if isinstance(stamp, int) and not isinstance(stamp, bool) else None


def commit_sequence(
    storage: Storage, commits: list[Commit], cache: LogCache | None, columns: FileColumns
) -> Iterator[CommitActions]:
    """Each commit in order, with the time it carries, or its file's time made monotonic."""
    previous: int | None = None
    for commit in commits:
        result, stamp = read_commit(storage, commit, cache, columns)
        time = result.timestamp_ms if previous is None else max(result.timestamp_ms, previous + 1)
        previous = time if stamp is None else stamp
        yield replace(result, timestamp_ms=previous)
