"""What a recipient reads of a table: version, metadata, files, changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lakepass.broker.answers import NO_STORE
from lakepass.broker.authentication import Caller
from lakepass.broker.bodies import json_object
from lakepass.broker.catalog.async_queries import fetch_query, remember_query
from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.errors import InvalidParameter, UnsupportedOperation
from lakepass.broker.protocol.capabilities import (
    FILE_ID_HEADER,
    HEADER,
    Capabilities,
    Format,
    parse_file_id_hash,
)
from lakepass.broker.protocol.requests import ChangesRequest, QueryRequest, parse_max_files, version_parameter
from lakepass.broker.protocol.state_lines import query_status_line
from lakepass.broker.protocol.timestamps import parse_timestamp
from lakepass.broker.routes.table_documentation import CHANGES, METADATA, QUERY, QUERY_FETCH, VERSION
from lakepass.broker.state import Broker, CurrentBroker, CurrentCaller, for_recipient
from lakepass.broker.tables.answer import Answer
from lakepass.broker.tables.failures import EXPECTED, translated
from lakepass.broker.tables.queries import (
    Asked,
    answer_changes,
    answer_metadata,
    answer_query,
    metadata_answer,
)
from lakepass.broker.tables.served import ServedTable
from lakepass.broker.tables.versions import checked_version, version_from
from lakepass.reader.snapshot import Snapshot

router = APIRouter(tags=["Tables"])

NDJSON = "application/x-ndjson; charset=utf-8"
_TABLE = "/shares/{share}/schemas/{schema}/tables/{table}"

CapabilitiesHeader = Annotated[
    str | None,
    Header(
        alias=HEADER,
        description="Such as responseformat=delta;readerfeatures=deletionvectors.",
    ),
]
FileIdHeader = Annotated[
    str | None,
    Header(alias=FILE_ID_HEADER, description="parquet or delta: which kind of file ids is wanted."),
]


@router.get(f"{_TABLE}/version", summary="Query a table's version", openapi_extra=VERSION)
@for_recipient
async def get_version(broker: Broker, caller: Caller, request: Request) -> Response:
    """The latest version, or the earliest at or after a time, in the header Delta-Table-Version."""
    row = await broker.granted_table(caller, **request.path_params)
    starting = request.query_params.get("startingTimestamp")
    if starting is None:
        version = (await _latest(broker, row)).version
    else:
        _need_history(row)
        moment = parse_timestamp("startingTimestamp", starting)
        version = await _work(broker, row, _version_from, broker.tables.table(row), row, moment)
    return Response(b"", 200, {**NO_STORE, "Delta-Table-Version": str(version)})


router.head(_TABLE, summary="Query a table's version (deprecated form)", openapi_extra=VERSION)(get_version)


def _version_from(served: ServedTable, row: TableRow, moment: datetime) -> int:
    latest = served.latest()
    return checked_version(row, version_from(served, latest, moment), latest, "startingTimestamp")


@router.get(f"{_TABLE}/metadata", summary="Query a table's metadata", openapi_extra=METADATA)
@for_recipient
async def get_metadata(broker: Broker, caller: Caller, request: Request) -> Response:
    """Protocol and metadata, as two lines."""
    row = await broker.granted_table(caller, **request.path_params)
    version, timestamp = (request.query_params.get(name) for name in ("version", "timestamp"))
    if version is not None and timestamp is not None:
        raise InvalidParameter("Please only provide one of version and timestamp.")
    wanted = version_parameter("version", version)
    if wanted is not None or timestamp is not None:
        _need_history(row)
    if timestamp is not None:
        parse_timestamp("timestamp", timestamp)
    able = Capabilities.parse(request.headers.get(HEADER))
    if wanted is None and timestamp is None:
        answer = metadata_answer(row, able, await _latest(broker, row))
    else:
        asked = _asked(broker, row, caller, able, None)
        answer = await _work(broker, row, answer_metadata, asked, wanted, timestamp)
    # Two lines and no end of a stream: promising one would make a client miss it.
    headers = {HEADER: able.answer(answer.form, end_stream=False), "Delta-Table-Version": str(answer.version)}
    return Response(answer.first() or b"", 200, {**NO_STORE, **headers}, NDJSON)


async def _latest(broker: Broker, row: TableRow) -> Snapshot:
    try:
        return await broker.freshness.latest(row.location, broker.tables.table(row))
    except EXPECTED as error:
        raise translated(error, row) from error


@router.post(f"{_TABLE}/query", summary="Read data from a table", openapi_extra=QUERY)
async def query_table(  # noqa: PLR0917 - as above
    request: Request,
    broker: CurrentBroker,
    caller: CurrentCaller,
    share: str,
    schema: str,
    table: str,
    capabilities: CapabilitiesHeader = None,
    file_id_hash: FileIdHeader = None,
) -> Response:
    """The files of a version, or those that a range of versions changed, as lines with pre-signed URLs."""
    row = await broker.granted_table(caller, share, schema, table)
    able, hashed = Capabilities.parse(capabilities), parse_file_id_hash(file_id_hash)
    body = await json_object(request)
    wanted = QueryRequest.parse(body)
    _check_query(row, wanted)
    if able.async_query:
        if not wanted.idempotency_key:
            raise InvalidParameter("idempotency_key is required for async query.")
        query_id = await _work(
            broker, row, remember_query, broker.catalog.engine, caller, row, wanted.idempotency_key, body
        )
        # The Spark client refuses any answer to a query that has no version.
        headers = {"Delta-Table-Version": str((await _latest(broker, row)).version)}
        form: Format = "delta" if able.formats == {"delta"} else "parquet"
        headers[HEADER] = able.answer(form, end_stream=False)
        return Response(query_status_line(query_id), 200, {**NO_STORE, **headers}, NDJSON)

    def find() -> Answer:
        return answer_query(_asked(broker, row, caller, able, hashed), wanted)

    return await _answer(broker, row, find, hashed)


@router.post(
    f"{_TABLE}/queries/{{query_id}}", summary="Fetch an asynchronous query", openapi_extra=QUERY_FETCH
)
async def fetch_table_query(  # noqa: PLR0917 - as above
    request: Request,
    broker: CurrentBroker,
    caller: CurrentCaller,
    share: str,
    schema: str,
    table: str,
    query_id: str,
    capabilities: CapabilitiesHeader = None,
    file_id_hash: FileIdHeader = None,
) -> Response:
    """The answer to a query that was accepted before."""
    row = await broker.granted_table(caller, share, schema, table)
    able, hashed = Capabilities.parse(capabilities), parse_file_id_hash(file_id_hash)
    body = await json_object(request)
    stored = await _work(broker, row, fetch_query, broker.catalog.engine, caller, row, query_id)
    pages = {name: body[name] for name in ("maxFiles", "pageToken") if body.get(name) is not None}
    wanted = QueryRequest.parse({**stored, **pages})
    _check_query(row, wanted)

    def find() -> Answer:
        return answer_query(_asked(broker, row, caller, able, hashed), wanted)

    return await _answer(broker, row, find, hashed)


@router.get(f"{_TABLE}/changes", summary="Read a table's change data feed", openapi_extra=CHANGES)
async def get_changes(  # noqa: PLR0917 - as above
    request: Request,
    broker: CurrentBroker,
    caller: CurrentCaller,
    share: str,
    schema: str,
    table: str,
    capabilities: CapabilitiesHeader = None,
    file_id_hash: FileIdHeader = None,
) -> Response:
    """The files that tell what changed between two versions or times."""
    row = await broker.granted_table(caller, share, schema, table)
    able, hashed = Capabilities.parse(capabilities), parse_file_id_hash(file_id_hash)
    _need_url(row)
    parse_max_files(request.query_params.get("maxFiles"))
    if not row.history_shared:
        raise InvalidParameter(f"cdf is not enabled on table {row.full_name}: its history is not shared.")
    wanted = ChangesRequest.parse(request.query_params)
    for name, text in (
        ("startingTimestamp", wanted.starting_timestamp),
        ("endingTimestamp", wanted.ending_timestamp),
    ):
        if text is not None:
            parse_timestamp(name, text)

    def find() -> Answer:
        return answer_changes(_asked(broker, row, caller, able, hashed), wanted)

    return await _answer(broker, row, find, hashed)


def _check_query(row: TableRow, wanted: QueryRequest) -> None:
    _need_url(row)
    if wanted.needs_history:
        _need_history(row)
    if wanted.timestamp is not None:
        parse_timestamp("timestamp", wanted.timestamp)


def _need_url(row: TableRow) -> None:
    if "url" not in row.access_modes:
        raise UnsupportedOperation(
            f"'{row.full_name}' is shared with the access modes {', '.join(row.access_modes)} only: read "
            "it with "
            "temporary credentials."
        )


def _need_history(row: TableRow) -> None:
    if not row.history_shared:
        raise InvalidParameter(
            "Reading table by version or timestamp is not supported because history sharing is not "
            "enabled on table: "
            f"{row.full_name}."
        )


def _asked(
    broker: Broker, row: TableRow, caller: Any, capabilities: Capabilities, id_hash: Format | None
) -> Asked:
    return Asked(
        row,
        broker.tables.table(row),
        caller,
        capabilities,
        id_hash,
        broker.tokens,
        broker.settings.server,
    )


async def _work(broker: Broker, row: TableRow, work: Callable[..., Any], *args: Any) -> Any:
    try:
        return await broker.workers.run(row.location, work, *args)
    except EXPECTED as error:
        raise translated(error, row) from error


async def _answer(
    broker: Broker, row: TableRow, find: Callable[[], Answer], id_hash: Format | None = None
) -> Response:
    """Start an answer on a thread and send it as it is made."""

    def begin() -> tuple[Answer, bytes | None, bytes | None]:
        answer = find()
        first = answer.first()
        second = answer.next() if first is not None else None
        broker.tables.trim()
        return answer, first, second

    answer, first, second = await _work(broker, row, begin)
    headers = {**NO_STORE, HEADER: answer.capabilities.answer(answer.form)}
    if answer.version is not None:
        headers["Delta-Table-Version"] = str(answer.version)
    if id_hash is not None:
        headers[FILE_ID_HEADER] = id_hash
    if second is None:
        return Response(first or b"", 200, headers, NDJSON)

    async def chunks() -> AsyncIterator[bytes]:
        chunk: bytes | None = second
        try:
            yield first or b""
            while chunk is not None:
                yield chunk
                chunk = await broker.workers.run(row.location, answer.next)
        finally:
            if chunk is not None:  # the client has gone: nothing more is read or signed for it
                broker.workers.leave(answer.close)

    return StreamingResponse(chunks(), 200, headers, NDJSON)
