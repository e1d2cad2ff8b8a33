"""The reader's Arrow batches in exactly the types that Spark declares for its own.

Spark compares a batch's Arrow schema with the one it derives from the DataFrame's, nullability at every
level included, before it takes the buffers as they are. The values are the same already; only the names of
list elements, nullability, and the order of a variant's two parts differ, so nothing is copied except
around variants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyarrow.cffi import ffi

ROWS = 10_000
"""What Spark's own Arrow batches hold; larger ones are slower there."""


def spark_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches cut to Spark's size and conformed to `schema`, which is Spark's own; void columns are
    added."""
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS):
            piece = batch.slice(start, ROWS)
            columns = [_column(piece, field) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field[Any]) -> Any:
    if pa.types.is_null(field.type):
        return pa.nulls(batch.num_rows)
    return conformed(batch.column(field.name), field.type)


def conformed(array: Any, wanted: pa.DataType) -> Any:
    """The array as a type that differs from its own in names and nullability only."""
    if array.type.equals(wanted) and not pa.types.is_nested(wanted):
        return array
    if _is_variant(wanted):
        # The reader's parts come the other way round.
        parts = [array.field(name) for name in ("value", "metadata")]
        return _struct(array, parts, wanted)
    if pa.types.is_struct(wanted) and _holds_variant(wanted):
        children = [
            conformed(array.field(index), wanted.field(index).type) for index in range(wanted.num_fields)
        ]
        return _struct(array, children, wanted)
    if pa.types.is_list(wanted) and _holds_variant(wanted):
        whole = array.take(pa.array(range(len(array)), pa.int64()))  # from offset zero, as from_arrays asks
        values = conformed(whole.values, wanted.value_type)
        return pa.ListArray.from_arrays(whole.offsets, values, type=wanted, mask=whole.is_null())
    if pa.types.is_nested(wanted):
        return _relabelled(array, wanted)
    return array.cast(wanted)


def _struct(array: Any, children: list[Any], wanted: Any) -> Any:
    filled = [
        child.fill_null(b"") if not field.nullable and child.null_count else child
        for child, field in zip(children, wanted, strict=True)
    ]
    return pa.StructArray.from_arrays(filled, fields=list(wanted), mask=array.is_null())


def _relabelled(array: Any, wanted: pa.DataType) -> Any:
    """The same buffers under another type, by Arrow's C interface."""
    handle = ffi.new("struct ArrowArray*")
    address = int(ffi.cast("uintptr_t", handle))
    array._export_to_c(address)
    return pa.Array._import_from_c(address, wanted)


def _is_variant(kind: Any) -> bool:
    if not pa.types.is_struct(kind) or kind.num_fields != 2:
        return False
    mark = kind.field(1).metadata or {}
    return bool(mark.get(b"variant") == b"true")


def _holds_variant(kind: Any) -> bool:
    if _is_variant(kind):
        return True
    if pa.types.is_struct(kind):
        return any(_holds_variant(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _holds_variant(kind.value_type)
    return False
