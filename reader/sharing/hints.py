"""A filter as the hints a server understands: SQL conditions and the JSON form.

The protocol's "SQL Expressions for Filtering" and "JSON predicates for Filtering". A hint may only leave
files out that cannot hold a matching row, and servers differ in what they understand. So a hint is never
stricter than the filter: a condition that cannot be said exactly is left out, and rows are always filtered
here as well.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import orjson

from lakepass.reader.expressions.tree import (
    And,
    Column,
    Comparison,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
    Value,
)
from lakepass.reader.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    DeltaType,
)

_JSON_TYPES: dict[DeltaType, str] = {
    BOOLEAN: "bool", BYTE: "int", SHORT: "int", INTEGER: "int", LONG: "long", STRING: "string", DATE: "date",
    FLOAT: "float", DOUBLE: "double",
}  # fmt: skip
_JSON_OPERATORS = {
    "=": "equal", "<": "lessThan", "<=": "lessThanOrEqual", ">": "greaterThan", ">=": "greaterThanOrEqual",
}  # fmt: skip
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MOST_VALUES = 100


def hints(filter: Predicate | None, partition_columns: Collection[str]) -> dict[str, Any]:
    """The fields of a query body that say what rows are wanted."""
    if filter is None:
        return {}
    parts = list(_conjuncts(filter))
    body: dict[str, Any] = {}
    sql = [text for part in parts if (text := _sql(part, partition_columns)) is not None]
    if sql:
        body["predicateHints"] = sql
    # A server that knows only partition columns drops the whole JSON hint at the sight of another.
    forms = [(_json(part), part) for part in parts]
    said = [(form, part) for form, part in forms if form is not None]
    on_partitions = [form for form, part in said if _names(part) <= set(partition_columns)]
    chosen = on_partitions or [form for form, _ in said]
    if chosen:
        tree = chosen[0] if len(chosen) == 1 else {"op": "and", "children": chosen}
        body["jsonPredicateHints"] = orjson.dumps(tree).decode()
    return body


def _conjuncts(node: Predicate) -> Iterator[Predicate]:
    match _plain(node):
        case And(left, right):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case other:
            yield other


def _plain(node: Predicate) -> Predicate:
    """`node` with `not` moved inwards as far as it keeps its meaning in three-valued logic."""
    match node:
        case Not(Not(child)):
            return _plain(child)
        case Not(And(left, right)):
            return Or(_plain(Not(left)), _plain(Not(right)))
        case Not(Or(left, right)):
            return And(_plain(Not(left)), _plain(Not(right)))
        case Not(Comparison(operator, left, right)) if operator in _OPPOSITE and not _floating(left):
            # Not for floating point: Delta orders NaN above all, and a server may not.
            return Comparison(_OPPOSITE[operator], left, right)
        case _:
            return node


def _floating(value: Value) -> bool:
    return value.type in (FLOAT, DOUBLE)


def _names(node: Predicate) -> set[str]:
    match node:
        case Comparison(_, left, right):
            return {each.path[0] for each in (left, right) if isinstance(each, Column)}
        case And(left, right) | Or(left, right):
            return _names(left) | _names(right)
        case Not(child):
            return _names(child)
        case In(child=child) | IsNull(child) | Truth(child):
            return {child.path[0]} if isinstance(child, Column) else set()
        case _:
            return set()


def _sides(node: Comparison) -> tuple[Column, str, Literal] | None:
    """A comparison as column, operator, constant; None when it is something else."""
    left, operator, right = node.left, node.operator, node.right
    if isinstance(left, Literal) and operator in _MIRRORED:
        left, operator, right = right, _MIRRORED[operator], left
    if not isinstance(left, Column) or len(left.path) != 1 or not isinstance(right, Literal):
        return None
    return (left, operator, right) if operator in _MIRRORED and right.scalar.is_valid else None


def _json(node: Predicate) -> dict[str, Any] | None:
    match node:
        case Comparison():
            sides = _sides(node)
            if sides is None:
                return None
            column, operator, constant = sides
            return _json_pair(_JSON_OPERATORS[operator], column, constant.scalar.as_py())
        case In(child=Column() as column, values=values) if 0 < len(values) <= _MOST_VALUES:
            forms = [_json_pair("equal", column, value) for value in values.to_pylist()]
            if any(form is None for form in forms):
                return None
            return forms[0] if len(forms) == 1 else {"op": "or", "children": forms}
        case IsNull(Column() as column):
            named = _json_column(column)
            return None if named is None else {"op": "isNull", "children": [named]}
        case Not(IsNull() as inner):
            form = _json(inner)
            return None if form is None else {"op": "not", "children": [form]}
        case Or(left, right):
            # Only where both sides can be said: leaving one out would be stricter.
            forms = [_json(_plain(left)), _json(_plain(right))]
            return None if None in forms else {"op": "or", "children": forms}
        case And(left, right):
            forms = [form for side in (left, right) if (form := _json(_plain(side))) is not None]
            if not forms:
                return None
            return forms[0] if len(forms) == 1 else {"op": "and", "children": forms}
        case Truth(Column() as column):
            return _json_pair("equal", column, True)
        case _:
            return None


def _json_column(column: Column) -> dict[str, Any] | None:
    kind = _JSON_TYPES.get(column.type)
    if kind is None or len(column.path) != 1:
        return None
    return {"op": "column", "name": column.path[0], "valueType": kind}


def _json_pair(operator: str, column: Column, value: Any) -> dict[str, Any] | None:
    named = _json_column(column)
    if named is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return {
        "op": operator,
        "children": [named, {"op": "literal", "value": text, "valueType": named["valueType"]}],
    }


def _sql(node: Predicate, partition_columns: Collection[str]) -> str | None:
    match node:
        case Comparison():
            sides = _sides(node)
            if sides is None:
                return None
            column, operator, constant = sides
            name, value = (
                _sql_name(column, partition_columns),
                _sql_value(constant.scalar.as_py(), column.type),
            )
            return f"{name} {operator} {value}" if name and value else None
        case Not(Comparison("=") as inner):
            text = _sql(inner, partition_columns)
            return None if text is None else text.replace(" = ", " <> ", 1)
        case In(child=Column() as column, values=values) if 0 < len(values) <= _MOST_VALUES:
            name = _sql_name(column, partition_columns)
            texts = [_sql_value(value, column.type) for value in values.to_pylist()]
            if name is None or None in texts:
                return None
            return f"{name} IN ({', '.join(text for text in texts if text)})"
        case IsNull(Column() as column):
            name = _sql_name(column, partition_columns)
            return name and f"{name} IS NULL"
        case Not(IsNull(Column() as column)):
            name = _sql_name(column, partition_columns)
            return name and f"{name} IS NOT NULL"
        case Truth(Column() as column):
            name = _sql_name(column, partition_columns)
            return name and f"{name} = true"
        case _:
            return None


def _sql_name(column: Column, partition_columns: Collection[str]) -> str | None:
    # What a partition's timestamp text means depends on a time zone that the server may take otherwise.
    if column.type == TIMESTAMP and column.path[0] in partition_columns:
        return None
    if len(column.path) != 1 or "`" in column.path[0]:
        return None
    name = column.path[0]
    return name if name.isidentifier() and name.isascii() else f"`{name}`"


def _sql_value(value: Any, delta: DeltaType) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, str):
        # Dialects differ in how they escape.
        return None if set(value) & set("'\\\n\r") else f"'{value}'"
    if delta == DATE:
        return f"'{value.isoformat()}'"
    if delta == TIMESTAMP:
        return f"'{value.isoformat()}'"
    return None
