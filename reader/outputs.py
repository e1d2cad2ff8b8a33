"""The forms in which rows are handed out: Arrow, pandas, polars, DuckDB, a stream.

`to_reader` is the one the others are made of where memory matters: it reads ahead a few batches and keeps
no more.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakepass.reader.data.reading import ScanFile
from lakepass.reader.data.variant import to_python
from lakepass.reader.errors import DeltaError, MissingExtraError
from lakepass.reader.types import VARIANT_MARK

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

_DEPTH = 2
"""Batches of each file that may wait to be taken."""
_PIECES, _PIECE = 32, 1_000
"""How many pieces of how many rows tell whether the texts of a column repeat."""


class Outputs(ABC):
    """What scans, their tasks and change feeds have in common."""

    schema: pa.Schema

    @abstractmethod
    def _stream(
        self, *, depth: int | None, done: Callable[[ScanFile], None] | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows; `depth` bounds how many batches of each file are read ahead."""

    @abstractmethod
    def _total_bytes(self) -> int:
        """The size of all files, for progress."""

    @abstractmethod
    def count(self) -> int:
        """How many rows there are."""

    def to_reader(self, *, progress: bool = False) -> pa.RecordBatchReader:
        """The rows as a stream of batches. Memory does not grow with the table.

        >>> from lakepass.reader import Table
        >>> reader = Table("orders").snapshot().scan(["id"]).to_reader()
        >>> reader.schema.names, sum(batch.num_rows for batch in reader)
        (['id'], 5)
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._shown(_DEPTH, progress))

    def to_arrow(self, *, progress: bool = False) -> pa.Table:
        """All rows as an Arrow table.

        >>> from lakepass.reader import Table
        >>> Table("orders").snapshot().scan(["value"], "id in (1, 2)").to_arrow().sort_by("value").to_pydict()
        {'value': ['a', 'b']}
        """
        batches = list(self._shown(None, progress))
        return pa.Table.from_batches(batches, self.schema) if batches else self.schema.empty_table()

    def to_pandas(self, *, progress: bool = False, **options: Any) -> pd.DataFrame:
        """All rows as a pandas data frame; variants, also inside of other types, become Python values.

        `options` go to `pyarrow.Table.to_pandas`. Dates are `datetime.date` objects, or `datetime64` where
        one lies beyond the years 1 to 9999.

        >>> from lakepass.reader import Table
        >>> Table("orders").snapshot().scan(["id"], limit=3).to_pandas().shape
        (3, 1)
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", "to_pandas") from None
        table = self.to_arrow(progress=progress)
        variants = [name for name in table.schema.names if _has_variant(table.schema.field(name))]
        plain = table.drop_columns(variants)
        try:
            frame: pd.DataFrame = plain.to_pandas(**options) if options else _frame(plain)
        except (ValueError, OverflowError) as error:
            frame = _without_python_dates(plain, options, error)
        for name in variants:
            place = table.schema.get_field_index(name)
            field = table.schema.field(place)
            values = [_python(each, field) for each in table.column(name).to_pylist()]
            frame.insert(place, name, pd.Series(values, dtype=object, index=frame.index))
        return frame

    def to_polars(self, *, lazy: bool = False, progress: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """All rows as a polars data frame, or, with `lazy`, a lazy frame that reads when it is collected.

        Of a scan, a lazy frame reads only the columns that a query names, and its limit stops reading.

        >>> from lakepass.reader import Table
        >>> Table("orders").snapshot().scan().to_polars(lazy=True).select("id").collect().shape
        (5, 1)
        """
        try:
            import polars as pl
        except ImportError:
            raise MissingExtraError("polars", "to_polars") from None
        if lazy:
            from lakepass.reader.lazy_frames import lazy_frame

            return lazy_frame(self)
        frame = pl.from_arrow(self.to_arrow(progress=progress))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def narrowed(self, columns: list[str] | None, limit: int | None) -> Outputs:  # noqa: ARG002
        """The same rows, at least these columns and as many rows; less of both where that saves reading."""
        return self

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a DuckDB relation; DuckDB reads them anew each time it is asked.

        >>> from lakepass.reader import Table
        >>> Table("orders").snapshot().scan(["id"], "id > 4").to_duckdb().order("id").fetchall()
        [(5,), (6,)]
        """
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", "to_duckdb") from None
        rows: Any = self
        return (connection or duckdb.connect()).from_arrow(rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows through Arrow's C stream interface, for any library that takes it."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def _shown(self, depth: int | None, progress: bool) -> Iterator[pa.RecordBatch]:
        if not progress:
            return self._stream(depth=depth, done=None)
        return self._with_progress(depth)

    def _with_progress(self, depth: int | None) -> Iterator[pa.RecordBatch]:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns) as bar:
            work = bar.add_task("reading", total=self._total_bytes())

            def done(file: ScanFile) -> None:
                start, end = file.byte_range or (0, file.size or 0)
                bar.advance(work, min(end, file.size or end) - start)

            with contextlib.closing(_generator(self._stream(depth=depth, done=done))) as batches:
                yield from batches


def _frame(table: pa.Table) -> pd.DataFrame:
    """As `pa.Table.to_pandas`, which gives equal texts one object: where they are all different, looking each
    up costs many times what making it does.
    """
    distinct = [name for name in table.schema.names if _hardly_repeats(table.column(name))]
    if len(distinct) == table.num_columns:
        return table.to_pandas(deduplicate_objects=not distinct)
    frame: pd.DataFrame = table.drop_columns(distinct).to_pandas()
    for name in distinct:
        values = table.column(name).to_pandas(deduplicate_objects=False)
        frame.insert(table.schema.get_field_index(name), name, values)
    return frame


def _hardly_repeats(column: Any) -> bool:
    """Whether a column of texts has hardly any value twice, by a sample of its rows."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return False
    step = max(len(column) // _PIECES, _PIECE)
    pieces = [column.slice(start, _PIECE) for start in range(0, len(column), step)]
    sample = pa.chunked_array([chunk for piece in pieces for chunk in piece.chunks], column.type).drop_null()
    repeated = len(sample) - len(sample.unique())
    # How many values there must be for so few repetitions in a sample, as with birthdays: where each is there
    # more than a few times, one object for all of them saves more than it costs.
    values = len(sample) ** 2 / (2 * max(repeated, 1))
    return 10 * repeated < len(sample) and 2 * values > len(column)


def _without_python_dates(table: pa.Table, options: dict[str, Any], error: Exception) -> pd.DataFrame:
    """The frame when Python's own dates, which end with the year 9999, could not hold a value."""
    if "date_as_object" in options or isinstance(error, pa.ArrowException):
        raise error
    try:
        return table.to_pandas(**options, date_as_object=False)
    except (ValueError, OverflowError):
        raise DeltaError(
            f"A value does not fit into pandas ({error}). Read it with to_arrow() or to_polars(), or leave "
            "its column out."
        ) from None


def _generator(batches: Iterator[pa.RecordBatch]) -> Any:
    yield from batches


def _is_variant(field: pa.Field[Any]) -> bool:
    return VARIANT_MARK.items() <= dict(field.metadata or {}).items()


def _has_variant(field: pa.Field[Any]) -> bool:
    return _is_variant(field) or any(_has_variant(each) for each in _parts(field.type))


def _parts(kind: pa.DataType) -> list[pa.Field[Any]]:
    """The fields inside of a type."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(index) for index in range(kind.num_fields)] if pa.types.is_nested(kind) else []


def _python(value: Any, field: pa.Field[Any]) -> Any:
    """A value as pyarrow gives it to Python, with its variants decoded."""
    if value is None:
        return None
    if _is_variant(field):
        return to_python(value["metadata"], value["value"])
    parts = _parts(field.type)
    if pa.types.is_map(field.type):
        return [tuple(_python(each, part) for each, part in zip(pair, parts, strict=True)) for pair in value]
    if pa.types.is_list(field.type):
        return [_python(each, parts[0]) for each in value]
    if pa.types.is_struct(field.type):
        return {part.name: _python(value[part.name], part) for part in parts}
    return value
