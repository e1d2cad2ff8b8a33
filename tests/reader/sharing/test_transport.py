from __future__ import annotations

import email.utils
import logging
import time
from datetime import UTC, datetime, timedelta

import pytest

from lakepass.reader.errors import SharingError
from lakepass.reader.sharing.names import TableName
from lakepass.reader.sharing.profile import Profile
from lakepass.reader.sharing.rest import Rest
from lakepass.reader.sharing.transport import Patience, Transport
from tests.reader.sharing.conftest import QUICK
from tests.reader.sharing.server import TOKEN, Asked, Reply, Server, as_json

SHARES = as_json({"items": [{"name": "sales"}]})


def test_the_token_goes_with_every_request(server: Server, rest: Rest) -> None:
    server.on("GET", "/shares", SHARES)
    assert [share.name for share in rest.shares()] == ["sales"]
    assert server.asked[0].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_failures_are_tried_again(server: Server, rest: Rest, status: int) -> None:
    failure = as_json({"errorCode": "X", "message": "not now"}, status)
    server.on("GET", "/shares", failure, failure, SHARES)
    assert len(rest.shares()) == 1
    assert len(server.asked) == 3


def test_lasting_failures_end_with_what_the_server_said(server: Server, rest: Rest) -> None:
    server.on("GET", "/shares", as_json({"errorCode": "INTERNAL", "message": "the disk is full"}, 500))
    with pytest.raises(SharingError, match="500 INTERNAL: the disk is full") as caught:
        list(rest.shares())
    assert (caught.value.status, caught.value.code) == (500, "INTERNAL")
    assert len(server.asked) == QUICK.attempts


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "new profile"), (403, "ask them"), (404, "lakepass ls")]
)
def test_refusals_are_not_tried_again_and_say_what_to_do(
    server: Server, rest: Rest, status: int, advice: str
) -> None:
    server.on("GET", "/shares", as_json({"errorCode": "NO", "message": "no"}, status))
    with pytest.raises(SharingError, match=advice):
        list(rest.shares())
    assert len(server.asked) == 1


def test_retry_after_is_honoured(server: Server, rest: Rest) -> None:
    moments: list[float] = []

    def busy(asked: Asked) -> Reply:
        moments.append(time.monotonic())
        return as_json({}, 429, **{"Retry-After": "1"})

    def ready(asked: Asked) -> Reply:
        moments.append(time.monotonic())
        return SHARES

    server.on("GET", "/shares", busy, ready)
    assert len(rest.shares()) == 1
    assert moments[1] - moments[0] >= 1.0


def test_a_retry_after_beyond_patience_fails_at_once(server: Server, rest: Rest) -> None:
    server.on("GET", "/shares", as_json({}, 503, **{"Retry-After": "86400"}))
    with pytest.raises(SharingError, match="503"):
        list(rest.shares())
    assert len(server.asked) == 1


def test_waits_add_up_to_no_more_than_patience_has(server: Server) -> None:
    server.on("GET", "/shares", as_json({}, 503, **{"Retry-After": "1"}))
    rest = Rest(Transport(Profile.load(server.profile), Patience(longest_wait=2.5)))
    with pytest.raises(SharingError, match="503"):
        list(rest.shares())
    assert len(server.asked) == 3


def test_a_server_that_hangs_is_given_up(server: Server) -> None:
    server.on("GET", "/shares", Reply(delay=1.0))
    rest = Rest(Transport(Profile.load(server.profile), Patience(first_pause=0.01, read=0.1)))
    with pytest.raises(SharingError, match="did not answer in time"):
        list(rest.shares())


def test_a_broken_connection_is_tried_again(server: Server, rest: Rest) -> None:
    server.on("GET", "/shares", Reply(200, b'{"items": []}', cut_after=5), SHARES)
    assert len(rest.shares()) == 1
    server.on("GET", "/shares", Reply(200, b'{"items": []}', cut_after=5))
    with pytest.raises(SharingError, match="broke off"):
        list(rest.shares())


def test_a_name_that_does_not_resolve_is_a_clear_error() -> None:
    profile = {
        "shareCredentialsVersion": 1,
        "endpoint": "https://no-such-host.invalid/",
        "bearerToken": TOKEN,
    }
    rest = Rest(Transport(Profile.load(profile), QUICK))
    with pytest.raises(SharingError, match=r"no-such-host\.invalid cannot be reached"):
        list(rest.shares())


def test_a_redirect_within_the_origin_is_followed(server: Server, rest: Rest) -> None:
    server.on("GET", "/shares", Reply(307, headers={"Location": "/api/v2/shares"}))
    server.on("GET", "/v2/shares", SHARES)
    assert len(rest.shares()) == 1


