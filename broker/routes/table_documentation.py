"""What the OpenAPI page says about the parameters that the table routes read by themselves."""

from __future__ import annotations

from typing import Any


def _field(kind: str, text: str) -> dict[str, Any]:
    return {"type": kind, "description": text}


def _body(properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"requestBody": {"required": False, "content": {"application/json": {"schema": schema}}}}


_PAGES = {
    "maxFiles": _field("integer", "Files per page; a page says with nextPageToken how to go on."),
    "pageToken": _field("string", "The nextPageToken of the page before, with the same other parameters."),
}

QUERY = _body(
    {
        "predicateHints": {
            "type": "array",
            "items": {"type": "string"},
            "description": "SQL conditions, joined by AND, that leave out files; best effort.",
        },
        "jsonPredicateHints": _field("string", "A condition as a JSON tree; best effort."),
        "limitHint": _field("integer", "Rows that the client wants; files beyond them may be left out."),
        "version": _field("integer", "The table as of this version; needs shared history."),
        "timestamp": _field("string", "The table as of this time; needs shared history."),
        "startingVersion": _field("integer", "What changed from this version on; needs shared history."),
        "endingVersion": _field("integer", "The last version of such a range."),
        "includeHistoricalProtocol": _field("boolean", "In a range, also give changes of the protocol."),
        **_PAGES,
        "includeRefreshToken": _field("boolean", "Also give a token that renews the URLs of this version."),
        "refreshToken": _field("string", "Such a token: the same version and files with new URLs."),
        "idempotencyKey": _field("string", "With asyncquery=true: the same key gives the same query."),
    }
)

QUERY_FETCH = _body(_PAGES)


def _parameter(name: str, kind: str, text: str, place: str = "query") -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "schema": {"type": kind},
        "description": text,
    }


_NAMES = [_parameter(name, "string", "In any case.", "path") for name in ("share", "schema", "table")]
_LOCATION = "The root (when left out) or one of the table's auxiliary locations."
CREDENTIALS: dict[str, Any] = {
    "parameters": _NAMES,
    **_body({"location": _field("string", _LOCATION)}),
}
CONTAINER_CREDENTIALS: dict[str, Any] = {"parameters": [*_NAMES, _parameter("location", "string", _LOCATION)]}
_CAPABILITIES = _parameter(
    "delta-sharing-capabilities",
    "string",
    "Such as responseformat=delta;readerfeatures=deletionvectors.",
    "header",
)
VERSION: dict[str, Any] = {
    "parameters": [
        *_NAMES,
        _parameter("startingTimestamp", "string", "Ask for the earliest version at or after this time."),
    ]
}
METADATA: dict[str, Any] = {
    "parameters": [
        *_NAMES,
        _CAPABILITIES,
        _parameter("version", "string", "A version of the table; needs shared history."),
        _parameter("timestamp", "string", "A time, such as 2022-01-01T00:00:00Z; needs shared history."),
    ]
}
CHANGES: dict[str, Any] = {
    "parameters": [
        _parameter("startingVersion", "string", "The first version; this or startingTimestamp is needed."),
        _parameter("startingTimestamp", "string", "The first version committed at or after this time."),
        _parameter("endingVersion", "string", "The last version; the latest when left out."),
        _parameter("endingTimestamp", "string", "The last version committed at or before this time."),
        _parameter("includeHistoricalMetadata", "string", "true: also give metadata where it changes."),
        _parameter("maxFiles", "string", _PAGES["maxFiles"]["description"]),
        _parameter("pageToken", "string", _PAGES["pageToken"]["description"]),
    ]
}
