"""The parameters of a query: the body of `/query`, and the query string of `/changes`.

Unknown fields are ignored, numbers may come as text, and a combination that means nothing is refused with
the parameter's name. Which of them a table allows is decided by the route.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from lakepass.broker.errors import InvalidParameter, MalformedRequest
from lakepass.broker.protocol.numbers import INT32_MAX, INT64_MAX, parse_integer


@dataclass(frozen=True)
class QueryRequest:
    """What a `/query` asks for."""

    predicate_hints: tuple[str, ...] = ()
    json_predicate_hints: str | None = None
    limit_hint: int | None = None
    version: int | None = None
    timestamp: str | None = None
    starting_version: int | None = None
    ending_version: int | None = None
    max_files: int | None = None
    page_token: str | None = None
    include_refresh_token: bool = False
    refresh_token: str | None = None
    include_historical_protocol: bool = False
    idempotency_key: str | None = None

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> QueryRequest:
        """From the body's JSON object."""
        hints = body.get("predicateHints")
        if hints is not None and not (
            isinstance(hints, list) and all(isinstance(hint, str) for hint in hints)
        ):
            raise MalformedRequest(
                "Expected an array for repeated field predicateHints of QueryTableRequest, and texts in it."
            )
        request = cls(
            predicate_hints=tuple(hints or ()),
            json_predicate_hints=_text(body, "jsonPredicateHints"),
            limit_hint=_limit(body.get("limitHint")),
            version=parse_version("version", body.get("version")),
            timestamp=_text(body, "timestamp"),
            starting_version=parse_version("startingVersion", body.get("startingVersion")),
            ending_version=parse_version("endingVersion", body.get("endingVersion")),
            max_files=parse_max_files(body.get("maxFiles")),
            page_token=_text(body, "pageToken"),
            include_refresh_token=_flag(body, "includeRefreshToken"),
            refresh_token=_text(body, "refreshToken"),
            include_historical_protocol=_flag(body, "includeHistoricalProtocol"),
            idempotency_key=_text(body, "idempotencyKey") or _text(body, "idempotency_key"),
        )
        request._check()
        return request

    def _check(self) -> None:
        points = {
            "version": self.version,
            "timestamp": self.timestamp,
            "startingVersion": self.starting_version,
        }
        given = [name for name, value in points.items() if value is not None]
        if len(given) > 1:
            raise InvalidParameter(
                f"Please only provide one of version, timestamp and startingVersion, not {given}."
            )
        start, end = self.starting_version, self.ending_version
        if start is not None and end is not None and start > end:
            raise InvalidParameter(
                f"startingVersion({start}) must be smaller than or equal to endingVersion({end})."
            )
        tokens = {"includeRefreshToken": self.include_refresh_token, "refreshToken": self.refresh_token}
        for name, value in tokens.items():
            if value and given:
                raise InvalidParameter(f"{name} cannot be used when querying a specific version.")
            if value and self.page_token is not None:
                raise InvalidParameter(f"{name} must be used in the first page request.")

    @property
    def needs_history(self) -> bool:
        """Whether another version than the latest is asked for."""
        return (self.version, self.timestamp, self.starting_version) != (None, None, None)

    def fingerprint(self, *more: str) -> str:
        """A hash of everything that the pages of one answer must have in common."""
        same = (
            self.predicate_hints, self.json_predicate_hints, self.limit_hint, self.version, self.timestamp,
            self.starting_version, self.ending_version, self.include_historical_protocol, more,
        )  # fmt: skip
        return hashlib.sha256(orjson.dumps(same)).hexdigest()[:32]


@dataclass(frozen=True)
class ChangesRequest:
    """What a `/changes` asks for."""

    starting_version: int | None
    starting_timestamp: str | None
    ending_version: int | None
    ending_timestamp: str | None
    include_historical_metadata: bool
    max_files: int | None
    page_token: str | None

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> ChangesRequest:
        """From the query string."""
        request = cls(
            version_parameter("startingVersion", query.get("startingVersion")),
            query.get("startingTimestamp"),
            version_parameter("endingVersion", query.get("endingVersion")),
            query.get("endingTimestamp"),
            (query.get("includeHistoricalMetadata") or "").lower() == "true",
            parse_max_files(query.get("maxFiles")),
            query.get("pageToken"),
        )
        starts = [request.starting_version, request.starting_timestamp]
        ends = [request.ending_version, request.ending_timestamp]
        if starts.count(None) == 2:
            raise InvalidParameter("No startingVersion or startingTimestamp provided for CDF read.")
        if starts.count(None) == 0:
            raise InvalidParameter(
                "Multiple starting arguments provided for CDF read. Please provide one of startingVersion "
                "and startingTimestamp."
            )
        if ends.count(None) == 0:
            raise InvalidParameter(
                "Multiple ending arguments provided for CDF read. Please provide one of endingVersion "
                "and endingTimestamp."
            )
        return request

    def fingerprint(self, *more: str) -> str:
        """A hash of everything that the pages of one answer must have in common."""
        same = (
            self.starting_version, self.starting_timestamp, self.ending_version, self.ending_timestamp,
            self.include_historical_metadata, more,
        )  # fmt: skip
        return hashlib.sha256(orjson.dumps(same)).hexdigest()[:32]


def version_parameter(name: str, value: str | None) -> int | None:
    """A table version of the query string, when given."""
    try:
        return parse_version(name, value)
    except MalformedRequest:
        raise InvalidParameter(f"{name} is not a valid number: {str(value)[:50]!r}.") from None


def parse_version(name: str, value: object) -> int | None:
    """A table version, when given."""
    if value is None:
        return None
    try:
        version = parse_integer(name, value)
    except MalformedRequest:
        raise MalformedRequest(f"Not a numeric value: {str(value)[:50]} for {name}.") from None
    if version < 0:
        raise InvalidParameter(
            f"{'table version' if name == 'version' else name} cannot be negative: {version}."
        )
    if version > INT64_MAX:
        raise InvalidParameter(f"{name} is larger than any version: {version}.")
    return version


def parse_max_files(value: object) -> int | None:
    """The size of a page, when given."""
    if value is None:
        return None
    wanted = parse_integer("maxFiles", value, code=InvalidParameter)
    if wanted <= 0:
        raise InvalidParameter(f"maxFiles must be positive, not {wanted}.")
    if wanted > INT32_MAX:
        raise InvalidParameter(f"Not an int32 value: maxFiles is at most {INT32_MAX}.")
    return wanted


def _limit(value: object) -> int | None:
    if value is None:
        return None
    limit = parse_integer("limitHint", value)
    if limit < 0:
        raise InvalidParameter(f"limitHint cannot be negative: {limit}.")
    return limit


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise MalformedRequest(f"{name} is a text.")
    return value


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise MalformedRequest(f"{name} is true or false.")
