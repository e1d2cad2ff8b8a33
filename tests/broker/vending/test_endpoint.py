"""The endpoint on a running broker and a store that judges: shapes, checks, audit, revocation."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import ClientError
from sqlalchemy import text

from lakepass.broker.audit.events import VendEvent
from lakepass.broker.audit.trail import Filter, latest
from lakepass.reader.credentials import AwsKeys
from tests.broker.server import RunningBroker, running_broker, s3_storage
from tests.broker.vending import s3_scene
from tests.broker.vending.s3_scene import INSIDE, S3Scene
from tests.clouds.ministack import Ministack

_names = iter(range(10_000))


@dataclass
class Desk:
    """A broker with a table at t/a, and a recipient who is granted it."""

    broker: RunningBroker
    scene: S3Scene
    table_id: str
    profile: dict[str, Any]
    path: str = "/shares/sales/schemas/eu/tables/orders"
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = self.broker.client(self.profile)

    def ask(self, body: Any = None, **options: Any) -> httpx.Response:
        if body is not None:
            options["json"] = body
        return self.client.post(f"{self.path}/temporary-table-credentials", **options)

    def audited(self, answer: httpx.Response) -> VendEvent:
        """The row of an answer: there is exactly one."""
        (row,) = latest(self.broker.catalog.engine, Filter(request_id=answer.headers["x-request-id"]), 10)
        return row


def _role(scene: S3Scene) -> dict[str, Any]:
    secret = scene.settings.secret_access_key
    return {
        "role_arn": scene.settings.role_arn,
        "external_id": scene.settings.external_id,
        "access_key_id": scene.settings.access_key_id,
        "secret_access_key": None if secret is None else secret.get_secret_value(),
    }


@pytest.fixture(scope="module")
def scene(ministack: Ministack) -> S3Scene:
    return s3_scene.on_ministack(ministack)


@pytest.fixture(scope="module")
def broker(ministack: Ministack, scene: S3Scene) -> Iterator[RunningBroker]:
    storage = [
        s3_storage(ministack, f"s3://{scene.bucket}/", **_role(scene)),
        s3_storage(ministack, f"s3://{scene.other_bucket}/", **_role(scene)),
        s3_storage(ministack, "s3://norole/"),
        s3_storage(ministack, "s3://refused/", **{**_role(scene), "external_id": "wrong"}),
        s3_storage(ministack, "s3://down/", **_role(scene), sts_endpoint="http://127.0.0.1:9"),
    ]
    with running_broker(storage=storage) as running:
        running.share_table(
            "sales.eu.orders",
            f"s3://{scene.bucket}/t/a",
            modes=["url", "dir"],
            auxiliary=[f"s3://{scene.other_bucket}/t/a"],
        )
        running.share_table("sales.eu.links", f"s3://{scene.bucket}/t/ab", modes=["url"])
        running.share_table("sales.eu.norole", "s3://norole/t", modes=["dir"])
        running.share_table("sales.eu.refused", "s3://refused/t", modes=["dir"])
        running.share_table("sales.eu.down", "s3://down/t", modes=["dir"])
        running.share_table("sales.eu.unknown", "s3://unknown/t", modes=["dir"])
        running.share_table("sales.eu.long", f"s3://{scene.bucket}/{'long/' * 200}t", modes=["dir"])
        running.share_table("secret.eu.orders", f"s3://{scene.bucket}/t/b", modes=["dir"])
        yield running


@pytest.fixture
def desk(broker: RunningBroker, scene: S3Scene) -> Desk:
    row = broker.catalog.shares.table("sales", "eu", "orders")
    return Desk(broker, scene, row.id, broker.recipient(f"r{next(_names)}", shares=["sales"]))


def opened(scene: S3Scene, told: dict[str, Any]) -> Any:
    return scene.client(AwsKeys(told["accessKeyId"], told["secretAccessKey"], told["sessionToken"]))


def test_the_admin_api_tells_the_audit_trail(desk: Desk) -> None:
    good, refused = desk.ask(), desk.ask({"location": "s3://elsewhere/t"})
    (row,) = latest(desk.broker.catalog.engine, Filter(request_id=good.headers["x-request-id"]), 10)
    assert row.recipient is not None
    with desk.broker.admin() as admin:

        def told(**parameters: Any) -> list[dict[str, Any]]:
            answer = admin.get("/audit", params={"recipient": row.recipient, **parameters})
            assert answer.status_code == 200, answer.text
            items: list[dict[str, Any]] = answer.json()["items"]
            return items

        assert [event["outcome"] for event in told()] == ["vended", "refused"]
        assert told(outcome="vended") == [row.as_json()]
        assert [event["request_id"] for event in told(limit=1)] == [refused.headers["x-request-id"]]
        assert told(table="sales.eu.links") == told(until="2020-01-01T00:00:00Z") == []
        assert len(told(since="2020-01-01T00:00:00Z")) == 2
        for wrong in ({"limit": 0}, {"outcome": "lost"}, {"since": "yesterday"}):
            assert admin.get("/audit", params=wrong).status_code == 400
    assert desk.client.get(f"{desk.broker.origin}/admin/audit").status_code == 401


def test_the_specifications_shape(desk: Desk) -> None:
    answer = desk.ask()
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["cache-control"] == "no-store"
    content = answer.json()
    told = content["credentials"]
    assert set(told) == {"location", "awsTempCredentials", "expirationTime"}
    assert set(told["awsTempCredentials"]) == {"accessKeyId", "secretAccessKey", "sessionToken"}
    assert told["location"] == f"s3://{desk.scene.bucket}/t/a"
    assert content["lakepass"] == {
        "storage": {"endpoint": desk.scene.settings.endpoint, "region": "us-east-1", "pathStyle": True},
        "renewal": {
            "unityCatalog": desk.broker.origin,
            "tableId": desk.table_id,
            "awsContainerCredentials": f"{desk.broker.url}{desk.path}/aws-container-credentials",
        },
    }
    left = told["expirationTime"] / 1000 - datetime.now(UTC).timestamp()
    assert 3500 < left <= 3600
    client = opened(desk.scene, told["awsTempCredentials"])
    assert client.get_object(Bucket=desk.scene.bucket, Key=INSIDE[0])
    with pytest.raises(ClientError, match="AccessDenied"):
        client.get_object(Bucket=desk.scene.bucket, Key="t/ab/secret")


@pytest.mark.parametrize("alias", ["s3", "s3a", "s3n", "S3"])
@pytest.mark.parametrize("end", ["", "/"])
def test_aliases_and_a_slash_name_the_same_place(desk: Desk, alias: str, end: str) -> None:
    answer = desk.ask({"location": f"{alias}://{desk.scene.bucket}/t/a{end}"})
    assert answer.json()["credentials"]["location"] == f"s3://{desk.scene.bucket}/t/a"


@pytest.mark.parametrize("body", [{}, {"location": None}, {"unknown": 1}])
def test_the_root_when_no_location_is_named(desk: Desk, body: dict[str, Any]) -> None:
    assert desk.ask(body).json()["credentials"]["location"] == f"s3://{desk.scene.bucket}/t/a"


@pytest.mark.parametrize("name", ["location", "auxiliaryLocation"])
def test_an_auxiliary_location(desk: Desk, name: str) -> None:
    wanted = f"s3://{desk.scene.other_bucket}/t/a"
    content = desk.ask({name: wanted}).json()
    assert content["credentials"]["location"] == wanted
    assert "tableId" not in content["lakepass"]["renewal"]
    client = opened(desk.scene, content["credentials"]["awsTempCredentials"])
    assert client.get_object(Bucket=desk.scene.other_bucket, Key="t/a/secret")
    with pytest.raises(ClientError, match="AccessDenied"):
        client.get_object(Bucket=desk.scene.bucket, Key=INSIDE[0])
    renewed = httpx.get(
        content["lakepass"]["renewal"]["awsContainerCredentials"],
        headers={"Authorization": desk.profile["bearerToken"]},
    ).json()
    assert renewed["AccessKeyId"] == content["credentials"]["awsTempCredentials"]["accessKeyId"]


@pytest.mark.parametrize(
    "location",
    [
        "s3://{bucket}/t/ab",
        "s3://{bucket}/t/aevil",
        "s3://{bucket}/t",
        "s3://{bucket}/t/a/_delta_log",
        "s3://{bucket}/",
        "s3://{bucket}",
        "s3://{other}/t",
        "s3://{bucket}/t/b",
        "s3://{bucket}/t/a/../ab",
        "s3://{bucket}/t//a",
        "s3://{bucket}/t/%61",
        "s3://{bucket}/t%2Fa",
        "s3://{bucket}/T/A",
        "s3://{bucket}/t/a?x=1",
        "s3://{bucket}/t/a#x",
        "s3://{bucket}/t/a\\",
        "s3://{bucket}/t/a*",
        "gs://{bucket}/t/a",
        "abfss://x@y.dfs.core.windows.net/t/a",
        "file:///etc",
        "/t/a",
        "t/a",
        "",
        " ",
        "*",
        "http://169.254.169.254/latest",
        "s3://" + "a" * 5000,
    ],
)
def test_any_other_location_is_refused(desk: Desk, location: str) -> None:
    wanted = location.format(bucket=desk.scene.bucket, other=desk.scene.other_bucket)
    answer = desk.ask({"location": wanted})
    assert answer.status_code == 400
    assert set(answer.json()) == {"errorCode", "message"}
    row = desk.audited(answer)
    assert (row.outcome, row.table, row.expires_at) == ("refused", "sales.eu.orders", None)
    assert row.reason


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        ("{", "application/json", 400),
        ("", "application/json", 400),
        ("null", "application/json", 400),
        ("[]", "application/json", 400),
        ('"s3://x/y"', "application/json", 400),
        ('{"location": 1}', "application/json", 400),
        ('{"location": ["s3://x/y"]}', "application/json", 400),
        ('{"location": {"a": 1}}', "application/json", 400),
        ('{"auxiliaryLocation": true}', "application/json", 400),
        ("[" * 2000 + "]" * 2000, "application/json", 400),
        ("{}", "application/xml", 415),
        ("location=x", "application/x-www-form-urlencoded", 415),
        ("{}", "application/json; charset=utf-8", 200),
        ("{}", "APPLICATION/JSON", 200),
        ("{}", "", 200),
    ],
)
def test_bodies(desk: Desk, content: str, kind: str, status: int) -> None:
    answer = desk.ask(content=content, headers={"Content-Type": kind} if kind else {})
    assert answer.status_code == status


@pytest.mark.parametrize(
    "path",
    [
        "/shares/secret/schemas/eu/tables/orders",
        "/shares/nothing/schemas/eu/tables/orders",
        "/shares/sales/schemas/us/tables/orders",
        "/shares/sales/schemas/eu/tables/nothing",
    ],
)
def test_what_is_not_granted_is_not_there(desk: Desk, path: str) -> None:
    desk.path = path
    answer = desk.ask()
    assert answer.status_code == 404
    assert answer.json()["errorCode"] == "RESOURCE_DOES_NOT_EXIST"
    assert desk.audited(answer).outcome == "refused"


def test_names_in_any_case(desk: Desk) -> None:
    desk.path = "/shares/SALES/schemas/Eu/tables/ORDERS"
    assert desk.ask().status_code == 200


def test_a_table_without_dir_says_which_modes_it_has(desk: Desk) -> None:
    desk.path = "/shares/sales/schemas/eu/tables/links"
    answer = desk.ask()
    assert answer.status_code == 400
    assert "Its access modes: url" in answer.json()["message"]
    assert desk.scene.bucket not in answer.text


@pytest.mark.parametrize("change", ["history_shared = 0", "start_version = 3"])
def test_a_table_with_hidden_history_is_not_opened(desk: Desk, change: str) -> None:
    """The catalog refuses such a table; here the row is changed behind its back."""
    engine = desk.broker.catalog.engine
    row = desk.broker.share_table(
        f"sales.eu.hidden{next(_names)}", f"s3://{desk.scene.bucket}/t/a", modes=["dir"]
    )
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE tables SET {change} WHERE id = :id"), {"id": row.id})
    desk.path = f"/shares/sales/schemas/eu/tables/{row.name}"
    answer = desk.ask()
    assert answer.status_code == 400
    assert "history" in answer.json()["message"]


@pytest.mark.parametrize(
    ("table", "status", "outcome"),
    [
        ("norole", 502, "failed"),
        ("refused", 502, "failed"),
        ("unknown", 502, "failed"),
        ("down", 503, "failed"),
        ("long", 400, "refused"),
    ],
)
def test_when_the_cloud_gives_nothing(desk: Desk, table: str, status: int, outcome: str) -> None:
    desk.path = f"/shares/sales/schemas/eu/tables/{table}"
    answer = desk.ask()
    assert answer.status_code == status
    if status > 500:
        assert int(answer.headers["retry-after"]) > 0
    for detail in ("arn:aws", "AccessDenied", "127.0.0.1", "AssumeRole", str(desk.scene.settings.role_arn)):
        assert detail not in answer.text
    assert desk.audited(answer).outcome == outcome
    identifier = answer.headers["x-request-id"]
    assert any(identifier in line for line in desk.broker.log().splitlines())


def test_a_vend_is_written_down(desk: Desk) -> None:
    answer = desk.ask(headers={"X-Request-Id": f"my-{uuid.uuid4().hex}"})
    row = desk.audited(answer)
    told = answer.json()["credentials"]
    assert row.interface == "delta-sharing"
    assert (row.outcome, row.reason) == ("vended", None)
    assert row.table == "sales.eu.orders"
    assert (row.location, row.expires_at) == (told["location"], told["expirationTime"])
    assert (row.cloud, row.scope, row.source_address) == ("aws", "directory", "127.0.0.1")
    assert row.recipient is not None
    assert row.token_id is not None
    assert abs(row.at / 1000 - datetime.now(UTC).timestamp()) < 60
    shown = json.dumps(row.as_json())
    assert not any(secret in shown for secret in told["awsTempCredentials"].values())
    assert desk.profile["bearerToken"] not in shown


def test_a_recipients_addresses_bind_its_credential(desk: Desk, broker: RunningBroker) -> None:
    """The store here sees 127.0.0.1, which is in one recipient's ranges; the session policy names them."""
    name = f"r{next(_names)}"
    broker.catalog.recipients.add(name, source_ranges=["127.0.0.0/8"])
    broker.catalog.recipients.grant(name, "sales")
    profile = broker.profile(broker.catalog.recipients.issue_token(name).secret)
    here = Desk(broker, desk.scene, desk.table_id, profile)
    told = here.ask().json()["credentials"]["awsTempCredentials"]
    assert opened(desk.scene, told).get_object(Bucket=desk.scene.bucket, Key=INSIDE[0])


