"""Which version a request means, and whether the share gives it."""

from __future__ import annotations

from datetime import datetime

from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.errors import InvalidParameter
from lakepass.broker.tables.served import ServedTable
from lakepass.reader.errors import VersionNotFoundError
from lakepass.reader.snapshot import Snapshot


def checked_version(table: TableRow, version: int, latest: Snapshot, name: str, *, what: str = "data") -> int:
    """The version, when the table has it and the share begins no later."""
    if table.start_version is not None and version < table.start_version:
        raise InvalidParameter(
            f"You can only query table {what} since version {table.start_version}; {name} is {version}."
        )
    if version > latest.version:
        raise InvalidParameter(
            f"Cannot time travel Delta table to version {version}: the latest version is {latest.version}."
        )
    return version


def version_at(served: ServedTable, latest: Snapshot, moment: datetime) -> int:
    """The latest version committed at or before a moment."""
    try:
        return served.version_at(moment)
    except VersionNotFoundError:
        raise _outside(latest, moment) from None


def version_from(served: ServedTable, latest: Snapshot, moment: datetime) -> int:
    """The earliest version committed at or after a moment."""
    try:
        return served.version_from(moment)
    except VersionNotFoundError:
        raise _outside(latest, moment) from None


def _outside(latest: Snapshot, moment: datetime) -> InvalidParameter:
    late = moment.timestamp() * 1000 > latest.timestamp_ms
    side = "after the latest" if late else "before the earliest"
    return InvalidParameter(f"The provided timestamp ({moment.isoformat()}) is {side} version available.")
