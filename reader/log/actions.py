"""The actions that are not files: protocol, metadata, transactions, domain metadata, commit info.

Each is read from a JSON object or a checkpoint row, both as plain dictionaries, checked field by field: the
log is data from outside, and a wrong type must become an error that names it, not an exception from somewhere
below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakepass.reader.errors import CorruptTableError

_NO_COLUMNS = '{"type":"struct","fields":[]}'
"""A table that was created without a schema has none in its metadata."""


@dataclass(frozen=True)
class Protocol:
    """What a client must understand to read or write the table."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, action: object, where: str) -> Protocol:
        """From a `protocol` action found in `where`."""
        fields = _Fields(action, "protocol", where)
        return cls(
            fields.integer("minReaderVersion"),
            fields.integer("minWriterVersion", default=0),
            fields.names("readerFeatures"),
            fields.names("writerFeatures"),
        )

    def has(self, feature: str) -> bool:
        """Whether either list names the feature."""
        return feature in (self.reader_features or ()) or feature in (self.writer_features or ())


@dataclass(frozen=True)
class Format:
    """How the table's files are encoded."""

    provider: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Metadata:
    """The table's identity, schema and properties."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format: Format = Format()

    @classmethod
    def parse(cls, action: object, where: str) -> Metadata:
        """From a `metaData` action found in `where`."""
        fields = _Fields(action, "metaData", where)
        encoding = _Fields(fields.value.get("format") or {}, "metaData.format", where)
        return cls(
            id=fields.text("id", default=""),
            schema_string=fields.text("schemaString", default=_NO_COLUMNS),
            partition_columns=fields.names("partitionColumns") or (),
            configuration=fields.mapping("configuration"),
            name=fields.optional_text("name"),
            description=fields.optional_text("description"),
            created_time=fields.optional_integer("createdTime"),
            format=Format(encoding.text("provider", default="parquet"), encoding.mapping("options")),
        )


@dataclass(frozen=True)
class Transaction:
    """How far an application has come, by its own count."""

    app_id: str
    version: int
    last_updated: int | None = None

    @classmethod
    def parse(cls, action: object, where: str) -> Transaction:
        """From a `txn` action found in `where`."""
        fields = _Fields(action, "txn", where)
        return cls(fields.text("appId"), fields.integer("version"), fields.optional_integer("lastUpdated"))


@dataclass(frozen=True)
class DomainMetadata:
    """The configuration of one named domain; `removed` makes it a tombstone."""

    domain: str
    configuration: str
    removed: bool = False

    @classmethod
    def parse(cls, action: object, where: str) -> DomainMetadata:
        """From a `domainMetadata` action found in `where`."""
        fields = _Fields(action, "domainMetadata", where)
        return cls(
            fields.text("domain"),
            fields.text("configuration", default=""),
            fields.value.get("removed") is True,
        )


@dataclass(frozen=True)
class Sidecar:
    """A file with part of a V2 checkpoint's file actions."""

    path: str
    size: int

    @classmethod
    def parse(cls, action: object, where: str) -> Sidecar:
        """From a `sidecar` action found in `where`."""
        fields = _Fields(action, "sidecar", where)
        return cls(fields.text("path"), fields.integer("sizeInBytes"))


class _Fields:
    """Typed access to one action, with errors that say where it stands."""

    def __init__(self, value: object, name: str, where: str) -> None:
        if not isinstance(value, Mapping):
            raise CorruptTableError(
                f"{where} holds a {name} action that is not an object. The file is damaged."
            )
        self.value: Mapping[str, Any] = value
        self._name = name
        self._where = where

    def _wrong(self, key: str, wanted: str) -> CorruptTableError:
        found = "nothing" if self.value.get(key) is None else type(self.value[key]).__name__
        return CorruptTableError(
            f"{self._where} holds a {self._name} action whose {key} should be {wanted} and is {found}. "
            "The file is damaged, or was not written by a Delta writer."
        )

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.value.get(key, default)
        if value is None:
            value = default
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(key, "a whole number")
        return value

    def optional_integer(self, key: str) -> int | None:
        return None if self.value.get(key) is None else self.integer(key)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.value.get(key)
        if value is None:
            value = default
        if not isinstance(value, str):
            raise self._wrong(key, "text")
        return value

    def optional_text(self, key: str) -> str | None:
        return None if self.value.get(key) is None else self.text(key)

    def names(self, key: str) -> tuple[str, ...] | None:
        value = self.value.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(key, "a list of names")
        return tuple(value)

    def mapping(self, key: str) -> dict[str, str]:
        value = self.value.get(key)
        if value is None:
            return {}
        # Checkpoints give maps as lists of pairs.
        pairs = value.items() if isinstance(value, Mapping) else value
        if not isinstance(value, Mapping | list):
            raise self._wrong(key, "a map")
        try:
            return {str(name): _property(each) for name, each in pairs if each is not None}
        except (TypeError, ValueError):
            raise self._wrong(key, "a map") from None


def _property(value: object) -> str:
    """A property as text; some writers leave booleans and numbers bare."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
