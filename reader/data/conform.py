"""Gives a file's arrays the names, order and types that the table has now.

Carries out column mapping inside nested types and type widening: a value is only ever made wider. Buffers are
shared wherever a type stays the same; a file that already has the table's types costs nothing.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.data.layout import Mapping, children, find_child
from lakepass.reader.data.variant import reassemble
from lakepass.reader.errors import CorruptTableError
from lakepass.reader.schema import widens
from lakepass.reader.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DecimalType,
    DeltaType,
    MapType,
    PrimitiveType,
    StructType,
    arrow_type,
)

Array: TypeAlias = Any
"""An Arrow array of whatever type; the stubs know the parts of a list only when its type is written out."""

_SIGNED = {8: BYTE, 16: SHORT, 32: INTEGER, 64: LONG}


class Conform:
    """Turns arrays of one file into the table's types; errors name the file."""

    def __init__(self, path: str, mapping: Mapping) -> None:
        self.path = path
        self.mapping = mapping

    def __call__(self, array: Array, delta: DeltaType, column: str) -> Array:
        """`array` as the type `delta` of the column called `column`."""
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        target = arrow_type(delta)
        if delta == VARIANT:
            return self._variant(array, column)
        nested = isinstance(delta, StructType | ArrayType | MapType)
        # Under mapping, equal names inside of a type do not make the same columns.
        if array.type == target and (not nested or self.mapping == "none"):
            return array
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        try:
            match delta:
                case StructType():
                    return self._struct(array, delta, column)
                case ArrayType():
                    return self._list(array, delta, target, column)
                case MapType():
                    return self._map(array, delta, target, column)
                case _:
                    return self._scalar(array, delta, target, column)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
            raise self._unfit(array, delta, column, str(error).splitlines()[0][:200]) from None

    def _scalar(self, array: Array, delta: PrimitiveType | DecimalType, target: Any, column: str) -> Array:
        if array.type == target:
            return array
        if not _fits(array.type, delta):
            raise self._unfit(array, delta, column, "")
        if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
            # A cast would round towards 1970, not down.
            array = pc.floor_temporal(array, unit="microsecond")
        if delta in (TIMESTAMP, TIMESTAMP_NTZ) and pa.types.is_timestamp(array.type):
            unzoned = array.cast(pa.timestamp("us", array.type.tz), safe=array.type.unit != "ns")
            return unzoned.cast(pa.int64()).cast(target)
        return array.cast(target)

    def _struct(self, array: Array, delta: StructType, column: str) -> Array:
        if not isinstance(array, pa.StructArray):
            raise self._unfit(array, delta, column, "")
        fields = children(array.type)
        target = arrow_type(delta)
        parts: list[Array] = []
        for each in delta.fields:
            if each.type == VOID:
                continue
            index = find_child(fields, each, self.mapping)
            if index is None:
                missing: Any = arrow_type(each.type)
                parts.append(pa.nulls(len(array), missing))
            else:
                parts.append(self(array.field(index), each.type, f"{column}.{each.name}"))
        mask = array.is_null() if array.null_count else None
        if not parts:
            return pa.Array.from_buffers(target, len(array), [_validity(mask)])
        return pa.StructArray.from_arrays(parts, fields=children(target), mask=mask)

    def _list(self, array: Array, delta: ArrayType, target: Any, column: str) -> Array:
        if not pa.types.is_list(array.type):
            if not (pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type)):
                raise self._unfit(array, delta, column, "")
            array = array.cast(pa.list_(children(array.type)[0]))
        values = self(array.values, delta.element, f"{column}.element")
        return _with_children(array, target, values)

    def _map(self, array: Array, delta: MapType, target: Any, column: str) -> Array:
        if isinstance(array, pa.MapArray):
            keys, items = array.keys, array.items
        elif pa.types.is_list(array.type) and array.type.value_type.num_fields == 2:
            # Old writers leave out the annotation that tells a map from a list of pairs.
            keys, items = array.values.field(0), array.values.field(1)
        else:
            raise self._unfit(array, delta, column, "")
        if keys.null_count:
            raise self._unfit(array, delta, column, "a key is null")
        entries = pa.StructArray.from_arrays(
            [self(keys, delta.key, f"{column}.key"), self(items, delta.value, f"{column}.value")],
            fields=[target.key_field, target.item_field],
        )
        return _with_children(array, target, entries)

    def _variant(self, array: Array, column: str) -> Array:
        if not isinstance(array, pa.StructArray):
            raise self._unfit(array, VARIANT, column, "")
        try:
            return reassemble(array)
        except CorruptTableError as error:
            raise CorruptTableError(f"{error} It is in the column {column!r} of {self.path}.") from None

    def _unfit(self, array: Array, delta: DeltaType, column: str, why: str) -> CorruptTableError:
        reason = f" ({why})" if why else ""
        return CorruptTableError(
            f"The file {self.path} stores the column {column!r} as {str(array.type)[:200]}, which cannot be "
            f"read as the table's {str(delta)[:200]}{reason}. The file does not belong to this schema, or "
            "was changed in a way the protocol does not allow; rewrite it."
        )


def _fits(kind: pa.DataType, delta: PrimitiveType | DecimalType) -> bool:
    """Whether values of the Arrow type `kind` may be read as `delta` without changing them."""
    types = pa.types
    if types.is_null(kind):
        return True
    if delta in (STRING, BINARY):
        return (
            types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
            or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
            or (delta == BINARY and types.is_fixed_size_binary(kind))
        )  # fmt: skip
    if delta == BOOLEAN:
        return types.is_boolean(kind)
    if delta == DATE:
        return types.is_date(kind)
    if delta == TIMESTAMP:
        return types.is_timestamp(kind)
    if delta == TIMESTAMP_NTZ:
        return types.is_timestamp(kind) or types.is_date32(kind)
    if types.is_decimal(kind):
        return widens(DecimalType(kind.precision, kind.scale), delta)
    if types.is_signed_integer(kind):
        # Small integers are stored as int32, and not every writer annotates how small they are.
        if delta in (BYTE, SHORT) and kind.bit_width <= 32:
            return True
        return widens(_SIGNED[kind.bit_width], delta)
    if types.is_unsigned_integer(kind):
        return delta in INTEGRAL and kind.bit_width < arrow_type(delta).bit_width
    if delta == FLOAT:
        return types.is_float32(kind) or types.is_float16(kind)
    return delta == DOUBLE and types.is_floating(kind)


def _with_children(array: Array, target: Any, values: Array) -> Array:
    """The same lists around other values: validity and offsets are shared."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        target, len(array), [validity, offsets], array.null_count, array.offset, children=[values]
    )


def _validity(mask: Any) -> pa.Buffer | None:
    return None if mask is None else pc.invert(mask).buffers()[1]
