"""A bucket with a table, everything that must stay closed around it, and a way to vend for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import SecretStr

from lakepass.broker.config import AwsStorage
from lakepass.broker.vending.aws import AwsVendor
from lakepass.broker.vending.grantee import Grantee
from lakepass.reader.credentials import AwsKeys, Credential
from lakepass.reader.location import Location
from tests.clouds.ministack import Ministack
from tests.clouds.seaweedfs import SeaweedFS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sts import STSClient

INSIDE = (
    "t/a/_delta_log/00000000000000000000.json",
    "t/a/part-0.parquet",
    "t/a/day=2030-01-01/part 1.parquet",
    "t/a/a/a/part-2.parquet",
    "t/a/100%25/p+l#u's\"s.parquet",
    "t/a/ünï/表.parquet",
)
OUTSIDE = (
    "secret",
    "t/secret",
    "t/a",
    "t/ab/secret",
    "t/a2/secret",
    "t/a.bak/secret",
    "t/a-copy/secret",
    "t/a /secret",
    "t/b/secret",
    "ta/secret",
    "x/t/a/secret",
    "t/a%2Fsecret",
    "other/t/a/part-0.parquet",
)
CASE_TWINS = ("T/a/secret", "t/A/secret")
ELSEWHERE = "t/a/secret"
"""A key like ours, in another bucket that the role may read."""


@dataclass(frozen=True)
class S3Scene:
    """A store that judges: `client` and `sts` take any keys, `root` is the administrator's client."""

    store: str
    bucket: str
    other_bucket: str
    settings: AwsStorage
    root: S3Client
    client: Callable[[AwsKeys], S3Client]
    sts: Callable[[AwsKeys], STSClient]

    def location(self, path: str = "t/a", bucket: str | None = None) -> Location:
        return Location.parse(f"s3://{bucket or self.bucket}/{path}")

    def vend(
        self,
        location: Location | None = None,
        *,
        lifetime: timedelta = timedelta(minutes=15),
        recipient: str = "ann",
    ) -> Credential:
        vendor = AwsVendor(self.settings)
        return vendor.vend(location or self.location(), Grantee(recipient), lifetime, "req-1")

    def opened(self, location: Location | None = None) -> S3Client:
        keys = self.vend(location).keys
        assert isinstance(keys, AwsKeys)
        return self.client(keys)

    def contents(self) -> dict[str, str]:
        """Every object of both buckets with its digest, as the administrator sees them."""
        return {
            f"{bucket}/{entry['Key']}": entry["ETag"]
            for bucket in (self.bucket, self.other_bucket)
            for page in self.root.get_paginator("list_objects_v2").paginate(Bucket=bucket)
            for entry in page.get("Contents", [])
        }


def on_ministack(store: Ministack) -> S3Scene:
    bucket, other = store.create_bucket(), store.create_bucket()
    broker, keys = store.create_user()
    settings = AwsStorage(
        role_arn=store.create_role(broker, [bucket, other], external_id="local-external-id"),
        external_id="local-external-id",
        endpoint=store.endpoint,
        region=store.region,
        path_style=True,
        access_key_id=keys.access_key_id,
        secret_access_key=SecretStr(keys.secret_access_key),
    )
    scene = S3Scene("ministack", bucket, other, settings, store.s3(), store.s3, store.sts)
    _fill(scene, (*OUTSIDE, *CASE_TWINS))
    return scene


def on_seaweedfs(store: SeaweedFS) -> S3Scene:
    bucket, other = store.create_bucket(), store.create_bucket()
    settings = AwsStorage(
        role_arn=store.role_arn,
        endpoint=store.endpoint,
        region="us-east-1",
        path_style=True,
        access_key_id=store.broker.access_key_id,
        secret_access_key=SecretStr(store.broker.secret_access_key),
    )
    scene = S3Scene("seaweedfs", bucket, other, settings, store.s3(), store.s3, store.sts)
    # It keeps names as paths: an object and a directory cannot share one.
    _fill(scene, [name for name in OUTSIDE if name != "t/a"])
    return scene


def _fill(scene: S3Scene, outside: tuple[str, ...] | list[str]) -> None:
    for name in (*INSIDE, *outside):
        scene.root.put_object(Bucket=scene.bucket, Key=name, Body=name.encode())
    scene.root.put_object(Bucket=scene.other_bucket, Key=ELSEWHERE, Body=b"secret")
