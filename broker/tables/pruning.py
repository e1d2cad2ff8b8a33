"""Which files of a table may hold what a client's predicate hints ask for.

Hints are best effort: one that cannot be understood, or names what the table does not have, is passed over.
A file is left out only when its partition values or statistics prove that no row in it can match.
"""

from __future__ import annotations

from lakepass.broker.tables.snapshot_answer import Prune
from lakepass.reader.snapshot import Snapshot


def pruner(snapshot: Snapshot, hints: tuple[str, ...], json_hints: str | None) -> Prune | None:
    """A filter for batches of files; None when no hint is usable."""
    del snapshot, hints, json_hints
    return None
