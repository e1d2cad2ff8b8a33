"""Bounds of row groups, from a file's footer.

Only statistics whose order is beyond doubt are used: integers, floating numbers, dates, 64-bit timestamps and
texts. Decimals in byte arrays were ordered wrongly by old writers, and INT96 has no order at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lakepass.reader.data.conform import Conform
from lakepass.reader.data.files import DataFile
from lakepass.reader.data.layout import Mapping, children, find_columns
from lakepass.reader.errors import CorruptTableError
from lakepass.reader.expressions.bounds import Bounds
from lakepass.reader.expressions.tree import Column
from lakepass.reader.footer import Chunk
from lakepass.reader.types import StructType, arrow_type


def group_bounds(file: DataFile, groups: list[int], mapping: Mapping) -> Callable[[Column], Bounds | None]:
    """Gives the bounds of a column in each of the row groups, or None when the footer does not tell."""

    def bounds(column: Column) -> Bounds | None:
        found = _leaf(file, column, mapping)
        if found is None:
            return None
        leaf, kind = found
        lows, highs, values, nulls = [], [], [], []
        for group in groups:
            chunk = file.chunk(group, leaf)
            low, high = _values(chunk, kind)
            lows.append(low)
            highs.append(high)
            nulls.append(chunk.null_count != 0)
            values.append(chunk.null_count != file.row_counts[group])
        try:
            conform = Conform(file.path, mapping)
            low_values = conform(pa.array(lows, _carrier(kind)).cast(kind), column.type, str(column))
            high_values = conform(pa.array(highs, _carrier(kind)).cast(kind), column.type, str(column))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, CorruptTableError, OverflowError):
            return None
        return Bounds(low_values, high_values, np.array(values, np.bool_), np.array(nulls, np.bool_))

    return bounds


def _leaf(file: DataFile, column: Column, mapping: Mapping) -> tuple[int, pa.DataType] | None:
    """The leaf that holds a column and its Arrow type; None when it is missing or not a plain value."""
    if isinstance(column.type, StructType) or pa.types.is_nested(arrow_type(column.type)):
        return None
    pruned = column.fields[-1]
    for parent in reversed(column.fields[:-1]):
        pruned = type(parent)(parent.name, StructType((pruned,)), parent.nullable, parent.metadata)
    layout = find_columns((pruned,), file.schema, mapping, file.path)
    if layout.places[0] is None or len(layout.leaves) != 1:
        return None
    kind = _type_of_leaf(list(file.schema), layout.leaves[0])
    described = file.metadata.schema.column(layout.leaves[0])
    if kind is None or described.max_repetition_level:
        return None
    if described.physical_type in ("INT96", "FIXED_LEN_BYTE_ARRAY"):
        return None
    if len(column.fields) > 1:
        # Where the struct lacks this field, another leaf stands in to tell where the struct is null.
        names = column.path if mapping == "none" else column.physical_path
        if mapping == "id" or "." in "".join(names) or described.path != ".".join(names):
            return None
    return layout.leaves[0], kind


def _type_of_leaf(fields: list[pa.Field[Any]], leaf: int) -> pa.DataType | None:
    flat: list[pa.DataType] = []

    def walk(kind: pa.DataType) -> None:
        if pa.types.is_nested(kind):
            for each in children(kind):
                walk(each.type)
        else:
            flat.append(kind)

    for each in fields:
        walk(each.type)
    return flat[leaf] if leaf < len(flat) else None


def _carrier(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kind) else kind


def _values(chunk: Chunk, kind: pa.DataType) -> tuple[Any, Any]:
    types = pa.types
    if chunk.low is None or chunk.high is None:
        return None, None
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        try:
            return chunk.low.decode(), chunk.high.decode()
        except UnicodeDecodeError:
            return None, None
    plain = types.is_signed_integer(kind) or types.is_timestamp(kind) or types.is_date32(kind)
    return (
        (chunk.low, chunk.high)
        if plain or types.is_floating(kind) or types.is_boolean(kind)
        else (None, None)
    )
