"""The lines that are not files: protocol, metadata, the end of a stream, the status of a query."""

from __future__ import annotations

from typing import Any

import orjson

from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.protocol.capabilities import Format
from lakepass.reader.log.actions import Metadata, Protocol


def protocol_line(protocol: Protocol, form: Format) -> bytes:
    """The protocol: the sharing protocol's own in parquet format, the table's in delta format."""
    if form == "parquet":
        return _line({"protocol": {"minReaderVersion": 1}})
    described: dict[str, Any] = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    if protocol.reader_features is not None:
        described["readerFeatures"] = list(protocol.reader_features)
    if protocol.writer_features is not None:
        described["writerFeatures"] = list(protocol.writer_features)
    return _line({"protocol": {"deltaProtocol": described}})


def metadata_line(metadata: Metadata, form: Format, table: TableRow, version: int | None = None) -> bytes:
    """The metadata, with how the table can be read; `version` where the answer spans several."""
    described: dict[str, Any] = {"id": metadata.id}
    if metadata.name is not None:
        described["name"] = metadata.name
    if metadata.description is not None:
        described["description"] = metadata.description
    if form == "parquet":
        described |= {
            "format": {"provider": metadata.format.provider},
            "schemaString": metadata.schema_string,
            "partitionColumns": list(metadata.partition_columns),
        }
        if has_change_feed(metadata):
            described["configuration"] = {"enableChangeDataFeed": "true"}
        return _line({"metaData": described | _sharing_fields(table, version)})
    described |= {
        "format": {"provider": metadata.format.provider, "options": dict(metadata.format.options)},
        "schemaString": metadata.schema_string,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
    }
    if metadata.created_time is not None:
        described["createdTime"] = metadata.created_time
    return _line({"metaData": {**_sharing_fields(table, version), "deltaMetadata": described}})


def describe_access(table: TableRow) -> dict[str, Any]:
    """Where a table lies and how it is read: the same in lists and in metadata.

    The specification asks for the location where `dir` is offered, and recommends it otherwise; a recipient
    with `url` only has no use for it and is not told where the provider keeps the data.
    """
    described: dict[str, Any] = {}
    if "dir" in table.access_modes:
        described["location"] = table.location
        if table.auxiliary_locations:
            described["auxiliaryLocations"] = list(table.auxiliary_locations)
    described["accessModes"] = list(table.access_modes)
    return described


def has_change_feed(metadata: Metadata) -> bool:
    """Whether the table records its changes at this version."""
    return metadata.configuration.get("delta.enableChangeDataFeed", "").lower() == "true"


def end_line(
    *,
    expires_at_ms: int | None = None,
    next_page_token: str | None = None,
    refresh_token: str | None = None,
    error: str | None = None,
) -> bytes:
    """The end of a stream."""
    described: dict[str, Any] = {
        "refreshToken": refresh_token,
        "nextPageToken": next_page_token,
        "minUrlExpirationTimestamp": expires_at_ms,
        "errorMessage": error,
    }
    return _line({"endStreamAction": {name: value for name, value in described.items() if value is not None}})


def query_status_line(query_id: str) -> bytes:
    """That a query was accepted and is to be asked for by its id."""
    return _line({"queryStatus": {"queryId": query_id, "status": "pending"}})


def _sharing_fields(table: TableRow, version: int | None) -> dict[str, Any]:
    fields = describe_access(table)
    if version is not None:
        fields["version"] = version
    return fields


def _line(content: dict[str, Any]) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)
