"""Which files of a table may hold what a client's predicate hints ask for.

Hints are best effort: one that cannot be understood, or names what the table does not have, is passed over.
A file is left out only when its partition values or statistics prove that no row in it can match.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lakepass.broker.protocol.json_predicates import parse_json_predicate
from lakepass.reader.data.skipping import FileSkipping
from lakepass.reader.errors import DeltaError
from lakepass.reader.expressions import building
from lakepass.reader.expressions.sql import parse_sql
from lakepass.reader.expressions.tree import Predicate
from lakepass.reader.log.stats import parse_json_stats
from lakepass.reader.snapshot import Snapshot
from lakepass.reader.types import StructType

logger = logging.getLogger("lakepass.broker")

Prune = Callable[[pa.RecordBatch], pa.RecordBatch]
_LONGEST_HINT = 65536
_NOT_A_HINT = (DeltaError, ValueError, TypeError, pa.ArrowException, RecursionError)


def pruner(snapshot: Snapshot, hints: tuple[str, ...], json_hints: str | None) -> Prune | None:
    """A filter for batches of files with their statistics as text; None when no hint is usable."""
    if not hints and not json_hints:
        return None
    scan = snapshot.scan()
    table = scan.plan.table
    parts = [_parsed(parse_sql, hint, table) for hint in hints]
    if json_hints:
        parts.append(_parsed(parse_json_predicate, json_hints, table))
    usable = [part for part in parts if part is not None]
    if not usable:
        return None
    skipping = FileSkipping(building.all_of(usable), table, scan.plan.partition_columns)
    wanted_stats = skipping.stats_schema()

    def prune(files: pa.RecordBatch) -> pa.RecordBatch:
        try:
            told = files
            if wanted_stats is not None:
                position = files.schema.get_field_index("stats")
                typed: Any = parse_json_stats(files.column("stats"), wanted_stats)
                told = files.set_column(position, "stats", typed)
            wanted, _ = skipping.decide(told, skipping.partition_arrays(told))
            return files.filter(pa.array(wanted))
        except _NOT_A_HINT as error:
            logger.info("predicate hints could not be evaluated: %s", type(error).__name__)
            return files

    return prune


def _parsed(parse: Callable[[str, StructType], Predicate], hint: str, table: StructType) -> Predicate | None:
    if len(hint) > _LONGEST_HINT:
        return None
    try:
        return parse(hint, table)
    except _NOT_A_HINT:
        return None
