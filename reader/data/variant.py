"""Variant values: reading them, and putting shredded ones together again.

Carries out "Variant Data Type" and "Variant Shredding" of the protocol, which refer to Parquet's variant
encoding. A variant column is given back as `struct<metadata: binary, value: binary>` whether a file shredded
it or not; `to_python` makes Python values of the two. Lengths and offsets inside a value are data from
outside: every one is checked, and the number of values cannot exceed the number of bytes.
"""

from __future__ import annotations

import datetime as dt
import itertools
import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakepass.reader.data.partition_values import WIDE
from lakepass.reader.data.variant_writing import encode_array, encode_object, encode_scalar
from lakepass.reader.errors import CorruptTableError
from lakepass.reader.types import VARIANT_ARROW

_EPOCH = dt.datetime(1970, 1, 1)
_DEEPEST = 500


def to_python(metadata: bytes, value: bytes) -> Any:
    """The Python value of a variant; a variant's null is None.

    >>> to_python(b"\\x01\\x01\\x00\\x01a", bytes.fromhex("02010000020c07"))
    {'a': 7}
    """
    try:
        return _Decoder(metadata, value).value(0, 0)
    except (IndexError, struct.error, ValueError, OverflowError, RecursionError) as error:
        raise _damaged(str(error)) from None


def reassemble(array: pa.StructArray) -> pa.StructArray:
    """The variant column that `array`, as read from a file, stands for: unshredded, in our Arrow form."""
    names = [array.type.field(index).name for index in range(array.type.num_fields)]
    if "metadata" not in names or ("value" not in names and "typed_value" not in names):
        raise _damaged(f"it has the fields {', '.join(names)[:100]}, not metadata and value")
    metadata = array.field(names.index("metadata")).cast(pa.binary())
    mask = array.is_null() if array.null_count else None
    if "typed_value" not in names:
        value = array.field(names.index("value")).cast(pa.binary())
        return pa.StructArray.from_arrays([metadata, value], fields=list(VARIANT_ARROW), mask=mask)
    valid = array.is_valid().to_pylist()
    texts = metadata.to_pylist()
    rows = _plain(array)
    typed = array.field(names.index("typed_value")).type
    values: list[bytes | None] = []
    for text, row, present in zip(texts, rows, valid, strict=True):
        if not present:
            values.append(None)
            continue
        try:
            if text is None:
                raise _damaged("it has no metadata")
            names_of = {name: index for index, name in enumerate(_Decoder(text, b"\x00").names)}
            whole = _unshred(row, typed, names_of, text)
        except (IndexError, struct.error, KeyError, TypeError) as error:
            raise _damaged(f"{type(error).__name__} {error}") from None
        values.append(b"\x00" if whole is None else whole)
    parts = [metadata, pa.array(values, pa.binary())]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_ARROW), mask=mask)


def _plain(array: pa.Array[Any]) -> list[Any]:
    """Rows as Python values, with times as integers, which have no narrow range."""
    return _as_numbers(array).to_pylist()


