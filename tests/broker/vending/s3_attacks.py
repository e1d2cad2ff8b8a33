"""What someone who holds a credential for `t/a` might try. Each must be refused by the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
from botocore.exceptions import ClientError

from lakepass.reader.credentials import AwsKeys
from tests.broker.vending.s3_scene import ELSEWHERE, INSIDE, OUTSIDE, S3Scene

Attack = Callable[[S3Scene, AwsKeys], Any]
MINE = "t/a/part-0.parquet"
PREFIXES = (
    "",
    "t",
    "t/",
    "t/a",
    "t/ab",
    "t/ab/",
    "t/a2/",
    "t/a.",
    "t/a /",
    "ta/",
    "s",
    "x/t/a/",
    "/t/a/",
    "other/t/a/",
)
BUCKET_READS = (
    "get_bucket_acl get_bucket_policy get_bucket_versioning get_bucket_encryption "
    "get_bucket_lifecycle_configuration get_bucket_cors get_bucket_tagging "
    "get_bucket_notification_configuration list_object_versions list_multipart_uploads head_bucket"
)


def attacks() -> Iterator[tuple[str, Attack]]:
    """Names and attacks."""
    yield from _reads()
    yield from _lists()
    yield from _writes()
    yield from _identity()


def _call(operation: str, **arguments: Any) -> Attack:
    """An operation on the table's bucket, unless `arguments` name another."""

    def attack(scene: S3Scene, keys: AwsKeys) -> Any:
        return getattr(scene.client(keys), operation)(**{"Bucket": scene.bucket, **arguments})

    return attack


def _reads() -> Iterator[tuple[str, Attack]]:
    for name in OUTSIDE:
        yield f"get {name}", _call("get_object", Key=name)
        yield f"head {name}", _call("head_object", Key=name)
    yield "get in another bucket", lambda s, k: s.client(k).get_object(Bucket=s.other_bucket, Key=ELSEWHERE)
    yield "get a range beside", _call("get_object", Key="t/ab/secret", Range="bytes=0-1")
    yield "dots to a sibling", lambda s, k: _presigned(s, k, "t/a/../ab/secret")
    yield "dots to the root", lambda s, k: _presigned(s, k, "t/a/../../secret")
    yield "pre-sign a sibling", lambda s, k: _presigned(s, k, "t/ab/secret")
    yield "bend a pre-signed URL", lambda s, k: _presigned(s, k, MINE, instead="t/ab/secret")
    yield "read an ACL", _call("get_object_acl", Key=MINE)
    yield "read tags", _call("get_object_tagging", Key="t/ab/secret")


def _lists() -> Iterator[tuple[str, Attack]]:
    for prefix in PREFIXES:
        yield f"list {prefix!r}", _call("list_objects_v2", Prefix=prefix)
        yield f"list v1 {prefix!r}", _call("list_objects", Prefix=prefix)
        yield f"list folders {prefix!r}", _call("list_objects_v2", Prefix=prefix, Delimiter="/")
    yield "list without prefix", _call("list_objects_v2")
    yield "list v1 without prefix", _call("list_objects")
    yield "list from here", _call("list_objects_v2", StartAfter="t/a/")
    yield (
        "list another bucket",
        lambda s, k: s.client(k).list_objects_v2(Bucket=s.other_bucket, Prefix="t/a/"),
    )
    for operation in BUCKET_READS.split():
        yield operation, _call(operation)


def _writes() -> Iterator[tuple[str, Attack]]:
    for name in ("t/a/new", MINE, "t/ab/new", "t/new", "new"):
        yield f"put {name}", _call("put_object", Key=name, Body=b"x")
    for name in (MINE, "t/ab/secret", "secret"):
        yield f"delete {name}", _call("delete_object", Key=name)
    yield "delete many", _delete_many
    yield "begin a multipart upload", _call("create_multipart_upload", Key="t/a/new")
    for target, source in (("t/a/new", MINE), ("t/a/new", "t/ab/secret"), ("t/ab/new", MINE)):
        yield f"copy {source} to {target}", _copy(target, source)
    yield "copy to another bucket", _copy("new", MINE, elsewhere=True)
    yield "tag", _call("put_object_tagging", Key=MINE, Tagging={"TagSet": [{"Key": "k", "Value": "v"}]})
    yield "open to all", _call("put_object_acl", Key=MINE, ACL="public-read")
    yield "open the bucket", _call("put_bucket_acl", ACL="public-read")
    yield "replace the policy", _call("put_bucket_policy", Policy='{"Version":"2012-10-17","Statement":[]}')
    yield "switch versions on", _call("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})
    yield "create a bucket", lambda s, k: s.client(k).create_bucket(Bucket=f"{s.bucket}-new")
    yield "delete the bucket", _call("delete_bucket")


def _identity() -> Iterator[tuple[str, Attack]]:
    yield "without the session token", lambda s, k: _read(s, replace(k, session_token=None))
    yield (
        "with a bent session token",
        lambda s, k: _read(s, replace(k, session_token=f"{k.session_token}A"[5:])),
    )
    yield (
        "with a wrong secret",
        lambda s, k: _read(s, replace(k, secret_access_key=k.secret_access_key[::-1])),
    )
    yield (
        "assume the role again, wider",
        lambda s, k: s.sts(k).assume_role(RoleArn=str(s.settings.role_arn), RoleSessionName="wider"),
    )


def _read(scene: S3Scene, keys: AwsKeys) -> Any:
    return scene.client(keys).get_object(Bucket=scene.bucket, Key=INSIDE[0])


def _copy(target: str, source: str, *, elsewhere: bool = False) -> Attack:
    def attack(scene: S3Scene, keys: AwsKeys) -> Any:
        bucket = scene.other_bucket if elsewhere else scene.bucket
        origin = f"{scene.bucket}/{source}"
        return scene.client(keys).copy_object(Bucket=bucket, Key=target, CopySource=origin)

    return attack


def _delete_many(scene: S3Scene, keys: AwsKeys) -> Any:
    """The answer may be 200 with an error for each key."""
    objects = [{"Key": MINE}, {"Key": "t/ab/secret"}]
    client: Any = scene.client(keys)
    answer = client.delete_objects(Bucket=scene.bucket, Delete={"Objects": objects})
    if {entry["Key"] for entry in answer.get("Errors", [])} == {entry["Key"] for entry in objects}:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "for each key"}}, "DeleteObjects")
    return answer


def _presigned(scene: S3Scene, keys: AwsKeys, name: str, *, instead: str | None = None) -> Any:
    url = scene.client(keys).generate_presigned_url("get_object", {"Bucket": scene.bucket, "Key": name})
    if instead is not None:
        assert name in url
        url = url.replace(name, instead)
    answer = httpx.get(url)
    if answer.status_code in (400, 403):
        raise ClientError({"Error": {"Code": str(answer.status_code), "Message": ""}}, "GetObject")
    return answer
