"""Rows as a polars LazyFrame, read when it is collected, as often as it is.

A query's projections and limits are pushed into a scan; its filters are applied to the batches as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from lakepass.reader.outputs import Outputs


def lazy_frame(rows: Outputs) -> pl.LazyFrame:
    """The rows, whatever they come from.

    >>> from lakepass.reader import Table
    >>> frame = lazy_frame(Table("orders").snapshot().scan(filter="id > 2"))
    >>> frame.select("value").head(1).collect().shape
    (1, 1)
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        del batch_size  # polars takes batches of any size
        left = n_rows
        for batch in rows.narrowed(with_columns, n_rows).to_reader():
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            # A limit of polars counts rows before its predicate.
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            frame = frame if with_columns is None else frame.select(with_columns)
            yield frame if predicate is None else frame.filter(predicate)
            if left == 0:
                return

    empty = pl.from_arrow(rows.schema.empty_table())
    assert isinstance(empty, pl.DataFrame)
    return register_io_source(read, schema=empty.schema)
