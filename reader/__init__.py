"""Read Delta tables: from a location, or as a recipient of a share.

>>> from lakepass.reader import Table
>>> table = Table("/data/orders")
"""

from lakepass.reader.errors import DeltaError
from lakepass.reader.log.ratified import RatifiedCommit
from lakepass.reader.sharing.client import SharingClient
from lakepass.reader.sharing.loading import (
    get_table_metadata,
    get_table_version,
    list_all_tables,
    load_as_arrow,
    load_as_pandas,
    load_as_polars,
    load_table_changes_as_pandas,
)
from lakepass.reader.snapshot import Snapshot
from lakepass.reader.table import Table

__all__ = [
    "DeltaError",
    "RatifiedCommit",
    "SharingClient",
    "Snapshot",
    "Table",
    "get_table_metadata",
    "get_table_version",
    "list_all_tables",
    "load_as_arrow",
    "load_as_pandas",
    "load_as_polars",
    "load_table_changes_as_pandas",
]
