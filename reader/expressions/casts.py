"""Casts as Spark makes them in ANSI mode: exact, or an error; never a silent null.

Times without a zone are taken as UTC, the reader's session zone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.data.partition_values import WIDE, digits, parse_clock, parse_date, parse_timestamp
from lakepass.reader.errors import FilterError
from lakepass.reader.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    FLOATING,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DecimalType,
    DeltaType,
    arrow_type,
)

_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def castable(old: DeltaType, new: DeltaType) -> bool:
    """Whether a cast from `old` to `new` is one that filters know."""
    if old in (new, VOID):
        return True
    if old == STRING:
        return new in (BOOLEAN, BINARY, *INTEGRAL, *FLOATING, *_TIMES) or isinstance(new, DecimalType)
    if new == STRING:
        return old in (BOOLEAN, BINARY, *INTEGRAL, *FLOATING, *_TIMES) or isinstance(old, DecimalType)
    if old in _TIMES:
        return new in _TIMES
    if new == TIMESTAMP:
        return old in INTEGRAL
    return _numeric(old) and _numeric(new)


def cast_array(array: Any, old: DeltaType, new: DeltaType) -> Any:
    """An Arrow array of `old` as `new`."""
    if old == new:
        return array
    target: Any = arrow_type(new)
    try:
        if old == VOID:
            return pa.nulls(len(array), target)
        if old == STRING:
            return _from_text(array, new, target)
        if new == STRING:
            return _to_text(array, old)
        if old in _TIMES:
            return _between_times(array, old, new, target)
        if new == TIMESTAMP:
            seconds = array.cast(pa.int64())
            return pc.multiply_checked(seconds, pa.scalar(1_000_000)).cast(target)
        return _between_numbers(array, old, new, target)
    except (pa.ArrowInvalid, ValueError, ArithmeticError) as error:
        raise FilterError(
            f"The filter casts {old} to {new}, and a value does not fit ({str(error)[:120]}). "
            "Compare with values of the column's own type, or leave such rows out with another condition."
        ) from None


def _numeric(delta: DeltaType) -> bool:
    return delta in (BOOLEAN, *INTEGRAL, *FLOATING) or isinstance(delta, DecimalType)


def _between_numbers(array: Any, old: DeltaType, new: DeltaType, target: pa.DataType) -> Any:
    if new == BOOLEAN:
        return pc.not_equal(array, pa.scalar(0).cast(arrow_type(old)))
    if old == BOOLEAN:
        return array.cast(pa.int8()).cast(target)
    if old in FLOATING or isinstance(old, DecimalType):
        if new in INTEGRAL:
            return pc.trunc(array).cast(target)
        if isinstance(new, DecimalType) and (old in FLOATING or new.scale < getattr(old, "scale", 0)):
            # Spark goes through the shortest text of a floating number; halves go away from zero, and what is
            # no number is null.
            return _each(
                array, lambda value: _rounded(value, new.scale) if math.isfinite(value) else None, target
            )
    if old in INTEGRAL and isinstance(new, DecimalType):
        return array.cast(pa.decimal128(38, new.scale) if new.scale <= 18 else target).cast(target)
    if isinstance(old, DecimalType) and new in FLOATING:
        # By way of text: Arrow's own cast does not give the nearest number, 0.7 becomes 0.7000000000000001.
        return array.cast(pa.string()).cast(target)
    # Large integers lose digits in a floating number; Spark lets them.
    return array.cast(target, safe=new not in FLOATING)


def _between_times(array: Any, old: DeltaType, new: DeltaType, target: pa.DataType) -> Any:
    if new == DATE:
        return pc.floor_temporal(array.cast(pa.timestamp("us")), unit="day").cast(target)
    if old == DATE:
        return array.cast(pa.timestamp("us")).cast(pa.int64()).cast(target)
    return array.cast(pa.int64()).cast(target)


def _from_text(array: Any, new: DeltaType, target: pa.DataType) -> Any:
    if new == BINARY:
        return array.cast(target)
    if new == BOOLEAN:
        return _each(array, _boolean, target)
    if new == DATE:
        return _each(array, lambda text: _date(text.strip()), pa.int32()).cast(target)
    if new == TIMESTAMP:
        return _each(array, lambda text: parse_timestamp(_whole(text.strip())), pa.int64()).cast(target)
    if new == TIMESTAMP_NTZ:
        # A zone is passed over: what the clock shows is the value.
        return _each(array, lambda text: parse_clock(_whole(text.strip()))[0], pa.int64()).cast(target)
    if isinstance(new, DecimalType):
        return _each(array, lambda text: _rounded(Decimal(digits(text)), new.scale), target)
    if new in FLOATING:
        return _each(array, _floating, target)
    return _each(array, lambda text: int(digits(text)), target)


def _to_text(array: Any, old: DeltaType) -> Any:
    if isinstance(old, DecimalType):
        return _each(array, lambda value: format(value, "f"), pa.string())
    if old in FLOATING:
        kind = np.float32 if old == FLOAT else np.float64
        return _each(array, lambda value: _java_text(kind(value)), pa.string())
    if old in (TIMESTAMP, TIMESTAMP_NTZ):
        text = pc.strftime(array.cast(pa.timestamp("us")), "%Y-%m-%d %H:%M:%S")
        return pc.replace_substring_regex(text, r"\.?0+$", "") if len(text) else text
    return array.cast(pa.string())


def _java_text(value: Any) -> str:
    """A floating number as Java writes it: `1.5`, `1.0E10`, `NaN`.

    >>> [_java_text(np.float64(each)) for each in (1.5, 1e10, 0.0001, -0.0, 100.0)]
    ['1.5', '1.0E10', '1.0E-4', '-0.0', '100.0']
    """
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign = "-" if np.signbit(value) else ""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return sign + np.format_float_positional(abs(value), unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(abs(value), unique=True, trim="0").split("e")
    return f"{sign}{mantissa}E{int(exponent)}"


def _each(array: Any, convert: Callable[[Any], Any], target: pa.DataType) -> Any:
    """Converts every distinct value once."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    encoded = array.dictionary_encode()
    values = pa.array([convert(each) for each in encoded.dictionary.to_pylist()], target)
    return values.take(encoded.indices)


def _rounded(value: Any, scale: int) -> Decimal:
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    return exact.quantize(Decimal(1).scaleb(-scale), rounding="ROUND_HALF_UP", context=WIDE)


def _floating(text: str) -> float:
    stripped = digits(text)
    try:
        return float(stripped)
    except ValueError:
        # Java lets a number end with the letter of its type.
        if stripped[-1:] in "dDfF" and stripped[-2:-1].isdigit():
            return float(stripped[:-1])
        raise


def _boolean(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in _TRUE | _FALSE:
        raise ValueError(f"{text[:40]!r} is not a boolean")
    return folded in _TRUE


def _date(text: str) -> int:
    return parse_date(_whole(text.replace("T", " ").split(" ")[0]))


def _whole(text: str) -> str:
    """The text of a date or a timestamp with month and day, which may be left out."""
    head, separator, rest = text.partition("T" if "T" in text else " ")
    parts = head.count("-") - head.startswith("-")
    whole = head + "-01" * (2 - parts) if parts < 2 else head
    return whole + separator + rest
