"""Reads the rows of one file as the table has them: the transform from physical to logical.

For each batch: find the columns (layout), give them the table's types (conform), add partition values and row
ids, drop deleted rows and those that the filter does not want. With a filter, its columns are read first, and
the others only for row groups that have a match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.data import deletion_vectors
from lakepass.reader.data.conform import Conform
from lakepass.reader.data.deletion_vectors import DeletionVector, Descriptor
from lakepass.reader.data.files import FEW_ROWS, STREAMED, BatchSize, DataFile
from lakepass.reader.data.layout import Layout, Mapping, find_columns
from lakepass.reader.data.projection import OutputColumn, extract, prune
from lakepass.reader.data.row_groups import group_bounds
from lakepass.reader.errors import CorruptTableError, UnsupportedTableError
from lakepass.reader.expressions.bounds import BoundsEvaluator
from lakepass.reader.expressions.rows import evaluate
from lakepass.reader.expressions.tree import Column, Predicate, columns_of
from lakepass.reader.secrets import shown_path
from lakepass.reader.storage import Storages
from lakepass.reader.types import LONG, StructField, StructType, arrow_type

ROW_ID = "row_id"
ROW_COMMIT_VERSION = "row_commit_version"


@dataclass(frozen=True)
class ScanFile:
    """One live file, as a scan reads it; paths are full paths."""

    path: str
    size: int | None
    partition_values: dict[str, Any]
    """By logical name, as Arrow scalars."""
    deletion_vector: Descriptor | None = None
    vector_path: str | None = None
    base_row_id: int | None = None
    row_commit_version: int | None = None
    unfiltered: bool = False
    """Whether partition values alone make the filter true for every row."""
    byte_range: tuple[int, int] | None = None
    only_deleted: bool = False
    """For changes: give the rows that `deletion_vector` deletes, without those of `earlier_vector`."""
    earlier_vector: Descriptor | None = None
    earlier_vector_path: str | None = None
    stored: tuple[str, ...] = ()
    """Partition columns whose values are in the file after all, as the change type in change files."""

    def __repr__(self) -> str:
        # A path may be a signed address.
        return f"ScanFile({shown_path(self.path)!r}, size={self.size}, byte_range={self.byte_range})"


@dataclass(frozen=True)
class ReadPlan:
    """What to read from every file, and how columns are found there."""

    table: StructType
    mapping: Mapping
    partition_columns: tuple[str, ...]
    output: tuple[OutputColumn, ...]
    filter: Predicate | None
    row_tracking: tuple[str | None, str | None] | None
    """The names of the materialized row id and row commit version columns, when row tracking is asked for."""
    schema: pa.Schema
    """Of the result."""
    storages: Storages


class FileReader:
    """The rows of one file, as a stream of batches of the plan's schema."""

    def __init__(self, plan: ReadPlan, file: ScanFile, batch_size: BatchSize = STREAMED) -> None:
        self._batch_size = batch_size
        self._plan = plan
        self._file = file
        self._shown = shown_path(file.path)
        self._conform = Conform(self._shown, plan.mapping)
        self._filter = None if file.unfiltered else plan.filter
        self._earlier: DeletionVector | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The file's rows; nothing is read before the first batch is asked for."""
        vector = self._vector(self._file.deletion_vector, self._file.vector_path)
        self._earlier = self._vector(self._file.earlier_vector, self._file.earlier_vector_path)
        storage = self._plan.storages.storage_for(self._file.path)
        data = DataFile(self._file.path, storage, self._file.size, self._batch_size)
        try:
            if vector is not None and vector.last >= data.num_rows:
                raise CorruptTableError(
                    f"The deletion vector of {self._shown} names row {vector.last}, but the file has "
                    f"only {data.num_rows} rows. One of the two was replaced; restore it."
                )
            groups = self._groups(data)
            if self._filter is None:
                yield from self._all_rows(data, groups, vector)
            else:
                yield from self._matching_rows(data, groups, vector, self._filter)
        finally:
            data.close()

    def _vector(self, descriptor: Descriptor | None, path: str | None) -> DeletionVector | None:
        if descriptor is None:
            return None

        def read(where: str, offset: int, length: int) -> bytes:
            storage = self._plan.storages.storage_for(where)
            return storage.read(where, offset=offset, length=length, limit=deletion_vectors.MAX_BYTES + 8)

        return deletion_vectors.load(descriptor, lambda _: path or "", read)

    def _groups(self, data: DataFile) -> list[int]:
        groups = list(range(len(data.row_counts)))
        if self._file.byte_range is not None:
            groups = data.groups_between(*self._file.byte_range)
        if self._filter is None or not groups or (len(groups) == 1 and data.num_rows < FEW_ROWS):
            return groups
        footer = group_bounds(data, groups, self._plan.mapping)
        evaluator = BoundsEvaluator(
            len(groups), lambda column: None if self._is_partition(column) else footer(column)
        )
        possible = evaluator.evaluate(self._filter).true
        return [group for group, kept in zip(groups, possible.tolist(), strict=True) if kept]

    def _columns(self, columns: list[Column]) -> tuple[StructField, ...]:
        wanted = prune(self._plan.table, columns)
        return tuple(
            each
            for each in wanted
            if each.name not in self._plan.partition_columns or each.name in self._file.stored
        )

    def _is_partition(self, column: Column) -> bool:
        name = column.path[0]
        return name in self._plan.partition_columns and name not in self._file.stored

    def _layout(self, data: DataFile, wanted: tuple[StructField, ...]) -> Layout:
        return find_columns(wanted, data.schema, self._plan.mapping, self._shown)

    def _tracked(self) -> tuple[StructField, ...]:
        names = self._plan.row_tracking or ()
        return tuple(StructField(name, LONG) for name in names if name)

    def _all_rows(
        self, data: DataFile, groups: list[int], vector: DeletionVector | None
    ) -> Iterator[pa.RecordBatch]:
        wanted = self._columns([each.column for each in self._plan.output]) + self._tracked()
        layout = self._layout(data, wanted)
        data.read_dictionaries(layout.leaves)
        for group in groups:
            for position, rows, batch in data.batches(group, layout.leaves):
                arrays = self._logical(wanted, layout, batch, rows)
                keep = self._keep(vector, position, rows)
                yield self._assemble(arrays, position, rows, keep)

    def _matching_rows(
        self, data: DataFile, groups: list[int], vector: DeletionVector | None, predicate: Predicate
    ) -> Iterator[pa.RecordBatch]:
        asked = list(columns_of(predicate))
        output = [each.column for each in self._plan.output]
        named = {column.path[0] for column in asked}
        # What the filter needs of a column, and the result too, is read once.
        first = self._columns(asked + [each for each in output if each.path[0] in named])
        second = self._columns([each for each in output if each.path[0] not in named]) + self._tracked()
        first_layout, second_layout = self._layout(data, first), self._layout(data, second)
        data.read_dictionaries(first_layout.leaves + second_layout.leaves)
        for group in groups:
            batches = data.batches(group, first_layout.leaves)
            found = self._match(batches, first, first_layout, vector)
            if found is None:
                continue
            mask, kept = found
            begin = data.first_position(group)
            at = 0
            for position, rows, batch in data.batches(group, second_layout.leaves):
                keep = mask[position - begin : position - begin + rows]
                count = int(np.count_nonzero(keep))
                if not count:
                    continue
                arrays = self._logical(second, second_layout, batch, rows)
                chosen = None if count == rows else pa.array(keep)
                if chosen is not None:
                    arrays = {name: array.filter(chosen) for name, array in arrays.items()}
                arrays.update({name: array.slice(at, count) for name, array in kept.items()})
                at += count
                positions = np.flatnonzero(keep) + position if self._plan.row_tracking else None
                yield self._rows(arrays, positions, count)

    def _match(
        self,
        batches: Iterator[tuple[int, int, Any]],
        wanted: tuple[StructField, ...],
        layout: Layout,
        vector: DeletionVector | None,
    ) -> tuple[Any, dict[str, Any]] | None:
        """The mask of a row group's matching rows and the filter's columns for them; None without a match."""
        masks: list[Any] = []
        kept: dict[str, list[Any]] = {each.name: [] for each in wanted}
        for position, rows, batch in batches:
            arrays = self._logical(wanted, layout, batch, rows)
            mask = self._evaluate(arrays, rows)
            keep = self._keep(vector, position, rows)
            mask = mask if keep is None else mask & keep
            masks.append(mask)
            if mask.any():
                chosen = pa.array(mask)
                for name, array in arrays.items():
                    kept[name].append(array.filter(chosen))
        whole = np.concatenate(masks) if masks else np.zeros(0, dtype=np.bool_)
        if not whole.any():
            return None
        return whole, {name: pa.concat_arrays(parts) for name, parts in kept.items()}

    def _evaluate(self, arrays: dict[str, Any], rows: int) -> Any:
        """True for each row that the filter wants."""
        assert self._filter is not None
        answer = evaluate(self._filter, lambda column: self._value(column, arrays))
        if isinstance(answer, pa.Scalar):
            return np.full(rows, answer.is_valid and answer.as_py(), dtype=np.bool_)
        return pc.fill_null(answer, False).to_numpy(zero_copy_only=False)

    def _keep(self, vector: DeletionVector | None, position: int, rows: int) -> Any:
        """A mask of the rows to give, or None for all of them."""
        keep = vector.keep(position, rows) if vector is not None else None
        if not self._file.only_deleted:
            return keep
        deleted = np.zeros(rows, dtype=np.bool_) if keep is None else ~keep
        earlier = self._earlier.keep(position, rows) if self._earlier is not None else None
        return deleted if earlier is None else deleted & earlier

    def _logical(
        self, wanted: tuple[StructField, ...], layout: Layout, batch: Any, rows: int
    ) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        for each, place in zip(wanted, layout.places, strict=True):
            if place is None:
                missing: Any = arrow_type(each.type)
                arrays[each.name] = pa.nulls(rows, missing)
                continue
            array = self._conform(batch.column(place), each.type, each.name)
            if not each.nullable and array.null_count:
                raise CorruptTableError(
                    f"The file {self._shown} has nulls in the column {each.name!r}, which the table "
                    "says is never null. The file or the table's metadata is wrong; rewrite one of them."
                )
            arrays[each.name] = array
        return arrays

    def _value(self, column: Column, arrays: dict[str, Any]) -> Any:
        if self._is_partition(column):
            return self._file.partition_values[column.path[0]]
        return extract(arrays[column.path[0]], column)

    def _assemble(self, arrays: dict[str, Any], position: int, rows: int, keep: Any) -> pa.RecordBatch:
        if keep is None:
            positions = np.arange(position, position + rows) if self._plan.row_tracking else None
            return self._rows(arrays, positions, rows)
        count = int(np.count_nonzero(keep))
        if count < rows:
            chosen = pa.array(keep)
            arrays = {name: array.filter(chosen) for name, array in arrays.items()}
        positions = np.flatnonzero(keep) + position if self._plan.row_tracking else None
        return self._rows(arrays, positions, count)

    def _rows(self, arrays: dict[str, Any], positions: Any, rows: int) -> pa.RecordBatch:
        columns: list[Any] = []
        for each in self._plan.output:
            if self._is_partition(each.column):
                columns.append(pa.repeat(self._file.partition_values[each.column.path[0]], rows))
            else:
                columns.append(extract(arrays[each.column.path[0]], each.column))
        if self._plan.row_tracking is not None:
            columns.extend(self._tracking(arrays, positions, self._plan.row_tracking))
        if not columns:
            nothing: Any = pa.Array.from_buffers(pa.struct([]), rows, [None])
            return pa.RecordBatch.from_struct_array(nothing)
        return pa.RecordBatch.from_arrays(columns, schema=self._plan.schema)

    def _tracking(
        self, arrays: dict[str, Any], positions: Any, names: tuple[str | None, str | None]
    ) -> Iterator[Any]:
        file = self._file
        if file.base_row_id is None or file.row_commit_version is None:
            raise UnsupportedTableError(
                f"The log gives no row ids for {self._shown}, although row tracking is on. Row ids cannot be "
                "read from this version of the table.",
                ("rowTracking",),
            )
        ids = pa.array(positions + file.base_row_id, pa.int64())
        versions = pa.repeat(pa.scalar(file.row_commit_version, pa.int64()), len(ids))
        for name, default in zip(names, (ids, versions), strict=True):
            stored = arrays.get(name) if name else None
            yield default if stored is None else pc.coalesce(stored, default)
