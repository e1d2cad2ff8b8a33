"""Response actions: the newline-delimited JSON of metadata, query and changes as Arrow columns.

The protocol's "API Response Actions" in both formats. A body is read in blocks of whole lines; the file
lines of a block become one record batch, without a Python object per file, so a million pass in bounded
memory. A line that does not parse, an `endStreamAction` with an error message, or a missing one where it
was promised fails the read: a partial answer is never taken for a whole one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from lakepass.reader.errors import SharingError
from lakepass.reader.log.files import DELETION_VECTOR
from lakepass.reader.secrets import scrub
from lakepass.reader.sharing.numbers import with_numbers

Column = Any
"""An Arrow array; the stubs' generics cannot follow nested columns."""

BLOCK = 1 << 20
_MAX_LINE = 64 << 20
_KIND = re.compile(rb'\s*\{\s*"([A-Za-z]+)"\s*:')
_FILE_KINDS = {"file", "add", "cdf", "remove"}
_HEADER_KINDS = {"protocol", "metaData", "endStreamAction"}

_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "url": pa.string(),
    "size": pa.int64(),
    "modification_time": pa.int64(),
    "partition_values": pa.map_(pa.string(), pa.string()),
    "deletion_vector": DELETION_VECTOR,
    "deletion_vector_id": pa.string(),
    "base_row_id": pa.int64(),
    "default_row_commit_version": pa.int64(),
    "stats": pa.string(),
    "data_change": pa.bool_(),
    "version": pa.int64(),
    "timestamp": pa.int64(),
    "expires_ms": pa.int64(),
}
ACTION_SCHEMA = pa.schema(_COLUMNS)
"""The columns of a file action, whichever format it came in; `url` is what the server signed."""


class BrokenOffError(SharingError):
    """The answer ended before it was whole."""


@dataclass(frozen=True)
class Header:
    """The `protocol` and `metaData` lines, as they were sent."""

    delta: bool
    """Whether they are in the delta format."""
    protocol: dict[str, Any]
    metadata: dict[str, Any]
    """The table's metadata itself, unwrapped."""
    extra: dict[str, Any]
    """What the sharing server adds: version, size, numFiles, location, auxiliaryLocations, accessModes."""
    version: int | None = None
    """The `Delta-Table-Version` the answer came with."""

    @property
    def partition_names(self) -> list[tuple[str, str]]:
        """Each partition column's physical and logical name."""
        logical = [str(name) for name in self.metadata.get("partitionColumns") or []]
        if not self.delta or not logical:
            return [(name, name) for name in logical]
        fields = orjson.loads(self.metadata.get("schemaString") or "{}").get("fields", [])
        physical = {
            one["name"]: (one.get("metadata") or {}).get("delta.columnMapping.physicalName") or one["name"]
            for one in fields
        }
        return [(physical.get(name, name), name) for name in logical]


@dataclass(frozen=True)
class Files:
    """File actions of one kind, in `ACTION_SCHEMA`."""

    kind: str
    """`add`, `cdc` or `remove`; a plain `file` line is an `add`."""
    batch: pa.RecordBatch


@dataclass(frozen=True)
class End:
    """The `endStreamAction` line."""

    refresh_token: str | None = field(default=None, repr=False)
    next_page_token: str | None = field(default=None, repr=False)
    expires_ms: int | None = None


def parse(
    chunks: Iterable[bytes], *, asked: str, version: int | None = None, end_promised: bool = False
) -> Iterator[Header | Files | End]:
    """The actions in a streamed body: a header first, files as they come, an end if there is one.

    `asked` names the request in errors.
    """
    parser = _Parser(asked, version)
    for block in _blocks(chunks, asked):
        yield from parser.block(block)
    if parser.header is None:
        raise SharingError(
            f"{asked}: the answer has no protocol and metaData lines. Ask the provider to look."
        )
    if end_promised and not parser.ended:
        raise BrokenOffError(f"{asked}: the answer broke off before its endStreamAction. Try again.")


