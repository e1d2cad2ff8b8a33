"""The schema of a table: the JSON text in its metadata, parsed, checked and given as Arrow.

Carries out "Schema Serialization Format", and the reader's part of type widening: every change recorded in
`delta.typeChanges` must be one the protocol allows. The text comes from the log, so its depth is bounded
before anything is built from it.

>>> table = parse_schema('{"type":"struct","fields":[{"name":"id","type":"long","nullable":true}]}')
>>> arrow_schema(table)
id: int64
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson
import pyarrow as pa

from lakepass.reader.errors import CorruptTableError, UnsupportedTableError
from lakepass.reader.types import (
    BYTE,
    COLLATIONS,
    COLUMN_ID,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    LONG,
    PHYSICAL_NAME,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    TYPE_CHANGES,
    VOID,
    ArrayType,
    DecimalType,
    DeltaType,
    MapType,
    StructField,
    StructType,
    arrow_field,
    primitive,
)

MAX_DEPTH = 100
"""Levels of nesting that are read. A deeper schema is an attack or a mistake."""
MAX_FIELDS = 100_000
"""Fields at all levels together."""


_COLLATED = re.compile(r"string\s+collate\s+(\S+)", re.IGNORECASE)


def parse_schema(schema_string: str) -> StructType:
    """The table's columns from the `schemaString` of its metadata."""
    try:
        document = orjson.loads(schema_string)
    except ValueError as error:
        raise CorruptTableError(
            f"The schema in the table's metadata is not JSON that can be read ({error}). "
            "The metaData action in the log is damaged; restore it or read an earlier version."
        ) from None
    return _Parser().struct(document, 1)


def arrow_schema(table: StructType) -> pa.Schema:
    """The table's columns as Arrow, by their logical names; `void` columns are left out."""
    return pa.schema(
        [
            arrow_field(each.name, each.type, nullable=each.nullable, comment=_comment(each))
            for each in table.fields
            if each.type != VOID
        ]
    )


def check_column_mapping(table: StructType, mode: str) -> None:
    """Refuse a schema that lacks, at any level, what column mapping in `mode` needs."""
    if mode == "none":
        return
    if mode not in ("name", "id"):
        raise UnsupportedTableError(f"The table maps columns by {mode!r}; known are none, name and id.")
    key = PHYSICAL_NAME if mode == "name" else COLUMN_ID
    kind: type = str if mode == "name" else int
    for path, each in _walk(table, ()):
        if not isinstance(each.metadata.get(key), kind):
            raise CorruptTableError(
                f"The table maps columns by {mode}, but the schema gives no {key} for the column "
                f"{'.'.join(path)}. The metaData action in the log is damaged."
            )


def widens(old: DeltaType, new: DeltaType) -> bool:
    """Whether the protocol lets a column of type `old` become `new` without rewriting its files.

    >>> widens(INTEGER, LONG), widens(LONG, INTEGER), widens(INTEGER, DecimalType(12, 2))
    (True, False, True)
    """
    if old == new:
        return True
    if isinstance(new, DecimalType):
        # An integer of n digits needs n digits before the point.
        if isinstance(old, DecimalType):
            precision, scale = old.precision, old.scale
        elif old in (BYTE, SHORT, INTEGER):
            precision, scale = 10, 0
        elif old == LONG:
            precision, scale = 20, 0
        else:
            return False
        return new.scale >= scale and new.precision - precision >= new.scale - scale
    if old in INTEGRAL and new in INTEGRAL:
        return INTEGRAL.index(old) < INTEGRAL.index(new)
    if new == DOUBLE:
        return old in (FLOAT, BYTE, SHORT, INTEGER)
    return old == DATE and new == TIMESTAMP_NTZ


def _comment(each: StructField) -> str | None:
    comment = each.metadata.get("comment")
    return comment if isinstance(comment, str) else None


def _walk(delta: DeltaType, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], StructField]]:
    match delta:
        case StructType(fields):
            found = []
            for each in fields:
                found.append(((*path, each.name), each))
                found.extend(_walk(each.type, (*path, each.name)))
            return found
        case ArrayType(element):
            return _walk(element, (*path, "element"))
        case MapType(key, value):
            return _walk(key, (*path, "key")) + _walk(value, (*path, "value"))
        case _:
            return []


