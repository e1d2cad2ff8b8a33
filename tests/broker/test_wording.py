"""Refusals in the words of the reference server, which scripts and support pages know, and their codes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.lake import Lake, error, files, lines
from tests.broker.server import running_broker, s3_storage

INVALID, MALFORMED = "INVALID_PARAMETER_VALUE", "MALFORMED_REQUEST"
ONE_OF = "Please only provide one of"


@pytest.mark.parametrize(
    ("body", "words", "code"),
    [
        ({"timestamp": "abc", "version": "3"}, ONE_OF, INVALID),
        ({"timestamp": "abc", "startingVersion": "3"}, ONE_OF, INVALID),
        ({"startingVersion": 2, "version": "3"}, ONE_OF, INVALID),
        ({"version": -2}, "table version cannot be negative", INVALID),
        ({"startingVersion": -2}, "startingVersion cannot be negative", INVALID),
        ({"version": "x3"}, "Not a numeric value: x3", MALFORMED),
        ({"startingVersion": "3", "endingVersion": "x3"}, "Not a numeric value: x3", MALFORMED),
        (
            {"startingVersion": 3, "endingVersion": 2},
            "startingVersion(3) must be smaller than or equal to endingVersion(2)",
            INVALID,
        ),
        (
            {"startingVersion": 0, "endingVersion": 1000},
            "End version cannot be greater than the latest version",
            INVALID,
        ),
        ({"version": 1000}, "Cannot time travel Delta table to version 1000", INVALID),
        ({"timestamp": "2000-01-01T00:00:00-08:00"}, "The provided timestamp (", INVALID),
        ({"timestamp": "9999-01-01T00:00:00-08:00"}, "is after the latest version available", INVALID),
        ({"timestamp": "2021-01-01"}, "Invalid timestamp", INVALID),
        ({"predicateHints": {}}, "Expected an array for repeated field predicateHints", MALFORMED),
        ({"maxFiles": 0}, "maxFiles must be positive", INVALID),
        ({"maxFiles": 3000000000}, "Not an int32 value", INVALID),
        ({"pageToken": "randomPageToken"}, "Error decoding the page token", INVALID),
        ({"refreshToken": "foo", "includeRefreshToken": True}, "Error decoding the refresh token", INVALID),
        (
            {"version": 1, "includeRefreshToken": True},
            "includeRefreshToken cannot be used when querying a specific version",
            INVALID,
        ),
        (
            {"pageToken": "foo", "refreshToken": "foo"},
            "refreshToken must be used in the first page request",
            INVALID,
        ),
    ],
)
def test_queries(lake: Lake, body: dict[str, Any], words: str, code: str) -> None:
    assert words in error(lake.query("change_feed", body), code=code)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "No startingVersion or startingTimestamp provided for CDF read"),
        (
            {"startingVersion": 1, "startingTimestamp": "2022-02-02T00:00:00Z"},
            "Multiple starting arguments provided for CDF read",
        ),
        (
            {"startingVersion": 1, "endingVersion": 3, "endingTimestamp": "randomString"},
            "Multiple ending arguments provided for CDF read",
        ),
        ({"startingVersion": "startV", "endingVersion": 3}, "startingVersion is not a valid number"),
        ({"startingVersion": 2, "endingVersion": "endV"}, "endingVersion is not a valid number"),
        ({"startingTimestamp": "2022-04-29"}, "Invalid startingTimestamp"),
        ({"startingTimestamp": "2000-01-01T00:00:00-08:00"}, "The provided timestamp ("),
        ({"startingTimestamp": "9999-01-01T00:00:00-08:00"}, "The provided timestamp ("),
        (
            {"startingVersion": 2, "endingVersion": 1},
            "CDF range from start 2 to end 1 was invalid. End cannot be before start",
        ),
        ({"startingVersion": 1000}, "Provided Start version(1000) for reading change data is invalid"),
        ({"startingVersion": 0, "maxFiles": -1}, "maxFiles must be positive"),
        (
            {"startingVersion": 0, "maxFiles": "string"},
            "expected a number but the string didn't have the appropriate format",
        ),
    ],
)
def test_changes(lake: Lake, parameters: dict[str, Any], words: str) -> None:
    assert words in error(lake.changes("change_feed", None, **parameters), code=INVALID)


def test_what_a_share_does_not_give(lake: Lake) -> None:
    history = "Reading table by version or timestamp is not supported because history sharing is not enabled"
    kept = lake.path("plain", share="nohistory")
    for call in ("/version?startingTimestamp=abc", "/metadata?version=1", "/metadata?timestamp=abc"):
        assert history in error(lake.client.get(kept + call), code=INVALID)
    assert history in error(lake.query("plain", {"timestamp": "abc"}, share="nohistory"), code=INVALID)
    words = "cdf is not enabled on table nohistory.tables.plain"
    assert words in error(lake.client.get(kept + "/changes"), code=INVALID)
    late = lake.path("change_feed", "/changes?startingVersion=0", share="late")
    assert "You can only query table changes since version 2" in error(lake.client.get(late), code=INVALID)
    for body in ({"version": "0"}, {"startingVersion": "0"}):
        refused = lake.query("change_feed", body, share="late")
        assert "You can only query table data since version 2" in error(refused, code=INVALID)


def test_lists_and_versions(lake: Lake) -> None:
    words = "expected a number but the string didn't have the appropriate format"
    assert words in error(lake.client.get("/shares?maxResults=string"), code=INVALID)
    for wrong in ("abc", "2022-04-29"):
        refused = lake.version("plain", startingTimestamp=wrong)
        assert "Invalid startingTimestamp" in error(refused, code=INVALID)
    refused = lake.metadata("plain", None, version="-1", timestamp="abc")
    assert ONE_OF in error(refused, code=INVALID)
    assert "version cannot be negative" in error(lake.metadata("plain", None, version="-1"), code=INVALID)


def test_an_empty_condition_leaves_nothing_out(lake: Lake) -> None:
    whole = [file["id"] for file in files(lake.query("partitioned"))]
    empty: list[dict[str, Any]] = [
        {"jsonPredicateHints": ""},
        {"predicateHints": [""]},
        {"predicateHints": []},
    ]
    for hints in empty:
        assert [file["id"] for file in files(lake.query("partitioned", hints))] == whole


def test_tokens_that_have_expired(lake: Lake) -> None:
    storage = [s3_storage(lake.store, f"s3://{lake.bucket}/")]
    lifetimes = {"page_token_lifetime": "1ms", "refresh_token_lifetime": "1ms"}
    with running_broker(storage=storage, server=lifetimes) as broker:
        broker.share_table("share.tables.partitioned", f"s3://{lake.bucket}/partitioned")
        with broker.client(broker.recipient("ann", shares=["share"])) as client:
            path = lake.path("partitioned", "/query")
            page = client.post(path, json={"maxFiles": 1})
            token = lines(page)[-1]["endStreamAction"]["nextPageToken"]
            refused = client.post(path, json={"maxFiles": 1, "pageToken": token})
            assert "The page token has expired" in error(refused, code=INVALID)
            whole = client.post(path, json={"includeRefreshToken": True})
            token = lines(whole)[-1]["endStreamAction"]["refreshToken"]
            refused = client.post(path, json={"refreshToken": token})
            assert "The refresh token has expired" in error(refused, code=INVALID)