def _blocks(chunks: Iterable[bytes], asked: str) -> Iterator[bytes]:
    pieces: list[bytes] = []
    size = 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size < BLOCK:
            continue
        joined = b"".join(pieces)
        cut = joined.rfind(b"\n") + 1
        if cut:
            yield joined[:cut]
        elif size > _MAX_LINE:
            raise SharingError(f"{asked}: a line of the answer is larger than {_MAX_LINE >> 20} MB.")
        pieces, size = [joined[cut:]], size - cut
    rest = b"".join(pieces)
    if rest.strip():
        yield rest if rest.endswith(b"\n") else rest + b"\n"


class _Parser:
    def __init__(self, asked: str, version: int | None) -> None:
        self.header: Header | None = None
        self.ended = False
        self._asked = asked
        self._version = version
        self._protocol: dict[str, Any] | None = None

    def block(self, block: bytes) -> Iterator[Header | Files | End]:
        if self.header is not None and not self.ended:
            # No raw newline can be inside a JSON text, so this counts the lines that begin so.
            plain = block.count(b'\n{"file":') + block.startswith(b'{"file":')
            if plain == block.count(b"\n"):
                yield from self._files("file", block)
                return
        run: list[bytes] = []
        run_kind = ""
        for line in block.splitlines():
            if not line.strip():
                continue
            kind = self._kind(line)
            if run and kind != run_kind:
                yield from self._files(run_kind, b"\n".join(run))
                run = []
            if kind in _FILE_KINDS:
                run.append(line)
                run_kind = kind
            else:
                yield from self._other(kind, line)
        if run:
            yield from self._files(run_kind, b"\n".join(run))

    def _kind(self, line: bytes) -> str:
        match = _KIND.match(line)
        if match is None:
            raise self._broken(line)
        return match[1].decode()

    def _broken(self, line: bytes) -> BrokenOffError:
        shown = scrub(line[:80].decode(errors="replace"))
        return BrokenOffError(
            f"{self._asked}: the answer breaks off or is not JSON, at {shown!r}. Try again."
        )

    def _other(self, kind: str, line: bytes) -> Iterator[Header | End]:
        try:
            value = with_numbers(orjson.loads(line)[kind])
        except (orjson.JSONDecodeError, KeyError):
            raise self._broken(line) from None
        if kind not in _HEADER_KINDS:
            return  # what a later protocol may add
        if not isinstance(value, dict):
            raise self._broken(line)
        if kind == "endStreamAction":
            self.ended = True
            if value.get("errorMessage"):
                said = scrub(str(value["errorMessage"]))[:2000]
                raise SharingError(f"{self._asked}: the server broke off the answer: {said}", 200)
            yield End(
                value.get("refreshToken") or None,
                value.get("nextPageToken") or None,
                value.get("minUrlExpirationTimestamp"),
            )
        elif kind == "protocol":
            self._protocol = value
        elif kind == "metaData":
            header = self._header(value)
            # A later metaData line tells of a change of schema in a range of versions.
            self.header = self.header or header
            yield header

    def _header(self, value: dict[str, Any]) -> Header:
        if self._protocol is None:
            raise SharingError(f"{self._asked}: the answer has a metaData line before its protocol line.")
        delta = "deltaProtocol" in self._protocol
        told = value.get("deltaMetadata") if delta else value
        if isinstance(told, dict) and not told.get("schemaString"):
            raise SharingError(f"{self._asked}: the metaData line of the answer has no schemaString.")
        if delta:
            metadata = value.get("deltaMetadata")
            if not isinstance(metadata, dict):
                raise SharingError(f"{self._asked}: the answer mixes the delta and parquet formats.")
            extra = {name: one for name, one in value.items() if name != "deltaMetadata"}
            return Header(True, self._protocol["deltaProtocol"], metadata, extra, self._version)
        if (self._protocol.get("minReaderVersion") or 1) > 1:
            raise SharingError(
                f"{self._asked}: the server speaks a newer version of the sharing protocol, this client "
                "knows 1. Upgrade lakepass."
            )
        return Header(False, self._protocol, value, value, self._version)

    def _files(self, kind: str, block: bytes) -> Iterator[Files]:
        if self.header is None:
            raise SharingError(f"{self._asked}: the answer has files before its metaData line.")
        if self.ended:
            raise SharingError(f"{self._asked}: the answer goes on after its endStreamAction.")
        names = self.header.partition_names
        schema = _delta_line(names) if self.header.delta else _parquet_line(kind, names)
        try:
            table = _columns(block, schema)
        except pa.ArrowInvalid:
            table = self._slowly(block, schema)
        rows: Column = pa.concat_arrays(table.column(0).chunks)
        parts = _delta_parts(rows) if self.header.delta else [(_DELTA_KIND.get(kind, kind), rows, rows)]
        for delta_kind, wrapper, action in parts:
            if len(action):
                partitions = _partition_map(action, names)
                batch = _normalise(wrapper, action, partitions, delta=self.header.delta)
                self._check(batch, names, block)
                yield Files(delta_kind, batch)

    def _slowly(self, block: bytes, schema: pa.Schema) -> pa.Table:
        """A block that does not fit: broken off, or with its numbers written as text."""
        lines = []
        for line in block.splitlines():
            try:
                lines.append(orjson.dumps(with_numbers(orjson.loads(line))))
            except orjson.JSONDecodeError:
                raise self._broken(line) from None
        try:
            return _columns(b"\n".join(lines), schema)
        except pa.ArrowInvalid as error:
            said = scrub(str(error).partition(" in row ")[0])[:200]
            raise SharingError(
                f"{self._asked}: a file of the answer is not as the protocol says ({said}). Ask the provider "
                "to look.",
                200,
            ) from None

    def _check(self, batch: pa.RecordBatch, names: list[tuple[str, str]], block: bytes) -> None:
        for column in ("url", "id"):
            if batch.column(column).null_count:
                raise SharingError(f"{self._asked}: a file of the answer lacks its {column}.")
        if not names:
            return
        # A column whose values are all null is either really null or named otherwise: look at one line.
        values: Column = batch.column("partition_values")
        values = values.items
        if values.null_count < len(values) - len(batch) + 1:
            return
        line = orjson.loads(block[: block.find(b"\n") + 1 or None])
        sent = next(iter(_find(line, "partitionValues")), {})
        missing = [logical for physical, logical in names if physical not in sent and logical not in sent]
        if missing and sent is not None:
            raise SharingError(
                f"{self._asked}: a file of the answer has no value for partition {missing[0]!r}."
            )


