"""From a request about a table to its answer: which version, which format, which files.

Everything that can be refused without the store is refused first. These functions read the log and so run
on the reader's threads, never on the event loop.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lakepass.broker.authentication import Caller
from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.config import ServerSettings
from lakepass.broker.errors import InvalidParameter
from lakepass.broker.protocol.capabilities import Capabilities, Format
from lakepass.broker.protocol.file_lines import FileLines
from lakepass.broker.protocol.requests import ChangesRequest, QueryRequest
from lakepass.broker.protocol.state_lines import has_change_feed, metadata_line, protocol_line
from lakepass.broker.protocol.timestamps import parse_timestamp
from lakepass.broker.signed_tokens import TokenSigner
from lakepass.broker.tables.answer import Answer
from lakepass.broker.tables.commit_answer import CommitQuery, commit_chunks
from lakepass.broker.tables.pruning import pruner
from lakepass.broker.tables.served import ServedTable
from lakepass.broker.tables.snapshot_answer import SnapshotQuery, snapshot_chunks
from lakepass.broker.tables.urls import FileUrls
from lakepass.broker.tables.versions import checked_version, version_at, version_from
from lakepass.reader.log.actions import Metadata
from lakepass.reader.schema import parse_schema
from lakepass.reader.snapshot import Snapshot


@dataclass(frozen=True)
class Asked:
    """What a request about a table brings with it."""

    table: TableRow
    served: ServedTable
    caller: Caller
    capabilities: Capabilities
    id_hash: Format | None
    tokens: TokenSigner
    settings: ServerSettings

    def purpose(self, kind: str) -> str:
        """What a token of this table and caller is signed for."""
        return f"{kind}:{self.table.id}:{self.caller.recipient_id}"

    def lines(self, form: Format, urls: FileUrls, metadata: Metadata) -> FileLines:
        """The writer of file lines."""
        return FileLines(
            form,
            self.id_hash or form,
            urls.expires_at_ms,
            urls.sign,
            urls.sign_one,
            _physical_partition_columns(metadata),
        )


def answer_metadata(asked: Asked, version: int | None, timestamp: str | None) -> Answer:
    """Protocol and metadata, of the latest version or of another."""
    if version is not None or timestamp is not None:
        snapshot = asked.served.at(_version(asked, version, timestamp))
    else:
        snapshot = asked.served.latest()
    return metadata_answer(asked.table, asked.capabilities, snapshot)


def metadata_answer(table: TableRow, capabilities: Capabilities, snapshot: Snapshot) -> Answer:
    """Protocol and metadata of a snapshot that is there already: nothing is read."""
    form = capabilities.choose([(snapshot.protocol, snapshot.metadata)])
    lines = protocol_line(snapshot.protocol, form) + metadata_line(snapshot.metadata, form, table)
    return Answer(table, snapshot.version, form, capabilities, iter([lines]))


def answer_query(asked: Asked, request: QueryRequest) -> Answer:
    """The files of a version, or those that a range of versions changed."""
    if request.starting_version is not None:
        return _answer_range(asked, request)
    page = _opened_page(asked, request.page_token, request.fingerprint())
    refreshed = None
    if request.refresh_token is not None:
        refreshed = asked.tokens.open(
            asked.purpose("refresh"), request.refresh_token, name="the refresh token"
        )
    snapshot = _queried_snapshot(asked, request, page, refreshed)
    form = asked.capabilities.choose([(snapshot.protocol, snapshot.metadata)])
    if page is not None and page["order"] != _order(snapshot, form):
        raise InvalidParameter(
            "The page token has expired: the table's log was rewritten, or the answer is in another format "
            "now. Start again without it."
        )
    lines = asked.lines(form, asked.served.urls(asked.settings.url_lifetime), snapshot.metadata)
    time_travel = request.version is not None or request.timestamp is not None
    # In delta format the file's version is not said: the action is as it stands in the log.
    query = SnapshotQuery(
        file_version=snapshot.version if time_travel and form == "parquet" else None,
        prune=pruner(snapshot, request.predicate_hints, request.json_predicate_hints),
        limit=request.limit_hint,
        max_files=request.max_files,
        skip=page["skip"] if page else 0,
        rows_given=page["rows"] if page else 0,
        end_stream=asked.capabilities.end_stream,
    )
    if request.include_refresh_token:
        query.refresh_token = asked.tokens.sign(
            asked.purpose("refresh"), {"version": snapshot.version}, asked.settings.refresh_token_lifetime
        )
    query.next_page = _next_page(
        asked, request.fingerprint(), {"version": snapshot.version, "order": _order(snapshot, form)}
    )
    if page is not None and request.max_files is None:
        query.end_stream = True  # a page always says how it ends
    chunks = snapshot_chunks(snapshot, lines, asked.table, query)
    return Answer(asked.table, snapshot.version, form, asked.capabilities, chunks)


def _queried_snapshot(
    asked: Asked, request: QueryRequest, page: dict[str, Any] | None, refreshed: dict[str, Any] | None
) -> Snapshot:
    if page is not None:
        return asked.served.at(page["version"])
    if refreshed is not None:
        return asked.served.at(refreshed["version"])
    if request.version is not None or request.timestamp is not None:
        return asked.served.at(_version(asked, request.version, request.timestamp))
    return asked.served.latest()


def _answer_range(asked: Asked, request: QueryRequest) -> Answer:
    start = request.starting_version
    assert start is not None
    latest = asked.served.latest()
    checked_version(asked.table, start, latest, "startingVersion")
    end = latest.version if request.ending_version is None else request.ending_version
    if end > latest.version:
        raise InvalidParameter(
            f"End version cannot be greater than the latest version of the table: {end} > {latest.version}."
        )
    page = _opened_page(asked, request.page_token, request.fingerprint())
    end = page["end"] if page else end
    opening = asked.served.at(start)
    states = [(latest.protocol, latest.metadata), (opening.protocol, opening.metadata)]
    form = asked.capabilities.choose(states)
    query = CommitQuery(
        protocol=opening.protocol,
        metadata=opening.metadata,
        metadata_version=start,
        first_version=start,
        current=(opening.protocol, opening.metadata),
        capabilities=asked.capabilities,
        changes=False,
        historical_protocol=request.include_historical_protocol,
        max_files=request.max_files,
        next_page=_next_page(asked, request.fingerprint(), {"end": end}),
    )
    return _commit_answer(asked, form, query, (start, end), page)


def answer_changes(asked: Asked, request: ChangesRequest) -> Answer:
    """The change data feed of a range of versions."""
    latest = asked.served.latest()
    page = _opened_page(asked, request.page_token, request.fingerprint())
    if page is not None:
        start, end, described = page["start"], page["end"], asked.served.at(page["described"])
    else:
        start, end = _changed_range(asked, request, latest)
        described = asked.served.at(start) if request.include_historical_metadata else latest
        _check_change_feed(asked, start, end)
    opening = asked.served.at(start)
    states = [(latest.protocol, latest.metadata), (opening.protocol, opening.metadata)]
    form = asked.capabilities.choose(states)
    query = CommitQuery(
        protocol=described.protocol,
        metadata=described.metadata,
        metadata_version=described.version,
        first_version=start,
        current=(opening.protocol, opening.metadata),
        capabilities=asked.capabilities,
        changes=True,
        historical_metadata=request.include_historical_metadata,
        max_files=request.max_files,
        next_page=_next_page(
            asked, request.fingerprint(), {"start": start, "end": end, "described": described.version}
        ),
    )
    return _commit_answer(asked, form, query, (start, end), page)


def _commit_answer(
    asked: Asked, form: Format, query: CommitQuery, bounds: tuple[int, int], page: dict[str, Any] | None
) -> Answer:
    first, end = bounds
    if page is not None:
        first = page["version"]
        reached = asked.served.at(first)
        current = (reached.protocol, reached.metadata)
        query = replace(query, skip=page["skip"], current=current, resumed=True)
    # A page always says how it ends.
    end_stream = asked.capabilities.end_stream or (page is not None and query.max_files is None)
    query = replace(query, end_stream=end_stream)
    urls = asked.served.urls(asked.settings.url_lifetime)
    chunks = commit_chunks(
        asked.served.commits(first, end),
        lambda metadata: asked.lines(form, urls, metadata),
        asked.table,
        query,
    )
    return Answer(asked.table, bounds[0], form, asked.capabilities, chunks)


def _changed_range(asked: Asked, request: ChangesRequest, latest: Snapshot) -> tuple[int, int]:
    table = asked.table
    if request.starting_version is not None:
        start = request.starting_version
    else:
        moment = _moment("startingTimestamp", request.starting_timestamp)
        # A time before the first version is refused: what came before it cannot be told.
        version_at(asked.served, latest, moment)
        start = version_from(asked.served, latest, moment)
    if request.ending_version is not None:
        end = request.ending_version
    elif request.ending_timestamp is not None:
        end = version_at(asked.served, latest, _moment("endingTimestamp", request.ending_timestamp))
    else:
        end = latest.version
    if start > latest.version:
        raise InvalidParameter(
            f"Provided Start version({start}) for reading change data is invalid. Start version cannot "
            "be greater than "
            f"the latest version of the table({latest.version})."
        )
    if end < start:
        raise InvalidParameter(
            f"CDF range from start {start} to end {end} was invalid. End cannot be before start."
        )
    checked_version(table, start, latest, "startingVersion", what="changes")
    return start, min(end, latest.version)


def _check_change_feed(asked: Asked, start: int, end: int) -> None:
    """The feed must have been on at every version of the range: a gap would lose changes in silence."""
    states = [(start, asked.served.at(start).metadata)]
    states += [
        (commit.version, commit.metadata)
        for commit in asked.served.commits(start, end)
        if commit.metadata is not None and commit.version > start
    ]
    for version, metadata in states:
        if not has_change_feed(metadata):
            raise InvalidParameter(
                f"Error getting change data for range [{start}, {end}] as change data was not recorded for "
                f"version [{version}]: cdf is not enabled on table {asked.table.full_name} at version "
                f"{version}. Ask for a range in which it was."
            )


def _version(asked: Asked, version: int | None, timestamp: str | None) -> int:
    latest = asked.served.latest()
    if version is None:
        version = version_at(asked.served, latest, _moment("timestamp", timestamp))
    return checked_version(asked.table, version, latest, "version")


def _moment(name: str, text: str | None) -> datetime:
    return parse_timestamp(name, text)


def _opened_page(asked: Asked, token: str | None, fingerprint: str) -> dict[str, Any] | None:
    if token is None:
        return None
    page = asked.tokens.open(asked.purpose("page"), token)
    if page.pop("request") != fingerprint:
        raise InvalidParameter(
            "Query parameter mismatch detected for the next page query: send the same parameters."
        )
    return page


def _next_page(asked: Asked, fingerprint: str, fixed: dict[str, Any]) -> Callable[[dict[str, Any]], str]:
    return lambda reached: asked.tokens.sign(
        asked.purpose("page"),
        {"request": fingerprint, **fixed, **reached},
        asked.settings.page_token_lifetime,
    )


def _order(snapshot: Snapshot, form: Format) -> str:
    """Equal where the same files of the log are replayed in the same way, and so in the same order."""
    return hashlib.sha256(f"{form}:{snapshot.replay_id}".encode()).hexdigest()[:16]


def _physical_partition_columns(metadata: Metadata) -> list[str]:
    """Partition columns as the log's `partitionValues` name them."""
    columns = list(metadata.partition_columns)
    if not columns or metadata.configuration.get("delta.columnMapping.mode", "none").lower() == "none":
        return columns
    physical = {field.name: field.physical_name for field in parse_schema(metadata.schema_string).fields}
    return [physical.get(name, name) for name in columns]
