"""The options of the `lakepass` data source, read once and checked, whatever case they were typed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakepass.spark_conf.errors import SparkReadError
from lakepass.spark_conf.opening import Reference, check_mode

_KNOWN = {
    "path",
    "table",
    "mode",
    "columns",
    "filter",
    "version",
    "versionasof",
    "timestamp",
    "timestampasof",
    "readchangefeed",
    "startingversion",
    "startingtimestamp",
    "endingversion",
    "endingtimestamp",
    "maxfilespertrigger",
    "ignoredeletes",
    "ignorechanges",
    "skipchangecommits",
    "partitionbytes",
}


@dataclass(frozen=True)
class Options:
    """What a read of the data source was asked for."""

    reference: Reference
    columns: tuple[str, ...] | None = None
    version: int | None = None
    timestamp: str | None = None
    change_feed: bool = False
    starting_version: int | None = None
    """For a stream, -1 stands for `latest`."""
    starting_timestamp: str | None = None
    ending_version: int | None = None
    ending_timestamp: str | None = None
    max_files: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    partition_bytes: int | None = None
    filter: str | None = None

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """The options as Spark hands them over."""
        options = {name.lower(): value for name, value in given.items()}
        unknown = sorted(set(options) - _KNOWN)
        if unknown:
            raise SparkReadError(
                f"{unknown[0]!r} is not an option of the lakepass data source; known are "
                f"{', '.join(sorted(_KNOWN))}."
            )
        text = options.get("path") or options.get("table")
        if not text:
            raise SparkReadError(
                'Name a table: .load("profile#share.schema.table"), or the option "table" in SQL.'
            )
        parsed = cls(
            Reference(text, check_mode(options.get("mode", "auto"))),
            split_columns(options["columns"]) if options.get("columns") else None,
            _number(options, "version", "versionasof"),
            options.get("timestamp") or options.get("timestampasof"),
            _flag(options, "readchangefeed"),
            -1 if options.get("startingversion") == "latest" else _number(options, "startingversion"),
            options.get("startingtimestamp"),
            _number(options, "endingversion"),
            options.get("endingtimestamp"),
            _number(options, "maxfilespertrigger", least=1),
            _flag(options, "ignoredeletes"),
            _flag(options, "ignorechanges"),
            _flag(options, "skipchangecommits"),
            _number(options, "partitionbytes", least=1024),
            options.get("filter") or None,
        )
        if parsed.version is not None and parsed.timestamp is not None:
            raise SparkReadError("Give a version or a timestamp, not both.")
        return parsed


def split_columns(text: str) -> tuple[str, ...]:
    """Names between commas; a name that holds one is written between backticks.

    >>> split_columns("id, `a, b`, `tick``ed`")
    ('id', 'a, b', 'tick`ed')
    """
    names, name, quoted, at = [], "", False, 0
    while at < len(text):
        character = text[at]
        if character == "`":
            if quoted and text[at + 1 : at + 2] == "`":
                name += "`"
                at += 1
            else:
                quoted = not quoted
        elif character == "," and not quoted:
            names.append(name)
            name = ""
        elif quoted or not character.isspace() or name:
            name += character
        at += 1
    names.append(name)
    found = tuple(each.rstrip() for each in names)
    if quoted or not all(found):
        raise SparkReadError(f"columns={text!r} is not a list of names between commas.")
    return found


def _number(options: Mapping[str, str], *names: str, least: int = 0) -> int | None:
    for name in names:
        value = options.get(name)
        if value is not None:
            if not value.strip().isdigit() or int(value) < least:
                raise SparkReadError(f"{name}={value!r} is not a whole number from {least} on.")
            return int(value)
    return None


def _flag(options: Mapping[str, str], name: str) -> bool:
    value = options.get(name, "false").strip().lower()
    if value not in ("true", "false"):
        raise SparkReadError(f"{name}={value!r} is neither true nor false.")
    return value == "true"
