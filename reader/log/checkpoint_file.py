"""One Parquet file of a checkpoint: which of the wanted leaves it has, which row groups are worth reading."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow.parquet as pq

from lakepass.reader.footer import Footer
from lakepass.reader.log.files import JSON_STATS, PARSED_STATS

_FETCHED_BYTES = 8 << 20
"""Of row groups, together: many small ones cost few requests."""


class CheckpointFile:
    """An open file and what its footer tells; raises `FooterError` where that makes no sense."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.parquet = parquet = pq.ParquetFile(source, pre_buffer=True)
        self._leaves = {parquet.schema.column(index).path: index for index in range(len(parquet.schema))}

    @cached_property
    def _footer(self) -> Footer:
        return Footer(self._source, self.parquet.metadata)

    def present(self, columns: list[str], *, as_json: bool) -> list[str]:
        """Those of the columns that the file has; of statistics in two forms the wanted one, if it is
        complete.
        """
        present = [name for name in columns if self._below(name)]
        parsed = [name for name in present if name.startswith(PARSED_STATS)]
        if JSON_STATS in present and parsed:
            first, others = (JSON_STATS, parsed) if as_json else (f"{PARSED_STATS}.numRecords", [JSON_STATS])
            if self._as_often(first, "add.path"):
                return [name for name in present if name not in others]
        return present

    def bundles(self, columns: list[str], action: str | None) -> Iterator[tuple[list[int], int]]:
        """Neighbouring row groups to be fetched together, and the bytes of their columns.

        Row groups that hold none of the action are left out. Arrow holds on to everything that one call asked
        for until its last batch, which matters for files alone: of other actions there are few.
        """
        groups = range(self.parquet.metadata.num_row_groups)
        if action is None:
            yield list(groups), 0
            return
        wanted = [leaf for name in columns for leaf in self._below(name)]
        bundle: list[int] = []
        held = 0
        for group in groups:
            if self._lacks(group, action):
                continue
            size = sum(self._footer.chunk(group, leaf).compressed for leaf in wanted)
            if bundle and held + size > _FETCHED_BYTES:
                yield bundle, held
                bundle, held = [], 0
            bundle.append(group)
            held += size
        if bundle:
            yield bundle, held

    def _below(self, name: str) -> list[int]:
        return [leaf for path, leaf in self._leaves.items() if path == name or path.startswith(f"{name}.")]

    def _as_often(self, path: str, other: str) -> bool:
        """Whether the footer says that a leaf has as many values as another one."""
        groups = range(self.parquet.metadata.num_row_groups)
        return all(
            (nulls := self._nulls(group, path)) is not None and nulls == self._nulls(group, other)
            for group in groups
        )

    def _lacks(self, group: int, action: str) -> bool:
        """Whether a row group surely holds none of an action: two of its fields are null in every row."""
        rows = self.parquet.metadata.row_group(group).num_rows
        return all(self._nulls(group, f"{action}.{field}") == rows for field in ("path", "size"))

    def _nulls(self, group: int, path: str) -> int | None:
        leaf = self._leaves.get(path)
        return None if leaf is None else self._footer.chunk(group, leaf).null_count
