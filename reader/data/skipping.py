"""Which files may hold rows that a filter wants, told by partition values and statistics.

Carries out "Per-file Statistics": bounds may be wide when rows were deleted, texts are cut off, timestamps
lack their microseconds, any part may be missing. Statistics are read only for the columns that the filter
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.data.partition_values import parse_array
from lakepass.reader.expressions.bounds import Bounds, BoundsEvaluator, Flags
from lakepass.reader.expressions.tree import Column, Predicate, columns_of
from lakepass.reader.types import (
    BINARY,
    DOUBLE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    MapType,
    StructType,
    arrow_type,
)

_SLACK_US = 1000
"""Statistics cut timestamps down to milliseconds."""
_LAST_US = (1 << 63) - 1 - _SLACK_US
_NOTHING = pa.nulls(1, pa.int64())[0]


class FileSkipping:
    """Decides about batches of live files."""

    def __init__(
        self,
        predicate: Predicate | None,
        table: StructType,
        partition_columns: tuple[str, ...],
        *,
        stats: bool = True,
    ) -> None:
        self._predicate = predicate
        self._partitions = [each for each in table.fields if each.name in partition_columns]
        names = {each.name for each in self._partitions}
        asked = {each.path: each for each in columns_of(predicate)} if predicate is not None else {}
        candidates = asked.values() if stats else ()
        self._columns = [each for each in candidates if each.path[0] not in names and _has_stats(each)]

    def stats_schema(self, *, records: bool = False) -> pa.Schema | None:
        """The statistics that are needed, by physical names; None when there are none."""
        fields: list[pa.Field[Any]] = []
        if self._columns or records:
            fields.append(pa.field("numRecords", pa.int64()))
        bounded = [(each.physical_path, arrow_type(each.type)) for each in self._columns if _has_bounds(each)]
        for name, wanted in (("minValues", bounded), ("maxValues", bounded)):
            if wanted:
                fields.append(pa.field(name, _nested(wanted)))
        if self._columns:
            counts = [(each.physical_path, pa.int64()) for each in self._columns]
            fields.append(pa.field("nullCount", _nested(counts)))
        return pa.schema(fields) if fields else None

    def partition_arrays(self, batch: pa.RecordBatch) -> dict[str, Any]:
        """The typed partition values of a batch of files, by logical name."""
        values = batch.column("partition_values")
        return {
            each.name: parse_array(_partition_texts(values, each.physical_name), each.type, each.name)
            for each in self._partitions
        }

    def decide(self, batch: pa.RecordBatch, partitions: dict[str, Any]) -> tuple[Flags, Flags]:
        """For each file: whether it may hold wanted rows; whether partition values alone want them all."""
        count = batch.num_rows
        if self._predicate is None:
            return np.ones(count, np.bool_), np.ones(count, np.bool_)
        exact = {name: _exact(array) for name, array in partitions.items()}

        def from_partitions(column: Column) -> Bounds | None:
            return exact.get(column.path[0])

        # The partition values leave no doubt; what they decide needs no look at rows.
        certain = BoundsEvaluator(count, from_partitions).evaluate(self._predicate)
        everything = ~certain.false & ~certain.null
        if not self._columns:
            return certain.true, everything
        from_stats = self._from_stats(batch)
        possible = BoundsEvaluator(count, lambda column: from_partitions(column) or from_stats(column))
        return possible.evaluate(self._predicate).true, everything

    def _from_stats(self, batch: pa.RecordBatch) -> Callable[[Column], Bounds | None]:
        stats = batch.column("stats")
        known = {each.path for each in self._columns}
        records = _part(stats, ("numRecords",))

        def bounds(column: Column) -> Bounds | None:
            if column.path not in known:
                return None
            kind: Any = arrow_type(column.type)
            low = _part(stats, ("minValues", *column.physical_path))
            high = _part(stats, ("maxValues", *column.physical_path))
            if column.type in (TIMESTAMP, TIMESTAMP_NTZ) and high is not None:
                high = _later(high)
            if column.type == DOUBLE:
                low, high = _with_floats(low, pc.min_element_wise), _with_floats(high, pc.max_element_wise)
            nulls = _part(stats, ("nullCount", *column.physical_path))
            has_null = _flags(pc.not_equal(nulls, pa.scalar(0, pa.int64())))
            has_value = _flags(pc.not_equal(nulls, records))
            unknown = pa.nulls(batch.num_rows, kind)
            return Bounds(
                unknown if low is None else low, unknown if high is None else high, has_value, has_null
            )

        return bounds


def _partition_texts(values: Any, name: str) -> Any:
    """What the log gives for a partition column; a key that differs in letter case only stands for it."""
    texts = pc.map_lookup(values, pa.scalar(name), "first")
    if texts.null_count:
        for key in values.keys.unique().to_pylist():
            if key != name and key.casefold() == name.casefold():
                texts = pc.coalesce(texts, pc.map_lookup(values, pa.scalar(key), "first"))
    return texts


def _has_stats(column: Column) -> bool:
    return not isinstance(column.type, StructType | ArrayType | MapType)


def _has_bounds(column: Column) -> bool:
    return column.type not in (BINARY, VARIANT)


def _nested(columns: Iterable[tuple[tuple[str, ...], pa.DataType]]) -> pa.StructType:
    tree: dict[str, Any] = {}
    for path, kind in columns:
        level = tree
        for name in path[:-1]:
            level = level.setdefault(name, {})
        level[path[-1]] = kind
    return _struct(tree)


def _struct(tree: dict[str, Any]) -> pa.StructType:
    return pa.struct(
        [pa.field(name, _struct(each) if isinstance(each, dict) else each) for name, each in tree.items()]
    )


def _part(stats: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        index = stats.type.get_field_index(name)
        if index < 0:
            return None
        stats = pc.struct_field(stats, [index])
    return stats


def _exact(values: Any) -> Bounds:
    nulls = values.is_null().to_numpy(zero_copy_only=False)
    return Bounds(values, values, ~nulls, nulls, exact=True)


def _with_floats(bound: Any, outer: Callable[..., Any]) -> Any:
    """Bounds that hold for a file from when the column was float: its 0.7 means the float nearest to it."""
    if bound is None:
        return None
    return outer(bound, bound.cast(pa.float32(), safe=False).cast(pa.float64()), skip_nulls=False)


def _later(high: Any) -> Any:
    numbers = high.cast(pa.int64())
    moved = pc.if_else(pc.less(numbers, pa.scalar(_LAST_US)), pc.add(numbers, pa.scalar(_SLACK_US)), _NOTHING)
    return moved.cast(high.type)


def _flags(answer: Any) -> Flags:
    flags: Flags = pc.fill_null(answer, True).to_numpy(zero_copy_only=False)
    return flags
