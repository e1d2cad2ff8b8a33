"""The admin API, activation links and the checks before a table is shared."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.broker.lake import Lake
from tests.broker.server import RunningBroker, running_broker, s3_storage
from tests.clouds.ministack import Ministack
from tests.tables.fixtures import fixture


def test_the_admin_api_has_its_own_token(catalog_broker: RunningBroker) -> None:
    recipient = catalog_broker.recipient("not-an-admin")["bearerToken"]
    for token in ("x", "wrong", recipient):
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{catalog_broker.origin}/admin/shares", headers=headers)
        assert answer.status_code == 401
    assert httpx.post(f"{catalog_broker.origin}/admin/shares", json={"name": "x"}).status_code == 401


def test_the_admin_api_is_off_unless_configured() -> None:
    with running_broker(config={"admin": None}) as broker, broker.admin() as admin:
        assert admin.get("/shares").status_code == 404


def test_a_share_from_nothing_to_a_reading_recipient(catalog_broker: RunningBroker) -> None:
    with catalog_broker.admin() as admin:
        made = admin.post(
            "/shares", json={"name": "Admin", "comment": "made by API", "properties": {"a": "b"}}
        )
        assert made.status_code == 201
        assert made.json()["comment"] == "made by API"
        assert admin.post("/shares", json={"name": "ADMIN"}).status_code == 409
        table = {
            "name": "Orders",
            "location": "s3a://lake/orders/",
            "access_modes": ["dir", "url"],
            "check": False,
        }
        created = admin.post("/shares/admin/schemas/eu/tables", json=table)
        assert created.status_code == 201
        assert created.json()["location"] == "s3://lake/orders"
        assert created.json()["accessModes"] == ["url", "dir"]
        assert admin.post("/recipients", json={"name": "Zoe"}).status_code == 201
        issued = admin.post("/recipients/zoe/tokens", json={"lifetime": "90d"}).json()
        profile = issued["profile"]
        assert profile["endpoint"] == catalog_broker.url + "/"
        assert profile["expirationTime"].endswith("Z")
        with catalog_broker.client(profile) as client:
            assert client.get("/shares").json() == {"items": []}
            assert admin.put("/grants/zoe/admin").status_code == 204
            (listed,) = client.get("/shares/admin/all-tables").json()["items"]
            assert listed["id"] == created.json()["id"]
            changed = {**table, "access_modes": ["url"]}
            assert admin.put("/shares/admin/schemas/eu/tables/orders", json=changed).status_code == 200
            (listed,) = client.get("/shares/admin/all-tables").json()["items"]
            assert listed["accessModes"] == ["url"]
            assert listed["id"] == created.json()["id"]
            rotated = admin.post("/recipients/zoe/tokens", json={"grace": "0s"}).json()["profile"]
            assert client.get("/shares").status_code == 401
        with catalog_broker.client(rotated) as client:
            assert client.get("/shares").status_code == 200
            (live,) = [
                token
                for token in admin.get("/recipients/zoe/tokens").json()["items"]
                if token["status"] == "live"
            ]
            assert "digest" not in json.dumps(live)
            assert admin.delete(f"/tokens/{live['id']}").status_code == 204
            assert client.get("/shares").status_code == 401
        assert admin.delete("/grants/zoe/admin").status_code == 204
        assert admin.delete("/shares/admin/schemas/eu/tables/orders").status_code == 204
        assert admin.delete("/shares/admin").status_code == 204
        assert admin.delete("/recipients/zoe").status_code == 204
        assert admin.delete("/recipients/zoe").status_code == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/shares", {"name": "with space"}),
        ("/shares", {"name": "a/b"}),
        ("/shares", {"name": ""}),
        ("/shares", {"name": "x" * 256}),
        ("/shares", {"name": "a\u0001"}),
        ("/shares", {"name": "ok", "unknown": 1}),
        ("/shares", {"name": 7}),
        ("/shares", {"name": "ok", "properties": {str(n): "" for n in range(51)}}),
        ("/recipients", {"name": "r", "source_ranges": ["300.1.1.1/8"]}),
        ("/recipients/nobody/tokens", {"lifetime": "soon"}),
    ],
)
def test_what_cannot_be_is_refused(catalog_broker: RunningBroker, path: str, body: dict[str, Any]) -> None:
    with catalog_broker.admin() as admin:
        answer = admin.post(path, json=body)
        assert answer.status_code in (400, 404)
        assert set(answer.json()) == {"errorCode", "message"}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"location": "s3://lake"}, "whole bucket"),
        ({"location": "s3://lake/a/../b"}, "segment"),
        ({"location": "s3://lake/a%2Fb"}, "encoded"),
        ({"location": "ftp://lake/a"}, "scheme"),
        ({"location": "s3://lake/t", "access_modes": ["dir"], "history_shared": False}, "history"),
        ({"location": "s3://lake/t", "access_modes": ["dir"], "start_version": 3}, "version 3"),
        ({"location": "s3://lake/t", "access_modes": []}, "Access modes"),
        ({"location": "s3://lake/t", "access_modes": ["all"]}, "Access modes"),
        ({"location": "s3://lake/t", "auxiliary_locations": ["s3://lake/t"]}, "root"),
        ({"location": "s3://lake/t", "auxiliary_locations": ["s3://lake/t/below"]}, "below"),
        ({"location": "s3://lake/t", "check": True}, "No storage is configured"),
        ({"location": "/data/t", "check": True}, "local"),
    ],
)
def test_a_table_that_cannot_be_shared(
    catalog_broker: RunningBroker, settings: dict[str, Any], reason: str
) -> None:
    with catalog_broker.admin() as admin:
        admin.post("/shares", json={"name": "checks"})
        body = {"name": "t", "check": False, **settings}
        answer = admin.post("/shares/checks/schemas/s/tables", json=body)
        assert answer.status_code == 400, answer.text
        assert reason in answer.json()["message"]


def test_a_table_is_looked_at_before_it_is_shared(lake: Lake, ministack: Ministack) -> None:
    with lake.broker.admin() as admin:
        admin.post("/shares", json={"name": "looked"})

        def add(name: str, location: str, **more: Any) -> httpx.Response:
            body = {"name": name, "location": location, **more}
            return admin.post("/shares/looked/schemas/s/tables", json=body)

        good = add("plain", f"s3://{lake.bucket}/plain")
        assert good.status_code == 201, good.text
        missing = add("missing", f"s3://{lake.bucket}/not-there")
        assert missing.status_code == 400
        assert "not a Delta table" in missing.json()["message"]
        late = add("late", f"s3://{lake.bucket}/plain", start_version=999)
        assert "999" in late.json()["message"]
        no_role = add("dir", f"s3://{lake.bucket}/plain", access_modes=["url", "dir"])
        assert no_role.status_code == 400
        assert "role" in no_role.json()["message"]

        other = ministack.create_bucket()
        log = {
            "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
            "metaData": {
                "id": "x",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": '{"type":"struct","fields":[]}',
                "partitionColumns": [],
                "configuration": {},
            },
            "add": {
                "path": f"s3://{other}/moved/part.parquet",
                "partitionValues": {},
                "size": 1,
                "modificationTime": 1,
                "dataChange": True,
            },
        }
        body = "\n".join(json.dumps({kind: action}) for kind, action in log.items())
        key = f"moved/_delta_log/{0:020d}.json"
        ministack.s3().put_object(Bucket=lake.bucket, Key=key, Body=body.encode())
        outside = add("moved", f"s3://{lake.bucket}/moved")
        assert outside.status_code == 400
        assert f"s3://{other}/moved" in outside.json()["message"]
        unsupported = {
            **log,
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["x-new"],
                "writerFeatures": ["x-new"],
            },
        }
        body = "\n".join(json.dumps({kind: action}) for kind, action in unsupported.items())
        ministack.s3().put_object(
            Bucket=lake.bucket, Key=f"newer/_delta_log/{0:020d}.json", Body=body.encode()
        )
        newer = add("newer", f"s3://{lake.bucket}/newer")
        assert newer.status_code == 400
        assert "x-new" in newer.json()["message"]


def test_dir_access_can_be_registered_where_there_is_a_role(ministack: Ministack) -> None:
    bucket = ministack.create_bucket()
    ministack.seed(fixture("plain").path, f"s3://{bucket}/plain")
    user, keys = ministack.create_user()
    role = ministack.create_role(user, [bucket])
    aws = {
        "role_arn": role,
        "access_key_id": keys.access_key_id,
        "secret_access_key": keys.secret_access_key,
    }
    with (
        running_broker(storage=[s3_storage(ministack, f"s3://{bucket}/", **aws)]) as broker,
        broker.admin() as admin,
    ):
        admin.post("/shares", json={"name": "s"})
        body = {"name": "plain", "location": f"s3://{bucket}/plain", "access_modes": ["url", "dir"]}
        made = admin.post("/shares/s/schemas/d/tables", json=body)
        assert made.status_code == 201, made.text
        with broker.client(broker.recipient("ann", shares=["s"])) as client:
            listed = client.get("/shares/s/all-tables").json()["items"][0]
            path = "/shares/s/schemas/d/tables/plain"
            metadata = json.loads(client.get(f"{path}/metadata").text.splitlines()[1])["metaData"]
            for field in ("location", "accessModes"):
                assert listed[field] == metadata[field]
            credential = client.post(f"{path}/temporary-table-credentials").json()["credentials"]
            assert credential["location"] == listed["location"]
            # The broker signs with a credential of its own, scoped to the table.
            query = client.post(f"{path}/query", json={}).text.splitlines()
            url = json.loads(query[2])["file"]["url"]
            assert "X-Amz-Security-Token=" in url
            assert httpx.get(url).status_code == 200


def test_an_activation_link_gives_the_profile_once(catalog_broker: RunningBroker) -> None:
    with catalog_broker.admin() as admin:
        admin.post("/recipients", json={"name": "link-user"})
        link = admin.post("/recipients/link-user/activations", json={"lifetime": "1h"}).json()["url"]
    for _ in range(2):
        page = httpx.get(link)
        assert page.status_code == 200
        assert "text/html" in page.headers["content-type"]
        assert page.headers["referrer-policy"] == "no-referrer"
    given = httpx.post(link)
    assert given.status_code == 200
    assert given.headers["cache-control"] == "no-store"
    assert "attachment" in given.headers["content-disposition"]
    with catalog_broker.client(given.json()) as client:
        assert client.get("/shares").status_code == 200
    assert httpx.post(link).status_code == 404
    browser = httpx.post(link, headers={"Accept": "text/html"})
    assert browser.status_code == 404
    assert "<html" in browser.text
    assert httpx.post(link[:-4] + "AAAA").status_code == 404
    assert given.json()["bearerToken"] not in catalog_broker.log()
    assert link.rpartition("/")[2] not in catalog_broker.log()


def test_two_who_press_at_once_get_one_profile(catalog_broker: RunningBroker) -> None:
    import concurrent.futures

    catalog_broker.catalog.recipients.add("raced")
    from datetime import timedelta

    made = catalog_broker.catalog.recipients.add_activation("raced", timedelta(hours=1))
    link = f"{catalog_broker.origin}/activate/{made.code}"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = sorted(answer.status_code for answer in pool.map(lambda _: httpx.post(link), range(8)))
    assert statuses == [200] + [404] * 7


def test_an_activation_link_expires(catalog_broker: RunningBroker) -> None:
    from datetime import timedelta

    from sqlalchemy import text

    catalog_broker.catalog.recipients.add("late-user")
    made = catalog_broker.catalog.recipients.add_activation("late-user", timedelta(hours=1))
    with catalog_broker.catalog.engine.begin() as connection:
        connection.execute(text("UPDATE activations SET expires_at = 1"))
    assert httpx.post(f"{catalog_broker.origin}/activate/{made.code}").status_code == 404
