"""Signed URLs: equal to what each cloud's own SDK signs, and only for files of the table."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pyarrow as pa
import pytest
from botocore.config import Config
from google.cloud.storage._signing import generate_signed_url_v4  # type: ignore[import-untyped]  # it has none
from google.oauth2 import service_account

from lakepass.broker.config import GcpStorage, Settings
from lakepass.broker.signing.azure import SERVICE_VERSION, AzureSigner
from lakepass.broker.signing.gcs import GcsSigner
from lakepass.broker.signing.s3 import S3Signer
from lakepass.broker.tables.storage import BrokerStorage
from lakepass.broker.tables.urls import FileUrls
from lakepass.broker.vending import Vending
from lakepass.reader.credentials import AwsKeys, Credential, StoreSettings
from lakepass.reader.errors import PathRefusedError
from lakepass.reader.location import Location
from tests.broker.lake import Lake, files
from tests.clouds.gcs import Gcs
from tests.clouds.ministack import Ministack

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
KEYS = [
    "orders/part-00000.parquet",
    "orders/day=2024-01-01 00%3A00/part 1+2.parquet",
    "orders/é~!*'()/part$&,:;=@#?[].parquet",
    "part.parquet",
]


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: NOW.replace(tzinfo=None))
    yield


@pytest.mark.parametrize("session_token", [None, "token+/=with every kind"])
@pytest.mark.parametrize(
    ("endpoint", "style", "bucket"),
    [
        ("https://s3.eu-west-1.amazonaws.com", "virtual", "lake-data"),
        ("http://127.0.0.1:9000", "path", "lake-data"),
        ("https://s3.eu-west-1.amazonaws.com", "path", "lake.with.dots"),
    ],
)
@pytest.mark.usefixtures("frozen")
def test_s3_urls_are_what_botocore_signs(
    endpoint: str, style: Any, bucket: str, session_token: str | None
) -> None:
    keys = AwsKeys("AKIALOCAL", "local-secret", session_token)
    store = StoreSettings(endpoint, "eu-west-1", style == "path")
    ours = S3Signer(Credential("", keys, None, store), bucket, HOUR, NOW).sign(KEYS)
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="eu-west-1",
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        aws_session_token=keys.session_token,
        config=Config(signature_version="s3v4", s3={"addressing_style": style}),
    )
    theirs = [
        client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=3600)
        for key in KEYS
    ]
    assert ours == theirs


def test_a_url_ends_with_the_key_that_signed_it() -> None:
    ends = NOW + dt.timedelta(minutes=10)
    credential = Credential("", AwsKeys("A", "s", "t"), ends, StoreSettings(region="eu-west-1"))
    signer = S3Signer(credential, "lake-data", HOUR, NOW)
    assert signer.expires_at_ms == int(ends.timestamp()) * 1000
    assert "X-Amz-Expires=600&" in signer.sign(["a"])[0]
    assert signer.sign(["a"])[0].startswith("https://lake-data.s3.eu-west-1.amazonaws.com/a?")
    china = Credential("", AwsKeys("A", "s"), None, StoreSettings(region="cn-north-1"))
    assert "amazonaws.com.cn" in S3Signer(china, "lake-data", HOUR, NOW).sign(["a"])[0]


def test_azure_urls_are_what_the_sdk_signs() -> None:
    from azure.storage.blob import UserDelegationKey, generate_blob_sas

    key: Any = UserDelegationKey()  # type: ignore[no-untyped-call]  # untyped there
    key.signed_oid, key.signed_tid = "object-id", "tenant-id"
    key.signed_start, key.signed_expiry = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
    key.signed_service, key.signed_version = "b", SERVICE_VERSION
    key.value = base64.b64encode(b"local delegation key").decode()
    key.signed_delegated_user_tid = None
    signer = AzureSigner(
        key,
        NOW + dt.timedelta(days=1),
        account="account",
        container="data",
        blob_endpoint="https://account.blob.core.windows.net",
        lifetime=HOUR,
        now=NOW,
    )
    for name, url in zip(KEYS, signer.sign(KEYS), strict=True):
        token = generate_blob_sas(
            "account",
            "data",
            name,
            user_delegation_key=key,
            permission="r",
            start=NOW - dt.timedelta(seconds=60),
            expiry=NOW + HOUR,
            protocol="https",
        )
        assert url.partition("?")[2] == token
    assert signer.expires_at_ms == int((NOW + HOUR).timestamp()) * 1000


def _account(gcs: Gcs) -> Any:
    load: Any = service_account.Credentials.from_service_account_file
    return load(str(gcs.key_files["broker"]))


def test_gcs_urls_are_what_googles_library_signs(gcs: Gcs, monkeypatch: pytest.MonkeyPatch) -> None:
    credentials = _account(gcs)
    signer = GcsSigner(
        credentials.signer.sign,
        account=credentials.service_account_email,
        bucket="lake-data",
        lifetime=HOUR,
        now=NOW,
    )
    monkeypatch.setattr(
        "google.cloud.storage._signing.get_v4_now_dtstamps", lambda: ("20260102T030405Z", "20260102")
    )
    from urllib.parse import quote

    for key, url in zip(KEYS, signer.sign(KEYS), strict=True):
        theirs = generate_signed_url_v4(
            credentials, resource=f"/lake-data/{quote(key, safe='/~')}", expiration=HOUR, method="GET"
        )
        assert url == theirs


def test_gcs_urls_signed_by_iam_are_the_same_as_by_the_key(gcs: Gcs) -> None:
    settings = GcpStorage(
        key_file=gcs.key_files["impersonator"],
        service_account=gcs.email("broker"),
        iam_endpoint=gcs.iam_endpoint,
        endpoint=gcs.endpoint,
        token_endpoint=gcs.token_endpoint,
    )
    entry = {"location": "gs://lake-data/", "gcp": settings.model_dump()}
    storage = BrokerStorage(Settings(storage=(entry,)), Vending(HOUR))  # type: ignore[arg-type]  # validated
    signer = storage.signer(Location.parse("gs://lake-data/t"), HOUR)
    credentials = _account(gcs)
    (url,) = signer.sign(["t/part.parquet"])
    stamp = dt.datetime.strptime(url.split("X-Goog-Date=")[1][:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
    local = GcsSigner(
        credentials.signer.sign,
        account=credentials.service_account_email,
        bucket="lake-data",
        lifetime=HOUR,
        endpoint=gcs.endpoint,
        now=stamp,
    )
    assert url == local.sign(["t/part.parquet"])[0]


class _Recording:
    expires_at_ms = 1

    def __init__(self) -> None:
        self.signed: list[str] = []

    def sign(self, keys: list[str]) -> list[str]:
        self.signed += keys
        return [f"https://signed/{key}" for key in keys]


@pytest.mark.parametrize(
    "hostile",
    [
        "../customers/part.parquet",
        "a/../../customers/part.parquet",
        "%2e%2e/customers/part.parquet",
        "s3://lake/customers/part.parquet",
        "s3a://lake/ordersevil/part.parquet",
        "s3://other/orders/part.parquet",
        "s3://lake/orders/../customers/part.parquet",
        "/customers/part.parquet",
        "//lake/customers/part.parquet",
        "https://elsewhere/part.parquet",
        "file:///etc/passwd",
        "abfss://c@a.dfs.core.windows.net/orders/x",
        "a/./b\x00.parquet",
        "",
    ],
)
def test_a_path_elsewhere_is_never_signed(hostile: str) -> None:
    root, auxiliary = Location.parse("s3://lake/orders"), Location.parse("s3://archive/orders")
    signers = {root: _Recording(), auxiliary: _Recording()}
    urls = FileUrls(root, signers)
    with pytest.raises(PathRefusedError):
        urls.sign(pa.array(["good.parquet", hostile]))
    for signer in signers.values():
        assert all(key in ("orders/good.parquet",) for key in signer.signed)


def test_paths_inside_are_signed_where_they_lie() -> None:
    root, auxiliary = Location.parse("s3://lake/orders"), Location.parse("s3://archive/orders")
    signers = {root: _Recording(), auxiliary: _Recording()}
    urls = FileUrls(root, signers)
    logged = ["a.parquet", "d=1%20x/b.parquet", "s3a://archive/orders/c.parquet", "/orders/d.parquet"]
    assert urls.sign(pa.array(logged)).to_pylist() == [
        "https://signed/orders/a.parquet",
        "https://signed/orders/d=1 x/b.parquet",
        "https://signed/orders/c.parquet",
        "https://signed/orders/d.parquet",
    ]
    assert signers[auxiliary].signed == ["orders/c.parquet"]


def test_a_log_that_names_files_elsewhere_gets_no_url(lake: Lake, ministack: Ministack) -> None:
    client = ministack.s3()
    metadata = {
        "metaData": {
            "id": "x",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": '{"type":"struct","fields":[]}',
            "partitionColumns": [],
            "configuration": {},
        }
    }
    import json

    for number, path in enumerate([f"s3://{lake.bucket}/plain/secret.parquet", "../plain/secret.parquet"]):
        add = {
            "add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
        }
        protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
        body = "\n".join(json.dumps(action) for action in (protocol, metadata, add))
        key = f"hostile{number}/_delta_log/{0:020d}.json"
        client.put_object(Bucket=lake.bucket, Key=key, Body=body.encode())
        lake.broker.share_table(f"share.tables.hostile{number}", f"s3://{lake.bucket}/hostile{number}")
        for answer in (
            lake.query(f"hostile{number}"),
            lake.query(f"hostile{number}", {"startingVersion": 0}),
        ):
            assert answer.status_code == 400
            assert "X-Amz" not in answer.text
            assert lake.bucket not in answer.text


def test_urls_of_the_running_broker_open_their_files(lake: Lake, tmp_path: Path) -> None:
    for file in files(lake.query("partitioned")):
        assert len(httpx.get(file["url"]).content) == file["size"]
