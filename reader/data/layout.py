"""Where a table's columns lie in one data file.

Carries out the reader's part of "Column Mapping": columns are found by name, by physical name or by field
id, at every level, and a column that the file does not have is null. Only the leaves that are asked for are
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from lakepass.reader.errors import CorruptTableError
from lakepass.reader.types import VOID, ArrayType, DeltaType, StructField, StructType

Mapping = Literal["none", "name", "id"]

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Layout:
    """For each wanted column, its place among the columns that are read from the file, or None."""

    places: tuple[int | None, ...]
    leaves: tuple[int, ...]
    """The indices of the Parquet leaf columns to read."""


def find_child(fields: list[pa.Field[Any]], wanted: StructField, mapping: Mapping) -> int | None:
    """The position of `wanted` among the fields of one level of a file.

    Columns that are not part of the schema (row ids, change types) have no id and are found by name.
    """
    number = wanted.column_id
    if mapping == "id" and number is not None:
        for index, each in enumerate(fields):
            identity = (each.metadata or {}).get(_FIELD_ID)
            if identity is not None and identity.isdigit() and int(identity) == number:
                return index
        return None
    name = wanted.physical_name if mapping != "none" else wanted.name
    for index, each in enumerate(fields):
        if each.name == name:
            return index
    if mapping != "none":
        return None
    # Writers that fold letter case exist; a table's own names differ in more than case.
    folded = [index for index, each in enumerate(fields) if each.name.casefold() == name.casefold()]
    return folded[0] if len(folded) == 1 else None


def find_columns(wanted: tuple[StructField, ...], schema: pa.Schema, mapping: Mapping, path: str) -> Layout:
    """The layout for reading `wanted` from a file with the Arrow `schema`."""
    fields = [schema.field(index) for index in range(len(schema.names))]
    starts = [0]
    for each in fields:
        starts.append(starts[-1] + _leaf_count(each.type))
    ids = any(_FIELD_ID in (each.metadata or {}) for each in fields)
    if mapping == "id" and wanted and not ids:
        raise CorruptTableError(
            f"The table maps columns by id, but the file {path} has no field ids, so its columns cannot be "
            "told apart. Rewrite the file with a writer that supports column mapping."
        )
    found = [find_child(fields, each, mapping) for each in wanted]
    leaves: list[int] = []
    for index, column in zip(found, wanted, strict=True):
        if index is not None:
            leaves.extend(_leaves(fields[index].type, column.type, starts[index], mapping))
        elif not column.nullable:
            raise CorruptTableError(
                f"The file {path} has no column {column.name!r}, which the table says is never null. "
                "The file does not belong to this table's schema; restore the file or the table's metadata."
            )
    order = sorted({index for index in found if index is not None})
    places = tuple(None if index is None else order.index(index) for index in found)
    return Layout(places, tuple(sorted(set(leaves))))


def children(kind: pa.DataType) -> list[pa.Field[Any]]:
    """The fields of a struct; of an extension type, of what stores it."""
    kind = storage(kind)
    return [kind.field(index) for index in range(kind.num_fields)]


def storage(kind: pa.DataType) -> pa.DataType:
    """The type without an extension's name around it."""
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind


def _leaf_count(kind: pa.DataType) -> int:
    kind = storage(kind)
    if pa.types.is_map(kind):
        return _leaf_count(kind.key_type) + _leaf_count(kind.item_type)
    if pa.types.is_nested(kind):
        return sum(_leaf_count(each.type) for each in children(kind))
    return 1


def _leaves(kind: pa.DataType, delta: DeltaType, start: int, mapping: Mapping) -> list[int]:
    """The leaves of a file's field that hold the parts of `delta`."""
    kind = storage(kind)
    everything = list(range(start, start + _leaf_count(kind)))
    if isinstance(delta, StructType) and pa.types.is_struct(kind):
        fields = children(kind)
        starts = [start]
        for each in fields:
            starts.append(starts[-1] + _leaf_count(each.type))
        chosen: list[int] = []
        for wanted in delta.fields:
            index = None if wanted.type == VOID else find_child(fields, wanted, mapping)
            if index is not None:
                chosen.extend(_leaves(fields[index].type, wanted.type, starts[index], mapping))
        # Without any leaf it could not be told where the struct itself is null.
        return chosen or everything[:1]
    if isinstance(delta, ArrayType) and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return _leaves(kind.value_type, delta.element, start, mapping)
    return everything
