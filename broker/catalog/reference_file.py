"""Shares in a YAML file, as the Delta Sharing reference server writes them.

The `shares` list is the same in both formats. A whole file of the reference server (`version`, `host`,
`port`, `endpoint`, `authorization`, …) is translated into lakepass' own keys, so that it can be served as
it is. As there, the server reads the stores with the identity of its environment.

Two things differ. Azure's older `wasbs` names the same place as `abfss`, which is how it is served. An id is
unique in its share there and on the whole server here: a table whose id an earlier share has taken gets one
made from its names.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lakepass.broker.catalog.names import check_name, name_key
from lakepass.reader.location import Location

logger = logging.getLogger(__name__)

_NOTHING_TO_SET = {
    "deltaTableCacheSize": "tables are kept within server.snapshot_memory",
    "stalenessAcceptable": "every answer is of the latest version",
    "evaluatePredicateHints": "conditions always leave out the files that they can",
    "evaluateJsonPredicateHints": "conditions always leave out the files that they can",
    "evaluateJsonPredicateHintsV2": "conditions always leave out the files that they can",
    "requestTimeoutSeconds": "answers are streamed; see server.request_timeout and server.send_timeout",
    "queryTablePageSizeLimit": "answers are streamed, in pages of any size",
}
_REFERENCE_KEYS = {
    "version",
    "host",
    "port",
    "endpoint",
    "authorization",
    "ssl",
    "preSignedUrlTimeoutSeconds",
    "queryTablePageTokenTtlMs",
    "refreshTokenTtlMs",
    *_NOTHING_TO_SET,
}
_BLOB_LOCATION = re.compile(r"wasbs?://([^/@]+@[^/.]+)\.blob\.(.+)", re.IGNORECASE)
_LAKEPASS_KEYS = {"server", "database", "admin", "credentials", "audit", "storage"}


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @field_validator("name", check_fields=False)
    @classmethod
    def _valid_name(cls, name: str) -> str:
        return check_name(name, dots=cls is FileShare)


class FileTable(_FileModel):
    """A table of the file; `historyShared` and `startVersion` as in the reference server."""

    name: str
    location: str
    id: str | None = Field(None, max_length=36)
    history_shared: bool = Field(False, alias="historyShared")
    start_version: int | None = Field(None, alias="startVersion", ge=0)
    auxiliary_locations: tuple[str, ...] = Field((), alias="auxiliaryLocations")
    access_modes: tuple[str, ...] = Field(("url",), alias="accessModes")

    @field_validator("location")
    @classmethod
    def _valid_location(cls, text: str) -> str:
        return str(_parse_location(text))

    @field_validator("id")
    @classmethod
    def _no_empty_id(cls, text: str | None) -> str | None:
        return text or None  # the reference server writes an empty one where there is none


class FileSchema(_FileModel):
    """A schema of the file."""

    name: str
    tables: tuple[FileTable, ...] = ()


class FileShare(_FileModel):
    """A share of the file."""

    name: str
    schemas: tuple[FileSchema, ...] = ()


def distinct(shares: tuple[FileShare, ...]) -> tuple[FileShare, ...]:
    """The shares with an id for one table each; raises `ValueError` for a name or id that comes twice."""
    _check_once("shares", (share.name for share in shares))
    taken: set[str] = set()
    kept = []
    for share in shares:
        _check_once(f"the share {share.name}", (schema.name for schema in share.schemas))
        for schema in share.schemas:
            _check_once(f"the schema {share.name}.{schema.name}", (table.name for table in schema.tables))
        ids = [table.id for schema in share.schemas for table in schema.tables if table.id is not None]
        _check_once(f"the share {share.name}", ids)
        kept.append(_without_ids(share, taken))
        taken.update(ids)
    return tuple(kept)


def _without_ids(share: FileShare, taken: set[str]) -> FileShare:
    def freed(table: FileTable) -> FileTable:
        return table.model_copy(update={"id": None}) if table.id in taken else table

    schemas = tuple(
        schema.model_copy(update={"tables": tuple(map(freed, schema.tables))}) for schema in share.schemas
    )
    return share.model_copy(update={"schemas": schemas})


def _check_once(where: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name_key(name) in seen:
            raise ValueError(f"{where}: {name!r} comes twice")
        seen.add(name_key(name))


def _parse_location(text: str) -> Location:
    blob = _BLOB_LOCATION.fullmatch(text)
    return Location.parse(f"abfss://{blob[1]}.dfs.{blob[2]}" if blob else text)


def from_reference_format(content: dict[str, Any]) -> dict[str, Any]:
    """The content in lakepass' own keys; unchanged when it is not in the reference server's format."""
    if not content.keys() & _REFERENCE_KEYS:
        return content
    unknown = content.keys() - _REFERENCE_KEYS - _LAKEPASS_KEYS - {"shares"}
    if unknown:
        raise ValueError(f"{sorted(unknown)[0]} is not a key of the reference server's format")
    if content.get("ssl"):
        raise ValueError(
            "ssl is not served by lakepass: put a proxy that ends TLS in front, and leave the key out"
        )
    if content.get("version", 1) != 1:
        raise ValueError(f"version is 1 in the format that lakepass knows, not {content['version']!r}")
    for key, why in _NOTHING_TO_SET.items():
        if key in content:
            logger.warning("%s of the reference server's file sets nothing here: %s", key, why)
    server = _server_settings(content)
    translated: dict[str, Any] = {"server": server, "shares": content.get("shares") or []}
    authorization = content.get("authorization")
    if authorization is not None:
        token = authorization.get("bearerToken") if isinstance(authorization, dict) else None
        if not token or len(authorization) > 1:
            raise ValueError("authorization holds one key, bearerToken, and it has a value")
        translated["bearer_token_sha256"] = hashlib.sha256(str(token).encode()).hexdigest()
    translated["storage"] = _ambient_storage(translated)
    # Keys of our own may stand beside theirs, and say more.
    own = {key: value for key, value in content.items() if key in _LAKEPASS_KEYS}
    if isinstance(own.get("server"), dict):
        own["server"] = {**server, **own["server"]}
    return {**translated, **own}


def _server_settings(content: dict[str, Any]) -> dict[str, Any]:
    server: dict[str, Any] = {}
    for theirs, ours in (("host", "host"), ("port", "port"), ("preSignedUrlTimeoutSeconds", "url_lifetime")):
        if content.get(theirs) is not None:
            server[ours] = content[theirs]
    if isinstance(content.get("endpoint"), str):
        server["prefix"] = content["endpoint"].rstrip("/")
    for theirs, ours in (
        ("queryTablePageTokenTtlMs", "page_token_lifetime"),
        ("refreshTokenTtlMs", "refresh_token_lifetime"),
    ):
        if content.get(theirs) is not None:
            if not isinstance(content[theirs], int):
                raise ValueError(f"{theirs} is a number of milliseconds, not {content[theirs]!r}")
            server[ours] = f"{content[theirs]}ms"
    return server


def _ambient_storage(content: dict[str, Any]) -> list[dict[str, Any]]:
    """One storage entry per bucket that the tables name, with the environment's own identity."""
    roots: dict[Location, dict[str, Any]] = {}
    for share in _members(content, "shares"):
        for schema in _members(share, "schemas"):
            for table in _members(schema, "tables"):
                text = table.get("location")
                location = _parse_location(text) if isinstance(text, str) else None
                if location is not None and location.cloud is not None:
                    root = Location(location.scheme, location.authority, "")
                    roots[root] = {"location": str(root), location.cloud: {}}
    return list(roots.values())


def _members(holder: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """What a list of the file holds. Another shape is passed over here: the settings name it as wrong."""
    found = holder.get(key)
    return [member for member in found if isinstance(member, dict)] if isinstance(found, list) else []
