"""Rows as values that compare: multisets by column name, whatever the order of rows and columns."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakepass.reader.data.variant import to_python


def multiset(table: pa.Table, names: Iterable[str] | None = None) -> Counter[tuple[Any, ...]]:
    """The rows of the named columns, counted."""
    chosen = sorted(table.schema.names if names is None else names)
    columns = [[comparable(value) for value in table.column(name).to_pylist()] for name in chosen]
    return Counter(zip(*columns, strict=True)) if columns else Counter({(): table.num_rows})


def comparable(value: Any) -> Any:
    """A hashable value in which NaN equals NaN."""
    if isinstance(value, float):
        return "NaN" if value != value else value
    if isinstance(value, dict):
        return tuple(sorted((key, comparable(each)) for key, each in value.items()))
    if isinstance(value, list | tuple):
        return tuple(comparable(each) for each in value)
    return value


def from_variants(value: Any) -> Any:
    """A value in which every variant, at any depth, is the Python value it stands for."""
    if isinstance(value, dict):
        if set(value) == {"metadata", "value"} and isinstance(value["metadata"], bytes):
            return to_python(value["metadata"], value["value"])
        return {key: from_variants(each) for key, each in value.items()}
    if isinstance(value, list):
        return [from_variants(each) for each in value]
    return value


def as_spark_json(value: Any) -> Any:
    """What Spark's `to_json` of a value would load as: no null fields, times and numbers in Spark's forms."""
    if isinstance(value, dict):
        return {key: as_spark_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_spark_json(each) for each in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        fraction = f".{value.microsecond:06d}".rstrip("0").rstrip(".")
        zone = "+00:00" if value.tzinfo else ""
        return f"{value:%Y-%m-%d %H:%M:%S}{fraction}{zone}"
    return str(value) if isinstance(value, dt.date) else value


def loaded(text: str | None) -> Any:
    """JSON text as Python values."""
    return None if text is None else json.loads(text)
