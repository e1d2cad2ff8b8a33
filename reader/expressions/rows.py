"""Evaluates a filter on rows, in three-valued logic, as Spark does.

Beside null there is one more rule that Arrow does not have: NaN equals NaN and is greater than every other
number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.expressions.casts import cast_array
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
    type_of,
)
from lakepass.reader.types import FLOATING

Rows: TypeAlias = Any
"""An Arrow array with a value for each row, or a scalar for all of them."""

# Not `pa.scalar`: it loads pandas where that is installed, which importing this module should not.
_UNKNOWN: Any = pa.nulls(1, pa.bool_())[0]
_COMPUTE: dict[str, Callable[..., Any]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def evaluate(node: Predicate, column: Callable[[Column], Rows]) -> Rows:
    """True, false or null for each row; `column` gives the values of a column."""
    match node:
        case And(left, right):
            return pc.and_kleene(evaluate(left, column), evaluate(right, column))
        case Or(left, right):
            return pc.or_kleene(evaluate(left, column), evaluate(right, column))
        case Not(child):
            return pc.invert(evaluate(child, column))
        case IsNull(child):
            return pc.is_null(_value(child, column))
        case Truth(value):
            return _value(value, column)
        case Comparison(operator, left, right):
            floating = type_of(left) in FLOATING
            return _compare(operator, _value(left, column), _value(right, column), floating)
        case In(child, values, has_null):
            return _is_in(_value(child, column), values, has_null, type_of(child) in FLOATING)
        case Like(child, regex):
            return pc.match_substring_regex(_value(child, column), pattern=regex)


def _value(node: Value, column: Callable[[Column], Rows]) -> Rows:
    match node:
        case Column():
            return column(node)
        case Literal(scalar):
            return scalar
        case Answer(condition):
            return evaluate(condition, column)
        case Cast(child, delta):
            inner = _value(child, column)
            if isinstance(inner, pa.Scalar):
                return cast_array(_array(inner), child.type, delta)[0]
            return cast_array(inner, child.type, delta)


def _array(scalar: Any) -> Any:
    return pa.repeat(scalar, 1)


def _compare(operator: str, left: Rows, right: Rows, floating: bool) -> Rows:
    if operator == "<=>":
        both = pc.and_(pc.is_null(left), pc.is_null(right))
        equal = pc.fill_null(_compare("=", left, right, floating), False)
        return pc.or_(both, equal)
    if operator in ("<", "<="):
        # One direction is enough, and the rule for NaN is written once.
        return _compare({"<": ">", "<=": ">="}[operator], right, left, floating)
    plain = _COMPUTE[operator](left, right)
    if not floating:
        return plain
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if operator == "=":
        return pc.or_(plain, pc.and_(left_nan, right_nan))
    if operator == ">":
        return pc.or_(plain, pc.and_(left_nan, pc.invert(right_nan)))
    return pc.or_(plain, left_nan)


def _is_in(child: Rows, values: Any, has_null: bool, floating: bool) -> Rows:
    if isinstance(child, pa.Scalar):
        return _is_in(_array(child), values, has_null, floating)[0]
    found: Any = pc.is_in(child, value_set=values)
    if floating:
        # Arrow tells the two zeros apart, and one NaN from another.
        zero: Any = pa.scalar(0.0, child.type)
        if pc.any(pc.equal(values, zero)).as_py():
            found = pc.or_(found, pc.fill_null(pc.equal(child, zero), False))
        if pc.any(pc.is_nan(values)).as_py():
            nan: Any = pc.is_nan(child)
            found = pc.or_(found, pc.fill_null(nan, False))
    if has_null:
        return pc.if_else(found, found, _UNKNOWN)
    return pc.if_else(pc.is_valid(child), found, _UNKNOWN) if child.null_count else found