def test_a_request_from_elsewhere_is_refused(desk: Desk, broker: RunningBroker) -> None:
    name = f"r{next(_names)}"
    broker.catalog.recipients.add(name, source_ranges=["192.0.2.0/24"])
    broker.catalog.recipients.grant(name, "sales")
    profile = broker.profile(broker.catalog.recipients.issue_token(name).secret)
    away = Desk(broker, desk.scene, desk.table_id, profile)
    for answer in (away.ask(), _container(away), _unity(away)):
        assert answer.status_code == 403
        row = desk.audited(answer)
        assert (row.outcome, row.recipient) == ("refused", name)
        assert row.token_id is not None


def test_vends_are_counted(desk: Desk) -> None:
    desk.ask()
    shown = httpx.get(f"{desk.broker.origin}/metrics").text
    assert 'lakepass_credentials_total{cloud="aws",interface="delta-sharing",outcome="vended"}' in shown


def test_without_a_good_token(desk: Desk) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
        answer = httpx.post(f"{desk.broker.url}{desk.path}/temporary-table-credentials", headers=headers)
        assert answer.status_code == 401
        row = desk.audited(answer)
        assert (row.outcome, row.recipient) == ("refused", None)


def test_two_hundred_first_requests_get_one_credential(desk: Desk) -> None:
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: desk.ask(), range(200)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["credentials"]["awsTempCredentials"]["accessKeyId"] for answer in answers}) == 1


