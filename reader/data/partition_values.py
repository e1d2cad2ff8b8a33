"""Partition values: text in the log, typed values in the rows.

Carries out "Partition Value Serialization". An empty text is null for every type. A timestamp is either plain
(`1970-01-01 00:00:00.123456`, taken as UTC) or ISO 8601 with its zone (`1970-01-01T00:00:00.123456Z`).
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.errors import CorruptTableError
from lakepass.reader.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOATING,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    DeltaType,
    arrow_type,
)

_DATE = re.compile(r"([+-]?\d{1,6})-(\d{1,2})-(\d{1,2})")
_TIMESTAMP = re.compile(
    r"([+-]?\d{1,6}-\d{1,2}-\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?)?"
)
_DAY_US = 86_400_000_000
_FARTHEST_US = (1 << 63) - 1

WIDE = Context(prec=76)
"""Python's own 28 digits are fewer than the 38 of a decimal column."""


def parse_array(texts: pa.StringArray, delta: DeltaType, column: str) -> pa.Array[Any]:
    """The values of one partition column for many files at once.

    >>> parse_array(pa.array(["7", "", None]), INTEGRAL[2], "n").to_pylist()
    [7, None, None]
    """
    texts = pc.if_else(pc.equal(texts, pa.scalar("")), pa.scalar(None, pa.string()), texts)
    if delta == STRING:
        return texts
    # Few distinct values stand for many files, and only Python knows every form of a timestamp.
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    values = pa.array([parse_value(each, delta, column) for each in distinct], _carrier(delta))
    return values.cast(arrow_type(delta)).take(encoded.indices)


def parse_value(text: str | None, delta: DeltaType, column: str) -> Any:
    """One partition value; dates and timestamps as days and microseconds, which have no narrow range.

    >>> parse_value("1970-01-02", DATE, "day"), parse_value("1970-01-01T00:00:01Z", TIMESTAMP, "at")
    (1, 1000000)
    """
    if text is None or text == "":
        return None
    try:
        value = _parse(text, delta)
        if delta in (TIMESTAMP, TIMESTAMP_NTZ) and not -_FARTHEST_US <= value <= _FARTHEST_US:
            raise ValueError(text)
        return value
    except (ValueError, ArithmeticError, InvalidOperation):
        raise CorruptTableError(
            f"The log gives {text[:80]!r} as the value of the partition column {column!r}, which is not a "
            f"{delta}. The add action is damaged; rewrite the file with a writer that follows the protocol."
        ) from None


def parse_date(text: str) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, for years beyond Python's too.

    >>> parse_date("1970-01-02"), parse_date("-0001-01-01") < parse_date("0001-01-01")
    (1, True)
    """
    match = _DATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    # The calendar repeats every 400 years, of 146,097 days.
    cycles, within = divmod(year - 1, 400)
    return dt.date(within + 1, month, day).toordinal() - 719163 + cycles * 146097


def parse_timestamp(text: str) -> int:
    """Microseconds since the epoch. Without a zone in the text it is UTC.

    >>> parse_timestamp("1970-01-01 00:00:00.000001"), parse_timestamp("1970-01-01T01:00:00+01:00")
    (1, 0)
    """
    clock, offset = parse_clock(text)
    return clock - offset


def parse_clock(text: str) -> tuple[int, int]:
    """What a clock shows, as microseconds since the epoch, and how far it is ahead of UTC.

    >>> parse_clock("1970-01-01T01:00:00+01:00")
    (3600000000, 3600000000)
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    days = parse_date(match[1])
    hour, minute, second = int(match[2] or 0), int(match[3] or 0), int(match[4] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    micros = int((match[5] or "").ljust(6, "0")[:6])
    total = days * _DAY_US + (hour * 3600 + minute * 60 + second) * 1_000_000 + micros
    zone = match[6]
    if not zone or zone[0] not in "+-":
        return total, 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return total, (minutes if zone[0] == "+" else -minutes) * 60_000_000


def digits(text: str) -> str:
    """The text of a number without what Python would let pass: `1_000`, digits of other scripts.

    >>> digits(" 1.5 ")
    '1.5'
    """
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return text.strip()


def _carrier(delta: DeltaType) -> pa.DataType:
    if delta == DATE:
        return pa.int32()
    return pa.int64() if delta in (TIMESTAMP, TIMESTAMP_NTZ) else arrow_type(delta)


def _parse(text: str, delta: DeltaType) -> Any:
    if delta == STRING:
        return text
    if delta == BINARY:
        return text.encode()
    if delta == BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if delta in INTEGRAL:
        number = int(digits(text))
        width = arrow_type(delta).bit_width
        if not -(1 << (width - 1)) <= number < 1 << (width - 1):
            raise ValueError(text)
        return number
    if delta in FLOATING:
        return float(digits(text))
    if isinstance(delta, DecimalType):
        exact = Decimal(digits(text))
        if not exact.is_finite():
            raise ValueError(text)
        rounded = exact.quantize(Decimal(1).scaleb(-delta.scale), context=WIDE)
        if rounded != exact or len(rounded.as_tuple().digits) > max(delta.precision, delta.scale):
            raise ValueError(text)
        return rounded
    if delta == DATE:
        return parse_date(text)
    if delta == TIMESTAMP:
        return parse_timestamp(text)
    if delta == TIMESTAMP_NTZ:
        clock, offset = parse_clock(text)
        # UTC behind a time that has no zone says nothing else; another zone would.
        if offset:
            raise ValueError(text)
        return clock
    raise ValueError(text)
