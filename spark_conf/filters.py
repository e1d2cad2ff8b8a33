"""Filters that Spark hands to the data source, as SQL text for the reader's scan.

The scan uses them to skip files and rows; Spark applies every one of them again, so a filter that is not
translated costs time and nothing else. Floating point is left to Spark, whose order of NaN differs from
that in statistics, and so is text that would need escaping.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from pyspark.sql import datasource as pushed

_COMPARISONS: tuple[tuple[type[Any], str], ...] = (
    (pushed.EqualTo, "="),
    (pushed.EqualNullSafe, "<=>"),
    (pushed.GreaterThan, ">"),
    (pushed.GreaterThanOrEqual, ">="),
    (pushed.LessThan, "<"),
    (pushed.LessThanOrEqual, "<="),
)


def filter_text(filters: Iterable[pushed.Filter]) -> str | None:
    """What the reader is to filter by: all the filters that can be said, or None."""
    found = [text for text in map(_said, filters) if text is not None]
    return " AND ".join(f"({text})" for text in found) or None


def _said(one: pushed.Filter) -> str | None:
    if isinstance(one, pushed.Not):
        inner = _said(one.child)
        return None if inner is None else f"NOT ({inner})"
    if isinstance(one, pushed.IsNull):
        return f"{_column(one.attribute)} IS NULL"
    if isinstance(one, pushed.IsNotNull):
        return f"{_column(one.attribute)} IS NOT NULL"
    if isinstance(one, pushed.In):
        values = [_literal(value) for value in one.value]
        said = [value for value in values if value is not None]
        if not said or len(said) < len(values):
            return None
        return f"{_column(one.attribute)} IN ({', '.join(said)})"
    for kind, operator in _COMPARISONS:
        if isinstance(one, kind):
            value = _literal(one.value)
            return None if value is None else f"{_column(one.attribute)} {operator} {value}"
    return None


def _column(path: tuple[str, ...]) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def _literal(value: Any) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            plain = "'" not in value and "\\" not in value and value.isprintable()
            return f"'{value}'" if plain else None
        case Decimal() if value.is_finite():
            digits = value.as_tuple()
            scale = max(-int(digits.exponent), 0)
            return f"CAST('{value:f}' AS DECIMAL({max(len(digits.digits), scale, 1)}, {scale}))"
        case dt.datetime():
            kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{kind} '{value.isoformat(' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return None
