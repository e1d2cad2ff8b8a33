"""One call from `profile#share.schema.table` to rows, with the names the delta-sharing package made known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakepass.reader.errors import MissingExtraError
from lakepass.reader.sharing.access import Access
from lakepass.reader.sharing.client import SharingClient
from lakepass.reader.sharing.listings import TableEntry
from lakepass.reader.sharing.names import split_reference
from lakepass.reader.sharing.profile import Profile, ProfileSource
from lakepass.reader.sharing.rest import ResponseFormat
from lakepass.reader.sharing.table import SharedTable
from lakepass.reader.sharing.urls import UrlSnapshot

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from lakepass.reader.log.actions import Metadata

Moment = str | datetime


def open_table(
    url: str, access: Access = "auto", *, use_delta_format: bool | None = None, location: str | None = None
) -> SharedTable:
    """The table that `profile#share.schema.table` names; `LAKEPASS_PROFILE` stands in for the profile."""
    profile, name = split_reference(url)
    formats: dict[bool | None, ResponseFormat] = {None: "delta,parquet", True: "delta", False: "parquet"}
    return SharingClient(profile).table(name, access, location, formats[use_delta_format])


def load_as_arrow(
    url: str,
    limit: int | None = None,
    version: int | None = None,
    timestamp: Moment | None = None,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    access: Access = "auto",
    jsonPredicateHints: str | None = None,
    use_delta_format: bool | None = None,
) -> pa.Table:
    """The rows of a shared table as an Arrow table.

    >>> load_as_arrow("me.share#sales.eu.orders", columns=["id"], filter="id < 2").to_pydict()
    {'id': [1]}
    """
    table = open_table(url, access, use_delta_format=use_delta_format)
    at = version, timestamp
    scan = _scan(table, at, jsonPredicateHints, columns=columns, filter=filter, limit=limit)
    found: pa.Table = scan.to_arrow()
    return found


def load_as_pandas(  # noqa: PLR0917 - the order that delta-sharing made known
    url: str,
    limit: int | None = None,
    version: int | None = None,
    timestamp: Moment | None = None,
    jsonPredicateHints: str | None = None,
    use_delta_format: bool | None = None,
    convert_in_batches: bool = False,  # noqa: ARG001 - see below
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    access: Access = "auto",
    arrow_types: bool = False,
) -> pd.DataFrame:
    """The rows of a shared table as a pandas data frame.

    `arrow_types` keeps Arrow's types (whole numbers stay whole beside nulls). `jsonPredicateHints` is passed
    to the server as it is, and may leave files out; `filter` decides about rows. `convert_in_batches` is
    taken for code written for delta-sharing: rows are always read in batches here.

    >>> load_as_pandas("me.share#sales.eu.orders", limit=3).shape[0]
    3
    """
    table = open_table(url, access, use_delta_format=use_delta_format)
    at = version, timestamp
    scan = _scan(table, at, jsonPredicateHints, columns=columns, filter=filter, limit=limit)
    if arrow_types:
        return _arrow_backed(scan)
    frame: pd.DataFrame = scan.to_pandas()
    return frame


def load_as_polars(
    url: str,
    limit: int | None = None,
    version: int | None = None,
    timestamp: Moment | None = None,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    access: Access = "auto",
    jsonPredicateHints: str | None = None,
    use_delta_format: bool | None = None,
) -> pl.DataFrame:
    """The rows of a shared table as a polars data frame.

    >>> load_as_polars("me.share#sales.eu.orders", columns=["id"], filter="id < 2").to_dicts()
    [{'id': 1}]
    """
    table = open_table(url, access, use_delta_format=use_delta_format)
    at = version, timestamp
    scan = _scan(table, at, jsonPredicateHints, columns=columns, filter=filter, limit=limit)
    frame: pl.DataFrame = scan.to_polars()
    return frame


def load_table_changes_as_pandas(  # noqa: PLR0917 - the order that delta-sharing made known
    url: str,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp: Moment | None = None,
    ending_timestamp: Moment | None = None,
    use_delta_format: bool | None = None,
    convert_in_batches: bool = False,  # noqa: ARG001 - rows are always read in batches
    *,
    access: Access = "auto",
) -> pd.DataFrame:
    """The rows that changed between two versions or times, with what happened to them and when.

    >>> changed = load_table_changes_as_pandas("me.share#sales.eu.feed", starting_version=1)
    >>> list(changed.columns[-3:])
    ['_change_type', '_commit_version', '_commit_timestamp']
    """
    table = open_table(url, access, use_delta_format=use_delta_format)
    changes = table.changes(starting_version, ending_version, starting_timestamp, ending_timestamp)
    frame: pd.DataFrame = changes.to_pandas()
    return frame


def get_table_version(url: str, starting_timestamp: Moment | None = None) -> int:
    """The current version of a shared table, or the first one at or after a time.

    >>> get_table_version("me.share#sales.eu.orders", starting_timestamp="1970-01-01T00:00:00Z")
    0
    """
    profile, name = split_reference(url)
    return SharingClient(profile).table_version(name, starting_timestamp)


def get_table_metadata(url: str, use_delta_format: bool | None = None) -> Metadata:
    """The metadata of a shared table as it is now.

    >>> get_table_metadata("me.share#sales.eu.orders").partition_columns[:2]
    ('flag', 'tiny')
    """
    return open_table(url, "auto", use_delta_format=use_delta_format).snapshot().metadata


def list_all_tables(profile: ProfileSource | Profile | None = None) -> list[TableEntry]:
    """Every table of every share granted to the recipient.

    >>> [str(table) for table in list_all_tables("me.share")]
    ['sales.eu.feed', 'sales.eu.orders']
    """
    return list(SharingClient(profile).all_tables())


def _scan(table: SharedTable, at: tuple[int | None, Moment | None], hints: str | None, **options: Any) -> Any:
    snapshot = table.snapshot(*at)
    if hints is not None and isinstance(snapshot, UrlSnapshot):
        return snapshot.scan(**options, json_hints=hints)
    return snapshot.scan(**options)


def _arrow_backed(scan: Any) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("pandas", "load_as_pandas") from None
    frame: pd.DataFrame = scan.to_pandas(types_mapper=pd.ArrowDtype)
    return frame