def test_recipients_do_not_share_credentials(desk: Desk, broker: RunningBroker) -> None:
    other = Desk(broker, desk.scene, desk.table_id, broker.recipient(f"r{next(_names)}", shares=["sales"]))
    first, second = (one.ask().json()["credentials"]["awsTempCredentials"] for one in (desk, other))
    assert first["accessKeyId"] != second["accessKeyId"]


def test_a_withdrawn_grant_stops_the_next_answer(desk: Desk, broker: RunningBroker) -> None:
    name = desk.audited(desk.ask()).recipient
    assert name is not None
    broker.catalog.recipients.revoke_grant(name, "sales")
    assert desk.ask().status_code == 404
    assert _container(desk).status_code == 404
    assert _unity(desk).status_code == 404
    broker.catalog.recipients.grant(name, "sales")
    assert desk.ask().status_code == 200


def test_a_revoked_token_stops_the_next_answer(desk: Desk, broker: RunningBroker) -> None:
    row = desk.audited(desk.ask())
    assert row.recipient is not None
    assert row.token_id is not None
    broker.catalog.recipients.revoke_token(row.token_id)
    for answer in (desk.ask(), _container(desk), _unity(desk), _unity_path(desk)):
        assert answer.status_code == 401


def _container(desk: Desk, **options: Any) -> httpx.Response:
    return desk.client.get(f"{desk.path}/aws-container-credentials", **options)


