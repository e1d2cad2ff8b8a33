"""The REST calls of the sharing protocol, one method each.

Wire shapes stay here: callers see entries, headers, Arrow batches and credentials. Requests announce what
this client understands in the `delta-sharing-capabilities` header: both response formats, every reader
feature of the registry, and the closing `endStreamAction`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import httpx

from lakepass.reader.errors import SharingError
from lakepass.reader.features import FEATURES
from lakepass.reader.log.timeline import parse_timestamp
from lakepass.reader.sharing.actions import BrokenOffError, End, Files, Header, parse
from lakepass.reader.sharing.listings import Listing, Schema, Share, TableEntry
from lakepass.reader.sharing.names import TableName, encoded
from lakepass.reader.sharing.transport import Transport

ResponseFormat = Literal["delta,parquet", "delta", "parquet"]
Item = TypeVar("Item")

PAGE_FILES = 10_000
"""Files asked for at a time: a page is short enough to ask for again when it breaks off."""
_BUFFERED_FILES = 2 * PAGE_FILES
_PAGE_ATTEMPTS = 4

_FEATURES = ",".join(sorted({one.name.lower() for one in FEATURES.values() if one.supported}))


class Rest:
    """The calls of one profile."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def shares(self) -> Listing[Share]:
        """List Shares."""
        return self._listing("/shares", Share.parse)

    def schemas(self, share: str) -> Listing[Schema]:
        """List Schemas in a Share."""
        return self._listing(f"/shares/{encoded(share)}/schemas", Schema.parse)

    def tables(self, share: str, schema: str) -> Listing[TableEntry]:
        """List Tables in a Schema."""
        return self._listing(f"/shares/{encoded(share)}/schemas/{encoded(schema)}/tables", TableEntry.parse)

    def all_tables(self, share: str) -> Listing[TableEntry]:
        """List all Tables in a Share."""
        return self._listing(f"/shares/{encoded(share)}/all-tables", TableEntry.parse)

    def _listing(self, path: str, item: Callable[[Mapping[str, Any]], Item]) -> Listing[Item]:
        def page(token: str | None) -> tuple[list[Item], str | None]:
            answer, _ = self.transport.json("GET", path, params={"pageToken": token} if token else None)
            try:
                return [item(one) for one in answer.get("items") or []], answer.get("nextPageToken") or None
            except (KeyError, TypeError, AttributeError):
                raise SharingError(f"GET {path}: the answer is not a list of named items.", 200) from None

        return Listing(page)

    def version(self, name: TableName, starting_timestamp: str | None = None) -> int:
        """Query Table Version."""
        path = f"{name.path}/version"
        params = {"startingTimestamp": starting_timestamp} if starting_timestamp else None
        with self.transport.stream("GET", path, params=params) as answer:
            version = _version(answer.headers)
        if version is None:
            raise SharingError(f"GET {path}: the answer has no Delta-Table-Version header.", 200)
        return version

    def metadata(
        self, name: TableName, *, version: int | None = None, timestamp: str | None = None
    ) -> Header:
        """Query Table Metadata, of the latest version or, with history sharing, another."""
        params = _given(version=version, timestamp=timestamp)
        for action in self._actions("GET", f"{name.path}/metadata", params, None, "delta,parquet"):
            if isinstance(action, Header):
                return action
        raise AssertionError("parse() yields a header or fails")

    def query(
        self,
        name: TableName,
        body: Mapping[str, Any],
        accepted: ResponseFormat = "delta,parquet",
        *,
        page_files: int = PAGE_FILES,
    ) -> Generator[Header | Files | End]:
        """Read Data from a Table: a header, then the files of all pages; the first page's end comes last."""
        yield from self._pages("POST", f"{name.path}/query", {}, {**body, "maxFiles": page_files}, accepted)

    def changes(
        self, name: TableName, params: Mapping[str, str], accepted: ResponseFormat = "delta,parquet"
    ) -> Iterator[Header | Files | End]:
        """Read Change Data Feed from a Table."""
        asked = {**params, "maxFiles": str(PAGE_FILES)}
        yield from self._pages("GET", f"{name.path}/changes", asked, None, accepted)

    def credentials(self, name: TableName, location: str | None = None) -> dict[str, Any]:
        """Generate Temporary Table Credential, for the root or another location of the table."""
        path = f"{name.path}/temporary-table-credentials"
        body = {"location": location} if location else None
        answer, _ = self.transport.json("POST", path, body=body)
        return answer

    def _pages(
        self,
        method: str,
        path: str,
        params: dict[str, str],
        body: dict[str, Any] | None,
        accepted: ResponseFormat,
    ) -> Iterator[Header | Files | End]:
        fields: dict[str, Any] = params if body is None else body
        first: Header | None = None
        first_end: End | None = None
        while True:
            end: End | None = None
            for action in self._page(method, path, params, body, accepted):
                if isinstance(action, End):
                    end = action
                elif isinstance(action, Header) and first is not None and action == first:
                    continue  # every page repeats the header
                else:
                    if isinstance(action, Header):
                        self._same_version(method, path, first, action)
                        first = first or action
                    yield action
            first_end = first_end or end
            if end is None or end.next_page_token is None:
                break
            fields["pageToken"] = end.next_page_token
            # A refresh token is for a whole answer; the protocol refuses it beside a page token.
            fields.pop("includeRefreshToken", None)
            fields.pop("refreshToken", None)
        if first_end is not None:
            yield first_end

    @staticmethod
    def _same_version(method: str, path: str, first: Header | None, header: Header) -> None:
        if first is not None and first.version != header.version:
            raise SharingError(
                f"{method} {path}: the pages of the answer are of different versions. Try again."
            )

    def _page(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        body: Mapping[str, Any] | None,
        accepted: ResponseFormat,
    ) -> Iterator[Header | Files | End]:
        """One page, whole: if it breaks off it is asked for again, before any of it is given out.

        A server that does not page may send any number of files; what goes beyond the buffer is given out as
        it comes, and a break after that is an error.
        """
        for attempt in range(1, _PAGE_ATTEMPTS + 1):
            held: list[Header | Files | End] = []
            count, streaming = 0, False
            try:
                for action in self._actions(method, path, params, body, accepted):
                    if streaming:
                        yield action
                        continue
                    held.append(action)
                    count += len(action.batch) if isinstance(action, Files) else 0
                    if count > _BUFFERED_FILES:
                        streaming = True
                        yield from held
            except BrokenOffError:
                if streaming or attempt == _PAGE_ATTEMPTS:
                    raise
                continue
            if not streaming:
                yield from held
            return

    def _actions(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        body: Mapping[str, Any] | None,
        accepted: ResponseFormat,
    ) -> Iterator[Header | Files | End]:
        capabilities = f"responseformat={accepted};readerfeatures={_FEATURES};includeendstreamaction=true"
        headers = {"delta-sharing-capabilities": capabilities, "Accept-Encoding": "gzip"}
        asked = f"{method} {path}"
        with self.transport.stream(method, path, params=params, body=body, headers=headers) as answer:
            agreed = _capabilities(answer.headers.get("delta-sharing-capabilities", ""))
            actions = parse(
                _chunks(answer, asked),
                asked=asked,
                version=_version(answer.headers),
                end_promised=agreed.get("includeendstreamaction") == "true",
            )
            for action in actions:
                if isinstance(action, Header) and action.delta and accepted == "parquet":
                    raise SharingError(f"{asked}: the server answered in a format it was not asked for.")
                yield action


def _chunks(answer: httpx.Response, asked: str) -> Iterator[bytes]:
    try:
        yield from answer.iter_bytes()
    except httpx.HTTPError as error:
        raise BrokenOffError(f"{asked}: the answer broke off: {type(error).__name__}. Try again.") from None


def _version(headers: httpx.Headers) -> int | None:
    value = headers.get("delta-table-version", "")
    return int(value) if value.isdigit() else None


def _capabilities(header: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in header.lower().split(";"))
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip()}


def _given(**params: object) -> dict[str, str]:
    return {name: str(value) for name, value in params.items() if value is not None}


def protocol_timestamp(moment: datetime | str) -> str:
    """A moment in the protocol's Timestamp Format: ISO 8601 in UTC.

    >>> protocol_timestamp("2024-03-01 12:00:00+02:00")
    '2024-03-01T10:00:00Z'
    """
    parse_timestamp(moment)  # says what a timestamp is, as `dir` mode does
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
