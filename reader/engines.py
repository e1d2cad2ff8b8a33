"""Tables for query engines that pull: a polars LazyFrame, a DuckDB relation.

Both read when they are asked for rows, as often as they are asked. polars' projections and limits are
pushed into the scan, so only the columns a query names are read; its filters are applied to the batches as
they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lakepass.reader.errors import MissingExtraError

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from lakepass.reader.scan import Scan


class Scannable(Protocol):
    """A table at a version."""

    @property
    def schema(self) -> pa.Schema: ...  # noqa: D102
    def scan(self, columns: Any = None, filter: Any = None, limit: int | None = None) -> Scan:
        """A scan of it."""
        ...


def lazy_frame(snapshot: Scannable, filter: Any = None) -> pl.LazyFrame:
    """The rows as a LazyFrame; `filter` is ours and skips files, polars' own filters come after."""
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ImportError:
        raise MissingExtraError("polars", "table.polars()") from None

    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        del batch_size  # polars takes batches of any size
        # A limit of polars counts rows before its predicate.
        for batch in snapshot.scan(columns=with_columns, filter=filter, limit=n_rows).to_reader():
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            yield frame if predicate is None else frame.filter(predicate)

    empty = pl.from_arrow(snapshot.schema.empty_table())
    assert isinstance(empty, pl.DataFrame)
    return register_io_source(read, schema=empty.schema)


def duckdb_relation(
    snapshot: Scannable, connection: duckdb.DuckDBPyConnection | None = None, filter: Any = None
) -> duckdb.DuckDBPyRelation:
    """The rows as a DuckDB relation that can be queried more than once."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "table.duckdb()") from None
    # DuckDB asks the scan for a new Arrow stream each time it reads.
    scan: Any = snapshot.scan(filter=filter)
    return (connection or duckdb.connect()).from_arrow(scan)