def _as_numbers(array: pa.Array[Any]) -> pa.Array[Any]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _as_numbers(array.storage)
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return array.cast(pa.int64())
    if pa.types.is_date32(kind):
        return array.cast(pa.int32())
    if isinstance(array, pa.StructArray):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        parts = [_as_numbers(array.field(index)) for index in range(kind.num_fields)]
        named = [pa.field(each.name, part.type) for each, part in zip(fields, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=named, mask=array.is_null())
    if isinstance(array, pa.ListArray):
        values = _as_numbers(array.values)
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(
            pa.list_(values.type), len(array), buffers, array.null_count, array.offset, children=[values]
        )
    return array


def _unshred(row: dict[str, Any], typed: pa.DataType, names: dict[str, int], metadata: bytes) -> bytes | None:
    """The bytes of one value from its shredded parts; None when the value is missing."""
    value, parts = row.get("value"), row.get("typed_value")
    if parts is None:
        return value
    while isinstance(typed, pa.BaseExtensionType):
        typed = typed.storage_type
    if pa.types.is_struct(typed):
        fields: dict[str, bytes] = {}
        if value is not None:
            fields.update(_Decoder(metadata, value).fields())
        for index in range(typed.num_fields):
            child = typed.field(index)
            part = parts.get(child.name)
            whole = None if part is None else _unshred(part, _typed(child.type), names, metadata)
            if whole is not None:
                fields[child.name] = whole
        return encode_object({names[name]: fields[name] for name in sorted(fields, key=str.encode)})
    if pa.types.is_list(typed) or pa.types.is_large_list(typed):
        inner = _typed(typed.value_type)
        elements = [_unshred(each, inner, names, metadata) if each else b"\x00" for each in parts]
        return encode_array([b"\x00" if each is None else each for each in elements])
    return encode_scalar(parts, typed)


def _typed(kind: pa.StructType) -> pa.DataType:
    index = kind.get_field_index("typed_value")
    return kind.field(index).type if index >= 0 else pa.null()


class _Decoder:
    """Reads one value; `budget` stops values that point at the same bytes again and again."""

    def __init__(self, metadata: bytes, value: bytes) -> None:
        self.data = value
        self.budget = len(value) + 1
        if not metadata or metadata[0] & 0x0F != 1:
            raise _damaged("its metadata is not of version 1")
        width = (metadata[0] >> 6) + 1
        count = _number(metadata, 1, width)
        if count > len(metadata):
            raise _damaged(f"its metadata claims {count} names")
        offsets = [_number(metadata, 1 + width * (index + 1), width) for index in range(count + 1)]
        start = 1 + width * (count + 2)
        self.names = [_cut(metadata, start + low, start + high).decode() for low, high in _pairs(offsets)]

    def value(self, at: int, depth: int) -> Any:
        self.budget -= 1
        if self.budget < 0 or depth > _DEEPEST:
            raise _damaged("it is nested too deeply or repeats itself")
        header = self.data[at]
        kind, detail = header & 3, header >> 2
        if kind == 0:
            return self.scalar(detail, at + 1)
        if kind == 1:
            return _cut(self.data, at + 1, at + 1 + detail).decode()
        if kind == 2:
            found = self.object_places(at)
            return {name: self.value(place, depth + 1) for name, place in found}
        return [self.value(place, depth + 1) for place in self.array_places(at)]

    def fields(self) -> dict[str, bytes]:
        """The fields of the object that this value is, each as bytes of its own."""
        if self.data[0] & 3 != 2:
            raise _damaged("a partly shredded value is not an object")
        return {name: self.data[place : place + self.size(place)] for name, place in self.object_places(0)}

    def size(self, at: int) -> int:
        """How many bytes the value at `at` takes."""
        header = self.data[at]
        kind, detail = header & 3, header >> 2
        if kind == 1:
            return 1 + detail
        if kind == 0:
            if detail in (15, 16):
                return 5 + _number(self.data, at + 1, 4)
            return 1 + _SIZES[detail]
        width, count, at_offsets, start = self.frame(at)
        return start - at + _number(self.data, at_offsets + width * count, width)

    def frame(self, at: int) -> tuple[int, int, int, int]:
        """Of an object or array: the offsets' width, the count, where offsets and where values start."""
        header = self.data[at] >> 2
        width = (header & 3) + 1
        is_object = self.data[at] & 3 == 2
        large = header >> 4 & 1 if is_object else header >> 2 & 1
        count_width = 4 if large else 1
        count = _number(self.data, at + 1, count_width)
        if count > len(self.data):
            raise _damaged(f"it claims {count} elements")
        ids = ((header >> 2 & 3) + 1) * count if is_object else 0
        offsets = at + 1 + count_width + ids
        return width, count, offsets, offsets + width * (count + 1)

    def array_places(self, at: int) -> list[int]:
        width, count, offsets, start = self.frame(at)
        return [start + _number(self.data, offsets + width * index, width) for index in range(count)]

    def object_places(self, at: int) -> list[tuple[str, int]]:
        header = self.data[at] >> 2
        id_width = (header >> 2 & 3) + 1
        _, count, offsets, _ = self.frame(at)
        ids = offsets - id_width * count
        places = self.array_places(at)
        return [
            (self.names[_number(self.data, ids + id_width * index, id_width)], places[index])
            for index in range(count)
        ]

    def scalar(self, kind: int, at: int) -> Any:
        data = self.data
        match kind:
            case 0:
                return None
            case 1 | 2:
                return kind == 1
            case 3 | 4 | 5 | 6:
                return _signed(data, at, 1 << (kind - 3))
            case 7:
                return struct.unpack_from("<d", data, at)[0]
            case 8 | 9 | 10:
                scale = data[at]
                if scale > 38:
                    raise _damaged(f"a decimal has the scale {scale}")
                unscaled = _signed(data, at + 1, 4 << (kind - 8))
                return Decimal(unscaled).scaleb(-scale, WIDE)
            case 11:
                return (_EPOCH + dt.timedelta(days=_signed(data, at, 4))).date()
            case 12:
                return (_EPOCH + dt.timedelta(microseconds=_signed(data, at, 8))).replace(tzinfo=dt.UTC)
            case 13:
                return _EPOCH + dt.timedelta(microseconds=_signed(data, at, 8))
            case 14:
                return struct.unpack_from("<f", data, at)[0]
            case 15 | 16:
                length = _number(data, at, 4)
                content = _cut(data, at + 4, at + 4 + length)
                return content if kind == 15 else content.decode()
            case 17:
                return (_EPOCH + dt.timedelta(microseconds=_signed(data, at, 8))).time()
            case 18:
                moment = _EPOCH + dt.timedelta(microseconds=_signed(data, at, 8) // 1000)
                return moment.replace(tzinfo=dt.UTC)
            case 19:
                return _EPOCH + dt.timedelta(microseconds=_signed(data, at, 8) // 1000)
            case 20:
                return uuid.UUID(bytes=_cut(data, at, at + 16))
            case _:
                raise _damaged(f"{kind} is not a type that is known")


_SIZES = [0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, 0, 0, 8, 8, 8, 16]


def _pairs(offsets: list[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(offsets))


def _number(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(_cut(data, at, at + width), "little")


def _signed(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(_cut(data, at, at + width), "little", signed=True)


def _cut(data: bytes, start: int, end: int) -> bytes:
    if not 0 <= start <= end <= len(data):
        raise _damaged("it ends early")
    return data[start:end]


def _damaged(why: str) -> CorruptTableError:
    return CorruptTableError(f"A variant value cannot be read: {why}. The file was damaged or badly written.")