def test_the_token_never_follows_a_redirect_to_another_origin(
    server: Server, other: Server, rest: Rest
) -> None:
    server.on("GET", "/shares", Reply(307, headers={"Location": f"{other.origin}/api/shares?x=1"}))
    with pytest.raises(SharingError, match="another origin"):
        list(rest.shares())
    assert other.asked == []


def test_a_redirect_to_nowhere_is_a_clear_error(server: Server, rest: Rest) -> None:
    server.on("GET", "/shares", Reply(302))
    with pytest.raises(SharingError, match="302"):
        list(rest.shares())


def test_no_secret_is_in_errors_or_logs(server: Server, rest: Rest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.on("GET", "/shares", as_json({"message": f"bad token {TOKEN}"}, 500))
    with pytest.raises(SharingError) as caught:
        list(rest.shares())
    assert TOKEN not in str(caught.value)
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(rest.transport)


def test_the_servers_clock_is_noted(server: Server, rest: Rest) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    date = email.utils.format_datetime(ahead, usegmt=True)
    server.on("GET", "/shares", Reply(200, b"{}", {"Date": date}))
    list(rest.shares())
    assert abs(rest.transport.skew - timedelta(hours=1)) < timedelta(seconds=5)


def test_client_credentials_are_exchanged_once_and_again_when_refused(server: Server, other: Server) -> None:
    tokens = iter(["first-token", "second-token"])
    other.on("POST", "//token", lambda asked: as_json({"access_token": next(tokens), "expires_in": 3600}))
    profile = Profile.load(
        {
            "shareCredentialsVersion": 2,
            "type": "oauth_client_credentials",
            "endpoint": f"{server.origin}/api",
            "tokenEndpoint": f"{other.origin}/token",
            "clientId": "me",
            "clientSecret": "local-secret",
            "scope": "read",
        }
    )
    refused = as_json({"errorCode": "UNAUTHENTICATED", "message": "ended"}, 401)
    server.on("GET", "/shares", SHARES, SHARES, refused, SHARES)
    rest = Rest(Transport(profile, QUICK))
    for _ in range(3):
        assert len(rest.shares()) == 1
    sent = [asked.headers["authorization"] for asked in server.asked]
    assert sent == ["Bearer first-token"] * 3 + ["Bearer second-token"]
    assert b"grant_type=client_credentials" in other.asked[0].body
    assert b"scope=read" in other.asked[0].body
    assert other.asked[0].headers["authorization"].startswith("Basic ")


def test_refused_client_credentials_say_what_to_do(server: Server) -> None:
    server.on("POST", "//token", as_json({"error": "invalid_client"}, 401))
    profile = Profile.load(
        {
            "shareCredentialsVersion": 2,
            "type": "oauth_client_credentials",
            "endpoint": f"{server.origin}/api",
            "tokenEndpoint": f"{server.origin}/token",
            "clientId": "me",
            "clientSecret": "local-secret",
        }
    )
    with pytest.raises(SharingError, match="Ask the provider"):
        list(Rest(Transport(profile, QUICK)).shares())


def test_pages_are_followed_only_as_far_as_they_are_looked_at(server: Server, rest: Rest) -> None:
    def page(asked: Asked) -> Reply:
        number = int(asked.query.get("pageToken", "0"))
        following = {"nextPageToken": str(number + 1)} if number < 2 else {"nextPageToken": ""}
        return as_json({"items": [{"name": f"share{number}"}], **following})

    server.on("GET", "/shares", page)
    listing = rest.shares()
    assert next(iter(listing)).name == "share0"
    assert len(server.asked) == 1
    assert [share.name for share in listing] == ["share0", "share1", "share2"]
    assert len(server.asked) == 3


def test_missing_items_are_an_empty_list(server: Server, rest: Rest) -> None:
    server.on("GET", "/shares", as_json({}))
    assert list(rest.shares()) == []


def test_names_are_encoded_and_checked(server: Server, rest: Rest) -> None:
    name = TableName.parse("my.share.eu.orders%")
    assert (name.share, name.schema, name.table) == ("my.share", "eu", "orders%")
    server.on(
        "GET",
        "/shares/my.share/schemas/eu/tables/orders%25/version",
        Reply(headers={"Delta-Table-Version": "7"}),
    )
    assert rest.version(name) == 7
    for wrong in ("orders", "a.b", "a..c", "a.b/../x.c", "a.b.c d"):
        with pytest.raises(ValueError, match="name"):
            TableName.parse(wrong)
