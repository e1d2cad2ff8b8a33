"""The locations a table may be read from, each with its own credential.

The root and the declared auxiliary locations are all there is: a path that lies below none of them is
refused, whatever the log says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakepass.reader.credentials import CredentialProvider
from lakepass.reader.errors import PathRefusedError
from lakepass.reader.location import Location
from lakepass.reader.storage.interface import Storage
from lakepass.reader.storage.local import LocalStorage


def open_storage(location: Location, credentials: CredentialProvider | None = None) -> Storage:
    """The store that holds a location; without credentials, the machine's own identity is used."""
    if location.scheme == "file":
        return LocalStorage(location)
    from lakepass.reader.storage.objects import ObjectStorage

    return ObjectStorage(location, credentials)


class Storages:
    """Chooses the storage of a path by the longest matching location; refuses every other path.

    >>> storages = Storages([(Location.parse("/data/t"), LocalStorage(Location.parse("/data/t")))])
    >>> storages.storage_for("file:///data/t/part-1.parquet")
    LocalStorage(file:///data/t)
    >>> storages.storage_for("file:///data/table2/part-1.parquet")
    Traceback (most recent call last):
    lakepass.reader.errors.PathRefusedError: Refused 'file:///data/table2/part-1.parquet': it is outside ...
    """

    def __init__(self, storages: Iterable[tuple[Location, Storage]]) -> None:
        self._storages = sorted(storages, key=lambda pair: len(pair[0].path), reverse=True)

    @classmethod
    def open(
        cls,
        root: Location,
        credentials: CredentialProvider | None = None,
        auxiliary: Mapping[Location, CredentialProvider | None] | None = None,
    ) -> Storages:
        """The storages of a table's root and auxiliary locations."""
        places = {root: credentials, **(auxiliary or {})}
        return cls((location, open_storage(location, provider)) for location, provider in places.items())

    def storage_for(self, path: str) -> Storage:
        """The storage of the longest location that holds the path."""
        if not ({".", ".."} & set(path.split("/"))):
            for location, storage in self._storages:
                if path.startswith(location.join("")):
                    return storage
        known = ", ".join(str(location) for location, _ in self._storages)
        raise PathRefusedError(
            f"Refused {path!r}: it is outside what may be read for this table ({known}). If the files belong"
            " to the table, declare their directory as an auxiliary location."
        )

    def file_id(self, path: str) -> str:
        """What a file is known by, whatever is used to read it; empty when it has no name of its own."""
        return path

    def __repr__(self) -> str:
        return f"Storages({', '.join(str(location) for location, _ in self._storages)})"
