"""`SharingClient`: what is shared with a recipient, and the tables in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from lakepass.reader.log.cache import DirectoryCache, LogCache, MemoryCache
from lakepass.reader.sharing.access import Access
from lakepass.reader.sharing.listings import Listing, Schema, Share, TableEntry
from lakepass.reader.sharing.names import TableName, check, split_schema
from lakepass.reader.sharing.profile import Profile, ProfileSource
from lakepass.reader.sharing.rest import ResponseFormat, Rest, protocol_timestamp
from lakepass.reader.sharing.table import SharedTable
from lakepass.reader.sharing.transport import Patience, Transport


class SharingClient:
    """A recipient's view of a Delta Sharing server.

    `profile` is a path, an https address or a dict; left out, `LAKEPASS_PROFILE` names it. `timeout` is how
    many seconds to wait for the server to answer. `cache` keeps commits and checkpoints, which never change:
    a folder, for all processes that name it, or any `LogCache`; left out, some memory of this client.

    >>> SharingClient({"shareCredentialsVersion": 1, "endpoint": "https://e.com/s", "bearerToken": "t"})
    SharingClient('https://e.com/s')
    """

    def __init__(
        self,
        profile: ProfileSource | Profile | None = None,
        *,
        timeout: float | None = None,
        patience: Patience | None = None,
        cache: LogCache | str | os.PathLike[str] | None = None,
    ) -> None:
        patience = patience or (Patience() if timeout is None else Patience(read=timeout))
        self._rest = Rest(Transport(Profile.load(profile), patience))
        kept = DirectoryCache(cache) if isinstance(cache, str | os.PathLike) else cache
        self._cache: LogCache = kept if kept is not None else MemoryCache()

    @property
    def profile(self) -> Profile:
        """The profile in use."""
        return self._rest.transport.profile

    def shares(self) -> Listing[Share]:
        """The shares granted to the recipient, pages fetched as they are walked."""
        return self._rest.shares()

    def schemas(self, share: str | Share) -> Listing[Schema]:
        """The schemas of a share."""
        return self._rest.schemas(check(str(share), str(share)))

    def tables(self, schema: str | Schema) -> Listing[TableEntry]:
        """The tables of a schema, `share.schema`."""
        return self._rest.tables(*split_schema(str(schema)))

    def all_tables(self, share: str | Share | None = None) -> Listing[TableEntry]:
        """All tables of a share, or of every share."""
        if share is not None:
            return self._rest.all_tables(check(str(share), str(share)))
        shares = iter(self.shares())
        every: Iterator[TableEntry] = (table for one in shares for table in self._rest.all_tables(one.name))

        def page(_: str | None) -> tuple[list[TableEntry], str | None]:
            found = next(every, None)
            return ([], None) if found is None else ([found], "more")

        return Listing(page)

    def table(
        self,
        name: str | TableEntry | TableName,
        access: Access = "auto",
        location: str | None = None,
        response_format: ResponseFormat = "delta,parquet",
    ) -> SharedTable:
        """The table `share.schema.table`.

        `access` is `"dir"` (a credential for its directory), `"url"` (pre-signed URLs) or `"auto"`: `dir`
        where the server offers it and it works here. `location` is for servers that vend credentials without
        announcing it: the table's directory, read with `access="dir"`.
        """
        parsed = name if isinstance(name, TableName) else TableName.parse(str(name))
        return SharedTable(self._rest, parsed, access, location, accepted=response_format, cache=self._cache)

    def table_version(self, name: str | TableEntry | TableName, starting_timestamp: Any = None) -> int:
        """The current version of a table, or the first one at or after a time; a cheap request."""
        parsed = name if isinstance(name, TableName) else TableName.parse(str(name))
        moment = None if starting_timestamp is None else protocol_timestamp(starting_timestamp)
        return self._rest.version(parsed, moment)

    def close(self) -> None:
        """Close the connections to the server."""
        self._rest.transport.close()

    def __enter__(self) -> SharingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SharingClient({self.profile.endpoint!r})"
