"""Live files as Arrow batches: the columns everything above the log works with.

Checkpoints and commits hold `add` actions in several shapes (writers differ in integer widths, map layouts
and which fields they leave out). Here they become one shape, column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lakepass.reader.errors import CorruptTableError
from lakepass.reader.log.arrays import ArrowArray, compute, int32_array, int64_array, string_array
from lakepass.reader.log.stats import conform_stats, parse_json_stats, stats_as_json, stats_type

STRING_MAP: pa.DataType = pa.map_(pa.string(), pa.string())
DELETION_VECTOR: pa.StructType = pa.struct(
    [
        ("storage_type", pa.string()),
        ("path_or_inline", pa.string()),
        ("offset", pa.int32()),
        ("size", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("path", pa.string()),
    ("size", pa.int64()),
    ("modification_time", pa.int64()),
    ("partition_values", STRING_MAP),
    ("deletion_vector", DELETION_VECTOR),
    ("base_row_id", pa.int64()),
    ("default_row_commit_version", pa.int64()),
]
FILE_SCHEMA = pa.schema(_COLUMNS)
"""What every batch of files has; `stats` and `tags` come after it when asked for."""

JSON_STATS = "add.stats"
PARSED_STATS = "add.stats_parsed"

_LOGGED = {
    "path": "path",
    "size": "size",
    "modification_time": "modificationTime",
    "partition_values": "partitionValues",
    "deletion_vector": "deletionVector",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
}
_LOGGED_VECTOR = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")


@dataclass(frozen=True)
class FileColumns:
    """Which columns of a file are wanted beside the fixed ones."""

    stats: pa.Schema | Literal["json"] | None = None
    tags: bool = False
    unpartitioned: bool = False
    """The table has no partition columns: the map is empty for every file and need not be read."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        schema = FILE_SCHEMA
        if self.stats == "json":
            schema = schema.append(pa.field("stats", pa.string()))
        elif self.stats is not None:
            schema = schema.append(pa.field("stats", stats_type(self.stats)))
        return schema.append(pa.field("tags", STRING_MAP)) if self.tags else schema

    def batch(self, action: ArrowArray, where: str) -> pa.RecordBatch:
        """`add` (or `remove`, `cdc`) actions, all of them valid rows, as a batch of files."""
        columns: list[ArrowArray] = []
        try:
            for field in FILE_SCHEMA:
                if self.unpartitioned and field.name == "partition_values":
                    columns.append(_empty_maps(len(action)))
                    continue
                value = logged_field(action, _LOGGED[field.name])
                columns.append(_conform(value, field.type, len(action)))
            if self.stats is not None:
                columns.append(self._stats(action))
            if self.tags:
                columns.append(_conform(logged_field(action, "tags"), STRING_MAP, len(action)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise CorruptTableError(
                f"{where} holds file actions with a field of the wrong type ({str(error)[:200]}). The file is"
                " damaged, or was not written by a Delta writer."
            ) from None
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if batch.column("path").null_count:
            raise CorruptTableError(f"{where} holds a file action without a path. The file is damaged.")
        return batch

    def leaves(self) -> list[str]:
        """The columns of a checkpoint that are wanted, with both forms of statistics."""
        wanted = [
            f"add.{name}"
            for name in _LOGGED.values()
            if not (self.unpartitioned and name == "partitionValues")
        ]
        if self.tags:
            wanted.append("add.tags")
        if self.stats is not None:
            wanted.append(JSON_STATS)
        if isinstance(self.stats, pa.Schema):
            wanted.extend(_leaf_names(PARSED_STATS, list(self.stats)))
        elif self.stats == "json":
            wanted.append(PARSED_STATS)
        return wanted

    def _stats(self, action: ArrowArray) -> ArrowArray:
        json = _conform(logged_field(action, "stats"), pa.string(), len(action))
        parsed = logged_field(action, "stats_parsed")
        if parsed is not None and not pa.types.is_struct(parsed.type):
            parsed = None
        if self.stats == "json" or self.stats is None:
            return json if parsed is None else compute.coalesce(json, stats_as_json(parsed))
        if parsed is None:
            return parse_json_stats(json, self.stats)
        conformed = conform_stats(parsed, self.stats)
        # A writer may have parsed the statistics of some files only.
        rest = compute.if_else(parsed.is_valid(), None, json)
        if rest.null_count == len(rest):
            return conformed
        return compute.if_else(parsed.is_valid(), conformed, parse_json_stats(rest, self.stats))


def _leaf_names(prefix: str, fields: list[Any]) -> Iterator[str]:
    for field in fields:
        name = f"{prefix}.{field.name}"
        if pa.types.is_struct(field.type):
            yield from _leaf_names(name, list(field.type))
        else:
            yield name


def logged_field(action: ArrowArray, name: str) -> ArrowArray | None:
    """A field of an action as it was logged, null where the action's struct is; None where no row has it."""
    index = action.type.get_field_index(name)
    return None if index < 0 else compute.struct_field(action, [index])


def _conform(value: ArrowArray | None, wanted: Any, length: int) -> ArrowArray:
    if value is None or pa.types.is_null(value.type):
        return pa.nulls(length, wanted)
    if value.type == wanted:
        return value
    if wanted == DELETION_VECTOR:
        return _vectors(value)
    if wanted == STRING_MAP:
        return _string_map(value)
    return value.cast(wanted)


def _vectors(value: ArrowArray) -> ArrowArray:
    if not pa.types.is_struct(value.type):
        raise pa.ArrowTypeError(f"deletionVector is {value.type}")
    if value.null_count == len(value):
        return pa.nulls(len(value), DELETION_VECTOR)
    children = [
        _conform(logged_field(value, name), field.type, len(value))
        for name, field in zip(_LOGGED_VECTOR, DELETION_VECTOR, strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(DELETION_VECTOR), mask=value.is_null())


def _string_map(value: ArrowArray) -> ArrowArray:
    if pa.types.is_struct(value.type):
        return _map_of_struct(value)
    return value.cast(STRING_MAP)


def _map_of_struct(value: ArrowArray) -> ArrowArray:
    """A map from a struct of strings: every field is a key in every row."""
    names: Sequence[str] = [field.name for field in value.type]
    rows, width = len(value), len(names)
    offsets = int32_array(np.arange(rows + 1, dtype=np.int32) * width)
    if width == 0:
        return _empty_maps(rows)
    keys = string_array(names).take(int64_array(np.tile(np.arange(width), rows)))
    items = pa.concat_arrays(
        [compute.struct_field(value, [index]).cast(pa.string()) for index in range(width)]
    )
    order = np.arange(rows * width).reshape(width, rows).T.ravel()
    return pa.MapArray.from_arrays(offsets, keys, items.take(int64_array(order)))


def _empty_maps(rows: int) -> ArrowArray:
    nothing = string_array([])
    return pa.MapArray.from_arrays(int32_array(np.zeros(rows + 1, dtype=np.int32)), nothing, nothing)