def _unity(desk: Desk, body: Any = None) -> httpx.Response:
    body = {"table_id": desk.table_id, "operation": "READ"} if body is None else body
    return desk.client.post(
        f"{desk.broker.origin}/api/2.1/unity-catalog/temporary-table-credentials", json=body
    )


def _unity_path(desk: Desk, body: Any = None) -> httpx.Response:
    if body is None:
        body = {"url": f"s3a://{desk.scene.other_bucket}/t/a/", "operation": "PATH_READ"}
    return desk.client.post(
        f"{desk.broker.origin}/api/2.1/unity-catalog/temporary-path-credentials", json=body
    )


def test_the_container_form(desk: Desk) -> None:
    answer = _container(desk)
    content = answer.json()
    assert set(content) == {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}
    assert answer.headers["cache-control"] == "no-store"
    told = desk.ask().json()["credentials"]
    assert content["AccessKeyId"] == told["awsTempCredentials"]["accessKeyId"]
    end = datetime.strptime(content["Expiration"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert 0 <= told["expirationTime"] / 1000 - end.timestamp() < 1
    row = desk.audited(answer)
    assert (row.interface, row.outcome, row.location) == ("aws-container", "vended", told["location"])
    assert _container(desk, headers={"Authorization": desk.profile["bearerToken"]}).status_code == 200
    assert _container(desk, params={"location": f"s3://{desk.scene.bucket}/t/ab"}).status_code == 400
    assert _container(desk, headers={"Authorization": ""}).status_code == 401


def test_an_aws_sdk_fetches_it_by_itself(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{desk.broker.url}{desk.path}/aws-container-credentials"
    )
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", desk.profile["bearerToken"])
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    client = boto3.session.Session().client(
        "s3", endpoint_url=desk.scene.settings.endpoint, region_name="us-east-1"
    )
    listed = client.list_objects_v2(Bucket=desk.scene.bucket, Prefix="t/a/")
    assert {entry["Key"] for entry in listed["Contents"]} == set(INSIDE)
    with pytest.raises(ClientError, match="AccessDenied"):
        client.list_objects_v2(Bucket=desk.scene.bucket, Prefix="t/ab/")


def test_unity_catalogs_form(desk: Desk) -> None:
    answer = _unity(desk)
    content = answer.json()
    told = desk.ask().json()["credentials"]
    assert content == {
        "aws_temp_credentials": {
            "access_key_id": told["awsTempCredentials"]["accessKeyId"],
            "secret_access_key": told["awsTempCredentials"]["secretAccessKey"],
            "session_token": told["awsTempCredentials"]["sessionToken"],
        },
        "expiration_time": told["expirationTime"],
    }
    assert answer.headers["cache-control"] == "no-store"
    assert desk.audited(answer).interface == "unity-catalog"
    assert desk.audited(answer).table == "sales.eu.orders"


@pytest.mark.parametrize("operation", ["READ_WRITE", "WRITE", "read", "", None, 1, "PATH_READ"])
def test_unity_catalog_reads_only(desk: Desk, operation: Any) -> None:
    answer = _unity(desk, {"table_id": desk.table_id, "operation": operation})
    assert answer.status_code == 400
    assert desk.audited(answer).outcome == "refused"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"operation": "READ"}, 400),
        ({"table_id": 5, "operation": "READ"}, 400),
        ({"table_id": str(uuid.uuid4()), "operation": "READ"}, 404),
        ({"table_id": "../x", "operation": "READ"}, 404),
        ([], 400),
    ],
)
def test_unity_catalog_tables(desk: Desk, body: Any, status: int) -> None:
    assert _unity(desk, body).status_code == status


