"""Checks before a table is shared: that it can be read, and given in the ways asked for.

What is wrong is said when the administrator can still put it right: a location without storage, a log that
does not open, a feature that cannot be read, files outside the locations that are to be shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from lakepass.broker.catalog.shares import TableDefinition
from lakepass.broker.config import ConfigurationError, Settings
from lakepass.broker.errors import InvalidParameter
from lakepass.broker.tables.storage import BrokerStorage
from lakepass.broker.vending import Grantee, Vending
from lakepass.broker.vending.errors import VendingError
from lakepass.reader import paths
from lakepass.reader.data.deletion_vectors import Descriptor
from lakepass.reader.errors import DeltaError, PathRefusedError
from lakepass.reader.location import Location
from lakepass.reader.snapshot import Snapshot
from lakepass.reader.table import Table

_MANY = 20


@dataclass(frozen=True)
class TableReport:
    """What a look at the table found."""

    version: int
    files: int
    features: tuple[str, ...]
    outside: tuple[str, ...]
    """Directories of files that the log names and no location covers."""


def examine(settings: Settings, vending: Vending, wanted: TableDefinition) -> TableReport:
    """Open the table as the broker would, and look at every path in its log."""
    definition = wanted.checked()
    storage = BrokerStorage(settings, vending)
    root = Location.parse(definition.location)
    places = [Location.parse(text) for text in definition.auxiliary_locations]
    for place in (root, *places):
        _check_storage(settings, vending, place, dir_wanted="dir" in definition.access_modes)
    try:
        table = Table(root, storage.provider(root), {place: storage.provider(place) for place in places})
        snapshot = table.snapshot()
        files, outside = _paths_outside(snapshot, (root, *places))
    except (DeltaError, VendingError, ConfigurationError) as error:
        raise InvalidParameter(f"{root} cannot be shared: {error}") from None
    if definition.start_version is not None and definition.start_version > snapshot.version:
        raise InvalidParameter(
            f"The start version {definition.start_version} is after the table's latest, {snapshot.version}."
        )
    features = sorted(snapshot.protocol.reader_features or ())
    return TableReport(snapshot.version, files, tuple(features), outside)


def checked(settings: Settings, vending: Vending, wanted: TableDefinition) -> TableReport:
    """The report on a table that can be shared; raises `InvalidParameter` with what to add otherwise."""
    report = examine(settings, vending, wanted)
    if report.outside:
        listed = "\n".join(f"  {place}" for place in report.outside)
        raise InvalidParameter(
            "The log names files outside the table's root and auxiliary locations. Add their directories "
            "as auxiliary "
            f"locations, if they belong to the table:\n{listed}"
        )
    return report


def _check_storage(settings: Settings, vending: Vending, place: Location, *, dir_wanted: bool) -> None:
    if place.cloud is None:
        raise InvalidParameter(
            f"{place} is a local directory: only tables on S3, Azure and Google Cloud are shared."
        )
    entry = settings.storage_for(place)
    if entry is None:
        known = ", ".join(str(known.location) for known in settings.storage) or "none"
        raise InvalidParameter(f"No storage is configured for {place}; configured are: {known}.")
    if not dir_wanted:
        return
    try:
        vending.check(entry, place, Grantee.broker())
    except (VendingError, ConfigurationError) as error:
        raise InvalidParameter(f"dir access cannot be given for {place}: {error}") from None


def _paths_outside(snapshot: Snapshot, places: tuple[Location, ...]) -> tuple[int, tuple[str, ...]]:
    """How many files there are, and the directories of those that no location covers."""
    starts = tuple(place.join("") for place in places)
    count, outside = 0, dict[str, None]()
    for batch in snapshot.file_batches():
        count += batch.num_rows
        absolute = pc.match_substring_regex(batch.column("path"), r"^/|^[A-Za-z][A-Za-z0-9+.\-]*:|\.\.")
        named = batch.column("path").filter(absolute).to_pylist()
        vectors: list[Any] = batch.column("deletion_vector").drop_null().to_pylist()
        named += [vector["path_or_inline"] for vector in vectors if vector["storage_type"] == "p"]
        for vector in vectors:
            if vector["storage_type"] == "u":
                Descriptor(**vector).relative_path()  # raises when it is damaged
        for logged in named:
            try:
                full = paths.resolve(snapshot.root, str(logged))
            except PathRefusedError:
                full = str(logged)
            if not full.startswith(starts):
                outside[full.rpartition("/")[0]] = None
    return count, tuple(list(outside)[:_MANY])
