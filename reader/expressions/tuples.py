"""Filters as tuples, the form that deltalake's and pyarrow's users know.

`[("a", ">", 3), ("b", "in", [1, 2])]` means all of them; a list of such lists means any of those.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from lakepass.reader.errors import FilterError
from lakepass.reader.expressions import building
from lakepass.reader.expressions.names import find
from lakepass.reader.expressions.tree import Literal, Not, Predicate
from lakepass.reader.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    StructType,
)

FilterTuple: TypeAlias = tuple[str, str, Any]
FilterTuples: TypeAlias = Sequence[FilterTuple] | Sequence[Sequence[FilterTuple]]

_OPERATORS = {"=": "=", "==": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def parse_tuples(filters: FilterTuples, table: StructType) -> Predicate | None:
    """The filter that the tuples say about rows of `table`; None when there are none.

    >>> from lakepass.reader.types import StructField
    >>> parse_tuples([("id", ">", 3)], StructType((StructField("id", LONG),))).operator
    '>'
    """
    if len(filters) == 0:
        return None
    if all(isinstance(each, list) for each in filters):
        return building.any_of([_conjunction(each, table) for each in filters])
    return _conjunction(filters, table)


def _conjunction(parts: Sequence[Any], table: StructType) -> Predicate:
    if not parts:
        raise FilterError("An empty list among the lists of a filter says nothing; leave it out.")
    return building.all_of([_term(each, table) for each in parts])


def _term(part: Any, table: StructType) -> Predicate:
    if not isinstance(part, tuple) or len(part) != 3 or not isinstance(part[1], str):
        raise FilterError(f"A filter's tuple is (column, operator, value), not {part!r}.")
    name, operator, value = part
    column = find(name, table)
    folded = " ".join(operator.lower().split())
    if folded in ("in", "not in"):
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise FilterError(f"{operator!r} takes a list of values, not {value!r}.")
        values = [constant(each) for each in value]
        if not values:
            raise FilterError(f"{operator!r} takes at least one value.")
        found = building.is_in(column, values)
        return found if folded == "in" else Not(found)
    known = _OPERATORS.get(folded)
    if known is None:
        raise FilterError(
            f"{operator!r} is not an operator; known are {', '.join(_OPERATORS)}, in and not in."
        )
    if value is None:
        raise FilterError(
            f'{part!r} compares with None, which is never true in SQL. Use the text form: "{column} is null".'
        )
    return building.compare(known, column, constant(value))


def constant(value: Any) -> Literal:
    """A Python value as a constant.

    >>> constant(3).type
    PrimitiveType(name='integer')
    """
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    match value:
        case None:
            return building.NULL
        case bool():
            return building.literal(value, BOOLEAN)
        case int():
            if -(1 << 31) <= value < 1 << 31:
                return building.literal(value, INTEGER)
            exact = -(1 << 63) <= value < 1 << 63
            return building.literal(value, LONG) if exact else constant(Decimal(value))
        case float():
            return building.literal(value, DOUBLE)
        case Decimal():
            scale = max(-int(value.as_tuple().exponent), 0) if value.is_finite() else 99
            precision = max(len(value.as_tuple().digits), scale, 1)
            if precision > 38:
                raise FilterError(f"{value!r} has more than 38 digits.")
            return building.literal(value, DecimalType(precision, scale))
        case str():
            return building.literal(value, STRING)
        case bytes():
            return building.literal(value, BINARY)
        case dt.datetime():
            return building.literal(value, TIMESTAMP if value.tzinfo else TIMESTAMP_NTZ)
        case dt.date():
            return building.literal(value, DATE)
        case _:
            raise FilterError(f"A filter cannot compare with {value!r} of type {type(value).__name__}.")