class _Parser:
    """Walks the JSON document; counts fields so that a hostile schema is refused early."""

    def __init__(self) -> None:
        self.fields = 0

    def struct(self, node: Any, depth: int) -> StructType:
        if (
            not isinstance(node, dict)
            or node.get("type") != "struct"
            or not isinstance(node.get("fields"), list)
        ):
            raise _damaged("it is not a struct with fields")
        fields = tuple(self.field(each, depth) for each in node["fields"])
        names = [each.name for each in fields]
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise _damaged(f"it names the column {twice[0][:80]!r} twice")
        return StructType(fields)

    def field(self, node: Any, depth: int) -> StructField:
        self.fields += 1
        if self.fields > MAX_FIELDS:
            raise UnsupportedTableError(
                f"The table's schema has more than {MAX_FIELDS} fields; that is not read."
            )
        if not isinstance(node, dict) or not isinstance(node.get("name"), str) or "type" not in node:
            raise _damaged("a field has no name or no type")
        metadata = node.get("metadata")
        if metadata is None:
            metadata = {}
        if not isinstance(metadata, dict):
            raise _damaged(f"the metadata of the field {node['name'][:80]!r} is not an object")
        _check_type_changes(node["name"], metadata)
        collated = _COLLATED.fullmatch(node["type"]) if isinstance(node["type"], str) else None
        if collated is not None:
            # Delta keeps collations in the metadata; one in the type's own name counts the same.
            metadata = metadata | {COLLATIONS: {node["name"]: collated[1]}}
        # The protocol's own writers leave out `nullable` never; other writers do, and mean a plain column.
        nullable = node.get("nullable", True) is not False
        return StructField(node["name"], self.type(node["type"], depth), nullable, metadata)

    def type(self, node: Any, depth: int) -> DeltaType:
        if isinstance(node, str):
            return primitive(node)
        if depth >= MAX_DEPTH:
            raise UnsupportedTableError(
                f"The table's schema is nested more than {MAX_DEPTH} levels deep; that is not read."
            )
        kind = node.get("type") if isinstance(node, dict) else None
        if kind == "struct":
            return self.struct(node, depth + 1)
        if kind == "array":
            element = self.type(_part(node, "elementType"), depth + 1)
            return ArrayType(element, node.get("containsNull", True) is not False)
        if kind == "map":
            key = self.type(_part(node, "keyType"), depth + 1)
            value = self.type(_part(node, "valueType"), depth + 1)
            return MapType(key, value, node.get("valueContainsNull", True) is not False)
        if kind == "udt":
            return self.type(_part(node, "sqlType"), depth + 1)
        if isinstance(kind, str):
            return primitive(kind)
        raise _damaged("a type is neither a name nor a struct, an array or a map")


def _part(node: dict[str, Any], key: str) -> Any:
    if key not in node:
        raise _damaged(f"a type of {node.get('type')} has no {key}")
    return node[key]


def _check_type_changes(name: str, metadata: Mapping[str, Any]) -> None:
    changes = metadata.get(TYPE_CHANGES)
    if changes is None:
        return
    if not isinstance(changes, list):
        raise _damaged(f"{TYPE_CHANGES} of the field {name[:80]!r} is not a list")
    for change in changes:
        old = change.get("fromType") if isinstance(change, dict) else None
        new = change.get("toType") if isinstance(change, dict) else None
        if not isinstance(old, str) or not isinstance(new, str):
            raise _damaged(f"{TYPE_CHANGES} of the field {name[:80]!r} names no types")
        before, after = primitive(old), primitive(new)
        # Collations are recorded in the same place; the values do not change with them.
        if (before, after) != (STRING, STRING) and not widens(before, after):
            raise UnsupportedTableError(
                f"The column {name[:80]!r} was changed from {old} to {new}, which the protocol does not "
                "allow as type widening. Its older files cannot be read as the new type; the table has to be "
                "rewritten.",
                ("typeWidening",),
            )


def _damaged(why: str) -> CorruptTableError:
    return CorruptTableError(
        f"The schema in the table's metadata cannot be read: {why}. The metaData action in the log is "
        "damaged; restore it or read an earlier version."
    )
