"""Writes variant values: what is needed to put a shredded column together again.

The counterpart of `variant`, for Parquet's variant encoding. Integers keep the width they were shredded with,
so that the value is the one the writer had.
"""

from __future__ import annotations

import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakepass.reader.data.partition_values import WIDE
from lakepass.reader.errors import UnsupportedTableError


def encode_scalar(value: Any, kind: pa.DataType) -> bytes:
    """One primitive value of the Arrow type `kind`; dates and times come as integers.

    >>> encode_scalar(7, pa.int8()).hex(), encode_scalar("a", pa.string()).hex()
    ('0c07', '0561')
    """
    types = pa.types
    if types.is_boolean(kind):
        return bytes([(1 if value else 2) << 2])
    if types.is_signed_integer(kind):
        width = kind.bit_width // 8
        return bytes([(2 + width.bit_length()) << 2]) + int(value).to_bytes(width, "little", signed=True)
    if types.is_float64(kind):
        return bytes([7 << 2]) + struct.pack("<d", value)
    if types.is_float32(kind):
        return bytes([14 << 2]) + struct.pack("<f", value)
    if types.is_decimal(kind):
        return _decimal(value, kind.precision, kind.scale)
    if types.is_string(kind) or types.is_large_string(kind):
        return _text(value)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return bytes([15 << 2]) + struct.pack("<I", len(value)) + bytes(value)
    if types.is_date32(kind):
        return bytes([11 << 2]) + struct.pack("<i", value)
    if types.is_timestamp(kind):
        nanos = kind.unit == "ns"
        code = (18 if kind.tz else 19) if nanos else (12 if kind.tz else 13)
        return bytes([code << 2]) + struct.pack("<q", value)
    if types.is_time64(kind):
        return bytes([17 << 2]) + struct.pack("<q", value)
    if types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return bytes([20 << 2]) + (value.bytes if isinstance(value, uuid.UUID) else bytes(value))
    raise UnsupportedTableError(f"A variant column is shredded as {kind}, which the variant encoding lacks.")


def encode_array(elements: list[bytes]) -> bytes:
    """An array of encoded values.

    >>> encode_array([b"\\x0c\\x01", b"\\x0c\\x02"]).hex()
    '03020002040c010c02'
    """
    return _frame(elements, b"", 3)


def encode_object(fields: dict[int, bytes]) -> bytes:
    """An object from name ids to encoded values, in the order of the names that the ids stand for."""
    width = _width(max(fields, default=0))
    ids = b"".join(number.to_bytes(width, "little") for number in fields)
    return _frame(list(fields.values()), ids, 2, width)


def _frame(values: list[bytes], ids: bytes, kind: int, id_width: int = 1) -> bytes:
    total = sum(map(len, values))
    width = _width(total)
    large = len(values) > 255
    header = (width - 1) | ((id_width - 1) << 2 | large << 4 if kind == 2 else large << 2)
    out = bytearray([header << 2 | kind])
    out += len(values).to_bytes(4 if large else 1, "little") + ids
    at = 0
    for each in values:
        out += at.to_bytes(width, "little")
        at += len(each)
    out += at.to_bytes(width, "little")
    for each in values:
        out += each
    return bytes(out)


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _text(value: str) -> bytes:
    raw = value.encode()
    if len(raw) < 64:
        return bytes([len(raw) << 2 | 1]) + raw
    return bytes([16 << 2]) + struct.pack("<I", len(raw)) + raw


def _decimal(value: Decimal, precision: int, scale: int) -> bytes:
    unscaled = int(value.scaleb(scale, WIDE))
    code, width = (8, 4) if precision <= 9 else (9, 8) if precision <= 18 else (10, 16)
    return bytes([code << 2, scale]) + unscaled.to_bytes(width, "little", signed=True)