_DELTA_KIND = {"file": "add", "cdf": "cdc"}


def _columns(block: bytes, schema: pa.Schema) -> pa.Table:
    return pj.read_json(
        io.BytesIO(block),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _partition_type(names: list[tuple[str, str]]) -> pa.DataType:
    return pa.struct([(name, pa.string()) for name in dict.fromkeys(one for pair in names for one in pair)])


def _parquet_line(kind: str, names: list[tuple[str, str]]) -> pa.Schema:
    fields: list[tuple[str, pa.DataType]] = [
        ("id", pa.string()),
        ("url", pa.string()),
        ("stats", pa.string()),
    ]
    fields += [(name, pa.int64()) for name in ("size", "version", "timestamp", "expirationTimestamp")]
    if names:
        fields.append(("partitionValues", _partition_type(names)))
    return pa.schema([(kind, pa.struct(fields))])


def _delta_line(names: list[tuple[str, str]]) -> pa.Schema:
    common: list[tuple[str, pa.DataType]] = [("path", pa.string()), ("size", pa.int64())]
    common += [("dataChange", pa.bool_()), ("stats", pa.string())]
    if names:
        common.append(("partitionValues", _partition_type(names)))
    rows: list[tuple[str, pa.DataType]] = [("baseRowId", pa.int64()), ("defaultRowCommitVersion", pa.int64())]
    rows.append(("deletionVector", _VECTOR))
    single = pa.struct(
        [
            ("add", pa.struct([*common, *rows, ("modificationTime", pa.int64())])),
            ("remove", pa.struct([*common, *rows])),
            ("cdc", pa.struct(common)),
        ]
    )
    wrapper: list[tuple[str, pa.DataType]] = [("id", pa.string()), ("deletionVectorFileId", pa.string())]
    wrapper += [(name, pa.int64()) for name in ("version", "timestamp", "expirationTimestamp")]
    return pa.schema([("file", pa.struct([*wrapper, ("deltaSingleAction", single)]))])


def _delta_parts(rows: Column) -> list[tuple[str, Column, Column]]:
    single = rows.field("deltaSingleAction")
    parts = []
    for kind in ("add", "remove", "cdc"):
        action = single.field(kind)
        present = pc.is_valid(action)
        if action.null_count == 0:
            parts.append((kind, rows, action))
        elif action.null_count < len(action):
            parts.append((kind, rows.filter(present), action.filter(present)))
    return parts


def _partition_map(action: Column, names: list[tuple[str, str]]) -> Column:
    count, width = len(action), len(names)
    offsets: Column = pa.array(np.arange(count + 1, dtype=np.int32) * width)
    if not width:
        nothing: Column = pa.array([], pa.string())
        return pa.MapArray.from_arrays(offsets, nothing, nothing)
    values = pc.struct_field(action, "partitionValues")
    columns = []
    for physical, logical in names:
        column = pc.struct_field(values, physical)
        columns.append(
            column if physical == logical else pc.coalesce(column, pc.struct_field(values, logical))
        )
    # Row by row, one value per column: element i of the result is column i % width of row i // width.
    order = np.arange(width)[None, :] * count + np.arange(count)[:, None]
    interleaved: Column = pa.concat_arrays(columns).take(order.ravel())
    keys = pa.array([physical for physical, _ in names], pa.string())
    repeated: Column = keys.take(np.tile(np.arange(width), count))
    return pa.MapArray.from_arrays(offsets, repeated, interleaved)


def _normalise(wrapper: Column, action: Column, partitions: Column, *, delta: bool) -> pa.RecordBatch:
    def of(rows: Column, name: str, kind: Any) -> Column:
        index = rows.type.get_field_index(name)
        return pc.struct_field(rows, [index]) if index >= 0 else pa.nulls(len(rows), kind)

    vector = of(action, "deletionVector", _VECTOR)
    renamed = pa.StructArray.from_arrays(
        [pc.struct_field(vector, [i]) for i in range(len(_VECTOR))],
        fields=list(DELETION_VECTOR),
        mask=pc.is_null(vector),
    )
    return pa.record_batch(
        [
            of(wrapper, "id", pa.string()),
            of(action, "path" if delta else "url", pa.string()),
            of(action, "size", pa.int64()),
            of(action, "modificationTime", pa.int64()).fill_null(0),
            partitions,
            renamed,
            of(wrapper, "deletionVectorFileId", pa.string()),
            of(action, "baseRowId", pa.int64()),
            of(action, "defaultRowCommitVersion", pa.int64()),
            of(action, "stats", pa.string()),
            of(action, "dataChange", pa.bool_()).fill_null(True),
            of(wrapper, "version", pa.int64()),
            of(wrapper, "timestamp", pa.int64()),
            of(wrapper, "expirationTimestamp", pa.int64()),
        ],
        schema=ACTION_SCHEMA,
    )


def _find(value: object, name: str) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        for key, one in value.items():
            if key == name and isinstance(one, dict):
                yield one
            else:
                yield from _find(one, name)
