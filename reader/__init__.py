"""Read Delta tables: from a location, or as a recipient of a share.

>>> from lakepass.reader import Table
>>> table = Table("/data/orders")

Names are loaded when they are first used, so that a program that needs only the errors does not load Arrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakepass.reader.errors import DeltaError
    from lakepass.reader.log.cache import DirectoryCache
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
    "DirectoryCache",
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

_HOMES = {
    "DeltaError": "errors",
    "DirectoryCache": "log.cache",
    "RatifiedCommit": "log.ratified",
    "SharingClient": "sharing.client",
    "Snapshot": "snapshot",
    "Table": "table",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lakepass.reader' has no attribute {name!r}")
    home = _HOMES.get(name, "sharing.loading")
    value = getattr(import_module(f"lakepass.reader.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
