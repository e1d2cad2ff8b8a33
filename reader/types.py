"""Delta's types, as the schema in the log names them, and the Arrow types that carry their values.

Carries out "Schema Serialization Format" of the protocol. A type is a small immutable value: two columns of
the same type compare equal, so that a file's layout can be laid beside the table's.

A `variant` is carried as `struct<metadata: binary, value: binary>`, the two parts of the Parquet variant
encoding; `lakepass.reader.data.variant` turns them into Python values. `void` columns hold no values and
are not read, as the protocol recommends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from lakepass.reader.errors import UnsupportedTableError

PHYSICAL_NAME = "delta.columnMapping.physicalName"
COLUMN_ID = "delta.columnMapping.id"
TYPE_CHANGES = "delta.typeChanges"
COLLATIONS = "__COLLATIONS"

VARIANT_MARK = {b"delta.type": b"variant"}
"""Arrow field metadata that tells a variant from a struct that happens to have the same two fields."""

VARIANT_ARROW = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parts: `string`, `long`, `date`, …, also `variant` and `void`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of values of one type."""

    element: DeltaType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """Pairs of a key and a value."""

    key: DeltaType
    value: DeltaType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """A column, or a field of a struct, with what the log says about it."""

    name: str
    type: DeltaType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def physical_name(self) -> str:
        """The name in data files, partition values and statistics; the column's own name without mapping."""
        name = self.metadata.get(PHYSICAL_NAME)
        return name if isinstance(name, str) else self.name

    @property
    def column_id(self) -> int | None:
        """The id in data files under column mapping by id."""
        number = self.metadata.get(COLUMN_ID)
        return number if isinstance(number, int) else None

    @property
    def collation(self) -> str | None:
        """The collation of a string column, when it is not the binary order of UTF-8."""
        collations = self.metadata.get(COLLATIONS)
        name = collations.get(self.name) if isinstance(collations, Mapping) else None
        return name if isinstance(name, str) and not name.endswith("UTF8_BINARY") else None


@dataclass(frozen=True, slots=True)
class StructType:
    """Named fields in order; also the schema of a whole table."""

    fields: tuple[StructField, ...]

    def __str__(self) -> str:
        return "struct<" + ",".join(f"{each.name}:{each.type}" for each in self.fields) + ">"

    def find(self, name: str) -> StructField | None:
        """The field called `name`; letter case decides only between fields that differ in nothing else.

        >>> table = StructType((StructField("Id", PrimitiveType("long")),))
        >>> table.find("id").name
        'Id'
        """
        for each in self.fields:
            if each.name == name:
                return each
        folded = [each for each in self.fields if each.name.casefold() == name.casefold()]
        return folded[0] if len(folded) == 1 else None


DeltaType: TypeAlias = PrimitiveType | DecimalType | ArrayType | MapType | StructType

STRING = PrimitiveType("string")
BINARY = PrimitiveType("binary")
BOOLEAN = PrimitiveType("boolean")
BYTE = PrimitiveType("byte")
SHORT = PrimitiveType("short")
INTEGER = PrimitiveType("integer")
LONG = PrimitiveType("long")
FLOAT = PrimitiveType("float")
DOUBLE = PrimitiveType("double")
DATE = PrimitiveType("date")
TIMESTAMP = PrimitiveType("timestamp")
TIMESTAMP_NTZ = PrimitiveType("timestamp_ntz")
VARIANT = PrimitiveType("variant")
VOID = PrimitiveType("void")

INTEGRAL = (BYTE, SHORT, INTEGER, LONG)
FLOATING = (FLOAT, DOUBLE)

_ARROW: dict[PrimitiveType, pa.DataType] = {
    STRING: pa.string(),
    BINARY: pa.binary(),
    BOOLEAN: pa.bool_(),
    BYTE: pa.int8(),
    SHORT: pa.int16(),
    INTEGER: pa.int32(),
    LONG: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
    VARIANT: VARIANT_ARROW,
    VOID: pa.null(),
}
_NAMED = {each.name: each for each in _ARROW}
_ALIASES = {
    "int": INTEGER, "bigint": LONG, "smallint": SHORT, "tinyint": BYTE, "real": FLOAT, "null": VOID,
    "timestamp_ltz": TIMESTAMP,
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*\)")
_TEXT = re.compile(r"(?:char|varchar)\(\d+\)|string\s+collate\s+\S+", re.IGNORECASE)


def primitive(name: str) -> PrimitiveType | DecimalType:
    """The type that the schema's text `name` means.

    >>> primitive("decimal(10,2)")
    DecimalType(precision=10, scale=2)
    >>> primitive("varchar(20)")
    PrimitiveType(name='string')
    """
    known = _NAMED.get(name) or _ALIASES.get(name)
    if known is not None:
        return known
    if name == "decimal":
        return DecimalType(10, 0)
    match = _DECIMAL.fullmatch(name)
    if match is not None:
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and 0 <= scale <= precision:
            return DecimalType(precision, scale)
    if _TEXT.fullmatch(name):
        return STRING
    raise UnsupportedTableError(
        f"The table's schema has the type {name[:80]!r}, which this reader does not know. "
        "A newer version of lakepass may; or read other versions of the table, before that column was added."
    )


def arrow_type(delta: DeltaType) -> pa.DataType:
    """The Arrow type that carries values of `delta`.

    >>> arrow_type(ArrayType(LONG))
    ListType(list<element: int64>)
    """
    match delta:
        case PrimitiveType():
            return _ARROW[delta]
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element, contains_null):
            return pa.list_(arrow_field("element", element, nullable=contains_null))
        case MapType(key, value, contains_null):
            keys = arrow_field("key", key, nullable=False)
            values = arrow_field("value", value, nullable=contains_null)
            mapped: pa.DataType = pa.map_(keys, values)  # type: ignore[call-overload]  # stubs lack fields
            return mapped
        case StructType(fields):
            return pa.struct(
                [
                    arrow_field(each.name, each.type, nullable=each.nullable)
                    for each in fields
                    if each.type != VOID
                ]
            )


def arrow_field(
    name: str, delta: DeltaType, *, nullable: bool = True, comment: str | None = None
) -> pa.Field[Any]:
    """The Arrow field that carries a column; a variant is marked in its metadata."""
    metadata: dict[bytes, bytes] = dict(VARIANT_MARK) if delta == VARIANT else {}
    if comment:
        metadata[b"comment"] = comment.encode()
    return pa.field(name, arrow_type(delta), nullable=nullable, metadata=metadata or None)
