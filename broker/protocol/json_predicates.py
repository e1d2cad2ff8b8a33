"""`jsonPredicateHints`: a condition as a tree of JSON objects, turned into the reader's own filter.

The specification's section "JSON predicates for Filtering". Columns and constants name a value type, which
both sides of a comparison are cast to. Anything else raises, and the hint is then passed over as a whole.
"""

from __future__ import annotations

from typing import Any

import orjson

from lakepass.reader.errors import FilterError
from lakepass.reader.expressions import building
from lakepass.reader.expressions.names import find
from lakepass.reader.expressions.tree import Not, Predicate, Value
from lakepass.reader.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DeltaType,
    StructType,
)

_TYPES: dict[str, DeltaType] = {
    "bool": BOOLEAN,
    "int": INTEGER,
    "long": LONG,
    "string": STRING,
    "date": DATE,
    "float": FLOAT,
    "double": DOUBLE,
    "timestamp": TIMESTAMP,
}
_COMPARISONS = {
    "equal": "=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}
_DEEPEST = 100


def parse_json_predicate(text: str, table: StructType) -> Predicate:
    """The filter that a hint says about rows of `table`; raises `FilterError` when it cannot be one."""
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise FilterError("jsonPredicateHints is not JSON.") from None
    return _predicate(tree, table, 0)


def _predicate(tree: Any, table: StructType, depth: int) -> Predicate:
    if not isinstance(tree, dict) or depth > _DEEPEST:
        raise FilterError(
            "jsonPredicateHints holds something that is not an operation, or is nested too deeply."
        )
    operation, children = tree.get("op"), tree.get("children") or []
    if not isinstance(children, list):
        raise FilterError("The children of an operation are a list.")
    if operation in ("and", "or") and len(children) >= 2:
        parts = [_predicate(child, table, depth + 1) for child in children]
        return building.all_of(parts) if operation == "and" else building.any_of(parts)
    if operation == "not" and len(children) == 1:
        return Not(_predicate(children[0], table, depth + 1))
    if operation == "isNull" and len(children) == 1:
        return building.is_null(_value(children[0], table))
    if operation in _COMPARISONS and len(children) == 2:
        left, right = (_value(child, table) for child in children)
        return building.compare(_COMPARISONS[str(operation)], left, right)
    raise FilterError(
        f"The operation {str(operation)[:50]!r} is not known, or has the wrong number of children."
    )


def _value(tree: Any, table: StructType) -> Value:
    if not isinstance(tree, dict):
        raise FilterError("A side of a comparison is a column or a literal.")
    wanted = _TYPES.get(str(tree.get("valueType")))
    if wanted is None:
        raise FilterError(f"The value type {str(tree.get('valueType'))[:50]!r} is not known.")
    if tree.get("op") == "column" and isinstance(tree.get("name"), str):
        return building.to_type(find(tree["name"], table), wanted)
    if tree.get("op") == "literal" and isinstance(tree.get("value"), str):
        return building.to_type(building.literal(tree["value"], STRING), wanted)
    raise FilterError("A side of a comparison is a column or a literal.")
