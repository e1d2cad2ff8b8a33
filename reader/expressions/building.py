"""Builds nodes with the casts that Spark would put between sides of different types.

Spark's rules in ANSI mode: of two numbers the wider type decides; a text beside something else becomes that;
a date beside a timestamp becomes a timestamp. What Spark refuses is refused here, naming both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from lakepass.reader.errors import FilterError
from lakepass.reader.expressions.casts import cast_array, castable
from lakepass.reader.expressions.tree import (
    And,
    Answer,
    Cast,
    Column,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
    Value,
    like_regex,
)
from lakepass.reader.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOATING,
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
    StructType,
    arrow_type,
)

_DIGITS = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 20}
NULL = Literal(pa.nulls(1)[0], VOID)


def compare(operator: str, left: Value, right: Value) -> Predicate:
    """`left operator right`; `<>` and `is distinct from` (`<!>`) are the opposites of `=` and `<=>`."""
    if operator in ("<>", "<!>"):
        return Not(compare("=" if operator == "<>" else "<=>", left, right))
    left, right = _same_type(left, right)
    return Comparison(operator, left, right)


def is_in(child: Value, values: Sequence[Literal]) -> Predicate:
    """`child in (values)`; a null among them makes what is not found unknown."""
    known = [each for each in values if each.type != VOID and each.scalar.is_valid]
    has_null = len(known) < len(values)
    if not known:
        return compare("=", child, NULL)
    shared = reduce(_common, (each.type for each in known), child.type)
    cast = to_type(child, shared)
    _refuse_collation(cast)
    scalars = [
        each.scalar for each in (to_type(value, shared) for value in known) if isinstance(each, Literal)
    ]
    return In(cast, pa.concat_arrays([_array(each) for each in scalars]), has_null)


def like(child: Value, pattern: Value, escape: str = "\\", *, fold: bool = False) -> Predicate:
    """`child like pattern`; with `fold`, letter case does not count."""
    if not isinstance(pattern, Literal) or pattern.type not in (STRING, VOID):
        raise FilterError("The pattern of LIKE must be a text constant.")
    text = to_type(child, STRING)
    _refuse_collation(text)
    if not pattern.scalar.is_valid:
        return compare("=", text, NULL)
    if len(escape) != 1:
        raise FilterError(f"ESCAPE takes one character, not {escape!r}.")
    try:
        regex, prefix = like_regex(pattern.scalar.as_py(), escape)
    except ValueError:
        raise FilterError(
            f"The pattern {pattern.scalar.as_py()!r} of LIKE has an escape character {escape!r} before "
            "something that is not %, _ or the escape character itself."
        ) from None
    return Like(text, f"(?i){regex}" if fold else regex, "" if fold else prefix)


def is_null(child: Value) -> Predicate:
    """`child is null`."""
    return IsNull(child)


def all_of(parts: Sequence[Predicate]) -> Predicate:
    """Every one of the parts."""
    return reduce(And, parts)


def any_of(parts: Sequence[Predicate]) -> Predicate:
    """At least one of the parts."""
    return reduce(Or, parts)


def condition(value: Value | Predicate) -> Predicate:
    """A value where a condition stands: it must be boolean."""
    if isinstance(value, Answer):
        return value.condition
    if not isinstance(value, Value):
        return value
    if value.type not in (BOOLEAN, VOID):
        raise FilterError(f"A condition is true or false, but {_shown(value)} is a {str(value.type)[:60]}.")
    return Truth(to_type(value, BOOLEAN))


def literal(value: Any, delta: DeltaType) -> Literal:
    """A constant of the given type."""
    try:
        return Literal(pa.scalar(value, arrow_type(delta)), delta)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise FilterError(f"{value!r} is not a {delta} ({str(error)[:100]}).") from None


def to_type(value: Value, delta: DeltaType) -> Value:
    """A value as another type; constants are converted at once."""
    if value.type == delta:
        return value
    if not castable(value.type, delta):
        raise FilterError(f"{_shown(value)} is of type {str(value.type)[:60]} and cannot become {delta}.")
    if isinstance(value, Literal):
        return Literal(cast_array(_array(value.scalar), value.type, delta)[0], delta)
    return Cast(value, delta)


def _same_type(left: Value, right: Value) -> tuple[Value, Value]:
    for side in (left, right):
        if isinstance(side.type, StructType | ArrayType | MapType) or side.type == VARIANT:
            raise FilterError(
                f"{_shown(side)} is of type {str(side.type)[:60]}, which cannot be compared. "
                "Name one of its fields, or ask whether it is null."
            )
        _refuse_collation(side)
    try:
        shared = _common(left.type, right.type)
    except FilterError:
        raise FilterError(
            f"{_shown(left)} ({left.type}) and {_shown(right)} ({right.type}) cannot be compared; "
            "cast one of them."
        ) from None
    return to_type(left, shared), to_type(right, shared)


def _common(left: DeltaType, right: DeltaType) -> DeltaType:
    if left == right == VOID:
        # Nothing is compared with nothing: any type will do.
        return BOOLEAN
    if right in (left, VOID):
        return left
    if left == VOID:
        return right
    for one, other in ((left, right), (right, left)):
        if one == STRING:
            if other in INTEGRAL:
                return LONG
            if other in FLOATING or isinstance(other, DecimalType):
                return DOUBLE
            if other in (BOOLEAN, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ):
                return other
        if one == TIMESTAMP and other in (DATE, TIMESTAMP_NTZ):
            return TIMESTAMP
        if one == TIMESTAMP_NTZ and other == DATE:
            return TIMESTAMP_NTZ
        if one in FLOATING and (other in (*INTEGRAL, *FLOATING) or isinstance(other, DecimalType)):
            return DOUBLE
    if left in INTEGRAL and right in INTEGRAL:
        return max(left, right, key=INTEGRAL.index)
    exact = [DecimalType(_DIGITS[each], 0) if each in _DIGITS else each for each in (left, right)]
    if all(isinstance(each, DecimalType) for each in exact):
        return _wider(*exact)
    raise FilterError(f"{left} and {right} cannot be compared.")


def _wider(left: Any, right: Any) -> DecimalType:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale <= 38:
        return DecimalType(whole + scale, scale)
    # More digits than there are: those before the point are kept.
    return DecimalType(38, max(38 - whole, 0))


def _refuse_collation(value: Value) -> None:
    inner: Value | None = value
    while isinstance(inner, Cast):
        inner = inner.child
    if isinstance(inner, Column) and inner.fields[-1].collation:
        raise FilterError(
            f"{inner} has the collation {inner.fields[-1].collation}, whose order and equality this reader "
            "does not know. Read the column without a filter on it and compare afterwards."
        )


def _array(scalar: Any) -> Any:
    # pa.array([scalar]) loses values that Python's own dates cannot hold.
    return pa.repeat(scalar, 1)


def _shown(value: Value) -> str:
    match value:
        case Column():
            return str(value)
        case Literal(scalar):
            return repr(scalar.as_py()) if scalar.is_valid else "NULL"
        case Cast(child, delta):
            return f"cast({_shown(child)} as {delta})"
        case Answer():
            return "a condition"
