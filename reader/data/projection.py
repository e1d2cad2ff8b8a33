"""Which parts of a table a scan wants: output columns, and the least schema for them and the filter.

A nested column is asked for by its path; of its struct only that field is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.errors import FilterError
from lakepass.reader.expressions.names import find
from lakepass.reader.expressions.tree import Column
from lakepass.reader.types import (
    COLUMN_ID,
    PHYSICAL_NAME,
    VOID,
    ArrayType,
    DeltaType,
    MapType,
    StructField,
    StructType,
    arrow_field,
)


@dataclass(frozen=True)
class OutputColumn:
    """A column of the result and what it is in the table."""

    name: str
    column: Column

    @property
    def field(self) -> pa.Field[Any]:
        """Its Arrow field. A field of a struct may be null when the struct is."""
        last = self.column.fields[-1]
        comment = last.metadata.get("comment")
        return arrow_field(
            self.name,
            last.type,
            nullable=any(each.nullable for each in self.column.fields),
            comment=comment if isinstance(comment, str) else None,
        )


def output_columns(table: StructType, wanted: Sequence[str] | None) -> tuple[OutputColumn, ...]:
    """The result's columns: all of the table's, or those that `wanted` names.

    A path into a struct gives a column called by its last part, as in SQL; when two would be called the same,
    both are called by their whole path.
    """
    if wanted is None:
        return tuple(OutputColumn(each.name, Column((each,))) for each in table.fields if each.type != VOID)
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise FilterError(f"columns is a list of names, such as [{wanted!r}], not {wanted!r} itself.")
    columns = [find(each, table) for each in wanted]
    names = [each.path[-1] for each in columns]
    chosen = [
        ".".join(each.path) if names.count(name) > 1 else name
        for each, name in zip(columns, names, strict=True)
    ]
    twice = sorted({name for name in chosen if chosen.count(name) > 1})
    if twice:
        raise FilterError(f"The column {twice[0]!r} is asked for twice.")
    return tuple(OutputColumn(name, each) for name, each in zip(chosen, columns, strict=True))


def prune(table: StructType, columns: Iterable[Column]) -> tuple[StructField, ...]:
    """The table's fields, in order, with no more inside of them than the columns need."""
    paths = {each.path for each in columns}
    return _prune(table, paths).fields


def extract(array: Any, column: Column) -> Any:
    """The values of a column from the array of its top-level field; null where a struct on the way is."""
    for name in column.path[1:]:
        array = pc.struct_field(array, [array.type.get_field_index(name)])
    return array


def unmapped(table: StructType) -> StructType:
    """The schema without traces of column mapping, for tables that do not use it."""

    def plain(delta: DeltaType) -> DeltaType:
        match delta:
            case StructType(fields):
                return StructType(tuple(strip(each) for each in fields))
            case ArrayType(element, contains_null):
                return ArrayType(plain(element), contains_null)
            case MapType(key, value, contains_null):
                return MapType(plain(key), plain(value), contains_null)
            case _:
                return delta

    def strip(field: StructField) -> StructField:
        kept = {key: value for key, value in field.metadata.items() if key not in (PHYSICAL_NAME, COLUMN_ID)}
        return replace(field, type=plain(field.type), metadata=kept)

    return StructType(tuple(strip(each) for each in table.fields))


def _prune(level: StructType, paths: set[tuple[str, ...]]) -> StructType:
    kept = []
    for each in level.fields:
        below = {path[1:] for path in paths if path[0] == each.name}
        if not below:
            continue
        if () in below or not isinstance(each.type, StructType):
            kept.append(each)
        else:
            kept.append(replace(each, type=_prune(each.type, below)))
    return StructType(tuple(kept))