def test_unity_catalog_does_not_open_another_share(desk: Desk, broker: RunningBroker) -> None:
    secret = broker.catalog.shares.table("secret", "eu", "orders")
    assert _unity(desk, {"table_id": secret.id, "operation": "READ"}).status_code == 404
    assert _unity_path(desk, {"url": secret.location, "operation": "PATH_READ"}).status_code == 404


def test_unity_catalogs_paths(desk: Desk) -> None:
    answer = _unity_path(desk)
    told = desk.ask({"location": f"s3://{desk.scene.other_bucket}/t/a"}).json()["credentials"]
    assert answer.json()["aws_temp_credentials"]["access_key_id"] == told["awsTempCredentials"]["accessKeyId"]
    assert desk.audited(answer).location == f"s3://{desk.scene.other_bucket}/t/a"
    root = {"url": f"s3://{desk.scene.bucket}/t/a", "operation": "PATH_READ"}
    assert _unity_path(desk, root).status_code == 200


@pytest.mark.parametrize(
    ("path", "operation", "status"),
    [
        ("t/a", "PATH_READ_WRITE", 400),
        ("t/a", "PATH_CREATE_TABLE", 400),
        ("t/a", "READ", 400),
        ("t", "PATH_READ", 404),
        ("t/a/_delta_log", "PATH_READ", 404),
        ("t/b", "PATH_READ", 404),
        ("t/ab", "PATH_READ", 400),
        ("t/../t/a", "PATH_READ", 400),
        ("", "PATH_READ", 400),
    ],
)
def test_unity_catalog_opens_no_other_path(desk: Desk, path: str, operation: str, status: int) -> None:
    answer = _unity_path(desk, {"url": f"s3://{desk.scene.bucket}/{path}", "operation": operation})
    assert answer.status_code == status
    assert desk.audited(answer).outcome == "refused"


def test_other_methods(desk: Desk) -> None:
    assert desk.client.get(f"{desk.path}/temporary-table-credentials").status_code == 405
    assert desk.client.post(f"{desk.path}/aws-container-credentials").status_code == 405


def test_the_audit_is_durable_before_the_answer(desk: Desk) -> None:
    """Every answer that arrived has its row at that moment, whoever else is asking."""
    missing: list[str] = []
    stop = threading.Event()

    def noise() -> None:
        with desk.broker.client(desk.profile) as client:
            while not stop.is_set():
                client.post(f"{desk.path}/temporary-table-credentials")

    others = [threading.Thread(target=noise) for _ in range(4)]
    for one in others:
        one.start()
    try:
        for _ in range(50):
            answer = desk.ask()
            found = latest(desk.broker.catalog.engine, Filter(request_id=answer.headers["x-request-id"]), 2)
            if [row.outcome for row in found] != ["vended"]:
                missing.append(answer.headers["x-request-id"])
    finally:
        stop.set()
        for one in others:
            one.join()
    assert missing == []
