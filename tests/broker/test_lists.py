"""Lists: what a recipient sees, page by page, on both databases."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import httpx
import pytest

from tests.broker.server import RunningBroker

TABLES = ["apples", "Bananas", "cherries", "dates", "Elderberries"]


@pytest.fixture(scope="module")
def reader(catalog_broker: RunningBroker) -> Iterator[httpx.Client]:
    for table in TABLES:
        catalog_broker.share_table(f"Fruit.Fresh.{table}", f"s3://lake/fruit/{table}")
    catalog_broker.share_table("Fruit.dried.Apples", "s3://lake/dried/apples", modes=("url", "dir"))
    catalog_broker.share_table("secret.plans.world", "s3://lake/world")
    catalog_broker.catalog.shares.add("Empty", display_name="Nothing", comment="yet", properties={"a": "b"})
    profile = catalog_broker.recipient("ann", shares=["fruit", "EMPTY"])
    with catalog_broker.client(profile) as client:
        yield client


def test_shares_are_those_granted(reader: httpx.Client) -> None:
    answer = reader.get("/shares")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert [share["name"] for share in answer.json()["items"]] == ["Empty", "Fruit"]
    assert "nextPageToken" not in answer.json()
    empty = reader.get("/shares/empty").json()["share"]
    uuid.UUID(empty.pop("id"))
    assert empty == {"name": "Empty", "displayName": "Nothing", "comment": "yet", "properties": {"a": "b"}}


def test_names_are_found_in_any_case_and_given_as_stored(reader: httpx.Client) -> None:
    assert reader.get("/shares/FRUIT").json()["share"]["name"] == "Fruit"
    schemas = reader.get("/shares/fruit/schemas").json()["items"]
    assert schemas == [{"name": "dried", "share": "Fruit"}, {"name": "Fresh", "share": "Fruit"}]
    tables = reader.get("/shares/fRuIt/schemas/FRESH/tables").json()["items"]
    assert [table["name"] for table in tables] == TABLES
    assert {(table["schema"], table["share"]) for table in tables} == {("Fresh", "Fruit")}


def test_tables_say_how_they_are_read(reader: httpx.Client) -> None:
    (table,) = reader.get("/shares/fruit/schemas/dried/tables").json()["items"]
    assert table["location"] == "s3://lake/dried/apples"
    assert table["accessModes"] == ["url", "dir"]
    assert "auxiliaryLocations" not in table
    uuid.UUID(table["id"])
    assert table["shareId"] == reader.get("/shares/fruit").json()["share"]["id"]
    everything = reader.get("/shares/fruit/all-tables").json()["items"]
    assert table in everything
    assert [item["name"] for item in everything] == ["Apples", *TABLES]
    assert everything[1]["accessModes"] == ["url"]


@pytest.mark.parametrize(
    "path",
    [
        "/shares",
        "/shares/Fruit/schemas",
        "/shares/Fruit/schemas/Fresh/tables",
        "/shares/Fruit/all-tables",
    ],
)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_pages_together_are_the_list(reader: httpx.Client, path: str, size: int) -> None:
    whole = reader.get(path).json()["items"]
    gathered: list[object] = []
    token: str | None = None
    while True:
        parameters = {"maxResults": str(size)} | ({"pageToken": token} if token else {})
        page = reader.get(path, params=parameters).json()
        assert len(page["items"]) <= size
        gathered += page["items"]
        token = page.get("nextPageToken")
        if token is None:
            break
    assert gathered == whole


def test_no_results_may_carry_a_page_token(reader: httpx.Client) -> None:
    page = reader.get("/shares", params={"maxResults": 0}).json()
    assert page["items"] == []
    following = reader.get("/shares", params={"pageToken": page["nextPageToken"]}).json()
    assert [share["name"] for share in following["items"]] == ["Empty", "Fruit"]
    assert reader.get("/shares/empty/schemas", params={"maxResults": 0}).json() == {"items": []}


@pytest.mark.parametrize("wrong", ["-1", "x", "1.5", "", "99999999999", "１"])
def test_a_wrong_size_is_refused(reader: httpx.Client, wrong: str) -> None:
    answer = reader.get("/shares", params={"maxResults": wrong})
    assert answer.status_code == 400
    assert answer.json()["errorCode"] == "INVALID_PARAMETER_VALUE"
    assert "maxResults" in answer.json()["message"]


def test_a_page_token_works_for_its_list_and_caller_only(
    reader: httpx.Client, catalog_broker: RunningBroker
) -> None:
    token = reader.get("/shares", params={"maxResults": 1}).json()["nextPageToken"]
    other = catalog_broker.client(catalog_broker.recipient("bob", shares=["Fruit", "Empty"]))
    altered = token[:-2] + ("AA" if token[-2:] != "AA" else "BB")
    for client, path, used in [
        (reader, "/shares/Fruit/schemas", token),
        (reader, "/shares/Fruit/all-tables", token),
        (other, "/shares", token),
        (reader, "/shares", altered),
        (reader, "/shares", "garbage"),
        (reader, "/shares", "é"),
        (reader, "/shares", "A" * 20000),
    ]:
        answer = client.get(path, params={"pageToken": used})
        assert answer.status_code == 400, used
        assert answer.json()["errorCode"] == "INVALID_PARAMETER_VALUE"
    assert reader.get("/shares", params={"pageToken": token}).status_code == 200


def test_what_is_not_granted_answers_like_what_does_not_exist(reader: httpx.Client) -> None:
    pairs = [
        ("/shares/{}", "secret", "absent"),
        ("/shares/{}/schemas", "secret", "absent"),
        ("/shares/{}/all-tables", "secret", "absent"),
        ("/shares/{}/schemas/plans/tables", "secret", "absent"),
        ("/shares/{}/schemas/plans/tables/world/version", "secret", "absent"),
    ]
    for path, ungranted, absent in pairs:
        first, second = reader.get(path.format(ungranted)), reader.get(path.format(absent))
        assert first.status_code == second.status_code == 404
        assert first.json()["errorCode"] == "RESOURCE_DOES_NOT_EXIST"
        assert first.text.replace(ungranted, "X") == second.text.replace(absent, "X")
        volatile = ("x-request-id", "date", "content-length")
        assert {k: v for k, v in first.headers.items() if k not in volatile} == {
            k: v for k, v in second.headers.items() if k not in volatile
        }


def test_changes_of_the_catalog_count_at_once(reader: httpx.Client, catalog_broker: RunningBroker) -> None:
    profile = catalog_broker.recipient("carl")
    with catalog_broker.client(profile) as carl:
        assert carl.get("/shares").json() == {"items": []}
        catalog_broker.catalog.recipients.grant("carl", "secret")
        assert carl.get("/shares/secret").status_code == 200
        catalog_broker.catalog.recipients.revoke_grant("carl", "secret")
        assert carl.get("/shares/secret").status_code == 404


def test_every_answer_has_a_request_id(reader: httpx.Client) -> None:
    first = reader.get("/shares").headers["x-request-id"]
    second = reader.get("/shares/none").headers["x-request-id"]
    assert first != second
    assert reader.get("/shares", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    hostile = reader.get("/shares", headers={"X-Request-Id": "a b<script>"}).headers["x-request-id"]
    assert hostile != "a b<script>"
