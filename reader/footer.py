"""What a Parquet file's footer says about the parts of its columns: where they lie, how large, within which
bounds.

A footer is data from outside, and pyarrow's own objects for a column's part end the whole process when it
contradicts itself (an exception of C++ that nothing catches). So pyarrow is asked about the file as a whole
only, and the rest is read here from the same bytes, in Thrift's compact protocol.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pyarrow.parquet as pq

_PLAIN = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}

# Fields by their numbers in parquet.thrift.
_ROW_GROUPS, _COLUMN_ORDERS = 4, 7
_COLUMNS = 1
_META_DATA = 3
_UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE, _STATISTICS = 6, 7, 9, 11, 12
_OLD_MAX, _OLD_MIN, _NULL_COUNT, _MAX, _MIN = 1, 2, 3, 5, 6

# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    1,
    2,
    3,
    4,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
)


class FooterError(ValueError):
    """The footer contradicts itself."""


class Chunk(NamedTuple):
    """One column in one row group."""

    begin: int
    compressed: int
    uncompressed: int
    has_dictionary: bool
    null_count: int | None
    low: Any
    """As Parquet stores it: a number, bytes; None when it is not told."""
    high: Any


class Footer:
    """The column chunks of a file; raises `FooterError` where they make no sense."""

    def __init__(self, file: Any, metadata: pq.FileMetaData) -> None:
        """Of an open Parquet file, whose `metadata` pyarrow has read."""
        self._leaves = metadata.schema
        end = file.size() - 8
        file.seek(end)
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(end - length, 0))
        try:
            self._fields = _Compact(file.read(length)).struct()
        except (IndexError, RecursionError):
            raise FooterError("its footer cannot be read") from None

    def chunk(self, group: int, leaf: int) -> Chunk:
        """The part of a column (counted as `metadata.schema` does) in a row group."""
        try:
            return self._chunk(group, leaf)
        except (LookupError, TypeError, AttributeError):
            raise FooterError(f"it does not describe the column {self._leaves.column(leaf).path}") from None

    def _chunk(self, group: int, leaf: int) -> Chunk:
        told = self._fields[_ROW_GROUPS][group][_COLUMNS][leaf][_META_DATA]
        begin, dictionary = told[_DATA_PAGE], told.get(_DICTIONARY_PAGE)
        compressed, uncompressed = told[_COMPRESSED], told[_UNCOMPRESSED]
        if min(begin, compressed, uncompressed) < 0:
            raise FooterError(f"the column {self._leaves.column(leaf).path} has a negative size or place")
        if dictionary:
            begin = min(begin, dictionary)
        statistics = told.get(_STATISTICS, {})
        low, high = self._bounds(statistics, self._leaves.column(leaf).physical_type)
        nulls = statistics.get(_NULL_COUNT)
        if not isinstance(nulls, int | None):
            nulls = None
        return Chunk(begin, compressed, uncompressed, dictionary is not None, nulls, low, high)

    def _bounds(self, statistics: dict[int, Any], kind: str) -> tuple[Any, Any]:
        low, high = statistics.get(_MIN), statistics.get(_MAX)
        if (low is None or high is None or _COLUMN_ORDERS not in self._fields) and kind in _PLAIN:
            # What old writers put here was ordered by signed numbers, which is right for numbers only.
            low, high = statistics.get(_OLD_MIN, low), statistics.get(_OLD_MAX, high)
        elif _COLUMN_ORDERS not in self._fields:
            return None, None
        if not isinstance(low, bytes) or not isinstance(high, bytes):
            return None, None
        if kind == "BYTE_ARRAY":
            return low, high
        form = _PLAIN.get(kind)
        if form is None or len(low) != struct.calcsize(form) or len(high) != struct.calcsize(form):
            return None, None
        (lowest,), (highest,) = struct.unpack(form, low), struct.unpack(form, high)
        # Neither is above the other when one is not a number.
        return (lowest, highest) if lowest <= highest else (None, None)


class _Compact:
    """Reads Thrift's compact protocol; structs become dictionaries by field number."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        data, at = self._data, self._at
        while head := data[at]:
            at += 1
            kind = head & 15
            if head > 15:
                number += head >> 4
            else:
                self._at = at
                number = self._integer()
                at = self._at
            if kind <= _FALSE:
                fields[number] = kind == _TRUE
            elif _I16 <= kind <= _I64 and (byte := data[at]) < 0x80:
                # Most numbers are this short, and there are many.
                fields[number] = (byte >> 1) ^ -(byte & 1)
                at += 1
            else:
                self._at = at
                fields[number] = self._value(kind)
                at = self._at
        self._at = at + 1
        return fields

    def _value(self, kind: int) -> Any:
        if _I16 <= kind <= _I64:
            return self._integer()
        if kind == _BINARY:
            length = self._varint()
            self._at += length
            return self._data[self._at - length : self._at]
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            head = self._data[self._at]
            self._at += 1
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15) for _ in range(count)]
        if kind in (_TRUE, _FALSE, _BYTE):
            self._at += 1
            return self._data[self._at - 1]
        if kind == _DOUBLE:
            self._at += 8
            return self._data[self._at - 8 : self._at]
        if kind == _MAP:
            count = self._varint()
            if not count:
                return {}
            kinds = self._data[self._at]
            self._at += 1
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(count)]
        raise FooterError("its footer cannot be read")

    def _integer(self) -> int:
        folded = self._varint()
        return (folded >> 1) ^ -(folded & 1)

    def _varint(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        if byte < 0x80:
            return byte
        value, shift = byte & 0x7F, 7
        while shift < 70:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise FooterError("its footer holds a number of more than 64 bits")
