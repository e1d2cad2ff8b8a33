"""Rows from Spark and from the reader, in a form in which they can be laid side by side."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tests.tables.generator.fixture import contains


def plain(frame: DataFrame) -> DataFrame:
    """The frame as expectations are kept: variants as JSON text, void columns left out."""
    columns = []
    for field in frame.schema.fields:
        column = F.col("`" + field.name.replace("`", "``") + "`")
        if contains(field.dataType, T.NullType):
            continue
        if isinstance(field.dataType, T.VariantType):
            column = F.to_json(column).alias(field.name)
        elif contains(field.dataType, T.VariantType):
            column = F.to_json(F.struct(column.alias("value"))).alias(field.name)
        columns.append(column)
    return frame.select(*columns)


def sorted_rows(rows: DataFrame | pa.Table) -> list[str]:
    """Each row as text, in order; NaN, and which zero, are told apart."""
    table = rows if isinstance(rows, pa.Table) else plain(rows).toArrow()
    return sorted(
        repr([_value(value) for value in row.values()]) for row in table.to_pylist(maps_as_pydicts=None)
    )


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, dict):
        return {key: _value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_value(each) for each in value]
    if isinstance(value, tuple):  # a map's entries come in the order of the file
        return tuple(_value(each) for each in value)
    return value
