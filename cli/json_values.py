"""Rows as values that JSON has, without losing what they say.

JSON has no infinity and no NaN, which would turn into null unseen: they are written as the texts `"NaN"`,
`"Infinity"` and `"-Infinity"`, as Spark writes them. Variants are written as the values they hold, maps with
text keys as objects.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lakepass.reader.data.variant import to_python
from lakepass.reader.types import VARIANT_MARK

Convert = Callable[[Any], Any]


def converters(schema: pa.Schema) -> dict[str, Convert]:
    """For each column that needs it, what makes its Python values ready for JSON."""
    found = ((field.name, _converter(field)) for field in schema)
    return {name: convert for name, convert in found if convert is not None}


def _converter(field: pa.Field[Any]) -> Convert | None:
    kind: Any = field.type
    if VARIANT_MARK.items() <= dict(field.metadata or {}).items():
        return lambda value: None if value is None else _finite(to_python(value["metadata"], value["value"]))
    if pa.types.is_floating(kind):
        return _finite
    if pa.types.is_struct(kind):
        inner = converters(pa.schema(list(kind)))
        return None if not inner else lambda value: value and _struct(value, inner)
    if pa.types.is_map(kind):
        return _map(kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        each = _converter(kind.value_field)
        return None if each is None else lambda value: value and [each(one) for one in value]
    return None


def _struct(value: dict[str, Any], inner: dict[str, Convert]) -> dict[str, Any]:
    return {name: inner[name](one) if name in inner else one for name, one in value.items()}


def _map(kind: Any) -> Convert:
    keys, values = _converter(kind.key_field) or _same, _converter(kind.item_field) or _same
    gather: Convert = dict if pa.types.is_string(kind.key_type) else list

    def convert(value: Any) -> Any:
        return None if value is None else gather((keys(key), values(one)) for key, one in value)

    return convert


def _same(value: Any) -> Any:
    return value


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value
