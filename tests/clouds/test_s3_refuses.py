"""Each S3 that judges us must itself refuse: one that lets any of these through is not a judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from lakepass.reader.credentials import AwsKeys
from tests.clouds.ministack import Ministack
from tests.clouds.seaweedfs import SeaweedFS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def read_policy(bucket: str, path: str) -> dict[str, Any]:
    """What a key to one directory says, written out here so that no product code judges itself."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [f"arn:aws:s3:::{bucket}/{path}/*"]},
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [f"arn:aws:s3:::{bucket}"],
                "Condition": {"StringLike": {"s3:prefix": [f"{path}/", f"{path}/*"]}},
            },
        ],
    }


@dataclass(frozen=True)
class Scene:
    """A bucket with t/a, t/ab and other, and a key to t/a."""

    bucket: str
    key: S3Client
    """Holds the key under test."""
    root: S3Client
    client: Callable[[AwsKeys], S3Client]
    keys: AwsKeys


def _fill(client: S3Client, bucket: str) -> None:
    for name in ("t/a/1", "t/a/deep/2", "t/ab/secret", "t/secret", "secret"):
        client.put_object(Bucket=bucket, Key=name, Body=name.encode())


@pytest.fixture(scope="module")
def on_ministack(ministack: Ministack) -> Scene:
    bucket = ministack.create_bucket()
    _fill(ministack.s3(), bucket)
    broker, broker_keys = ministack.create_user()
    role = ministack.create_role(broker, [bucket], external_id="ours")
    keys = ministack.assume(role, broker_keys, read_policy(bucket, "t/a"), external_id="ours")
    return Scene(bucket, ministack.s3(keys), ministack.s3(), ministack.s3, keys)


@pytest.fixture(scope="module")
def on_seaweedfs(seaweedfs: SeaweedFS) -> Scene:
    bucket = seaweedfs.create_bucket()
    _fill(seaweedfs.s3(), bucket)
    keys = seaweedfs.assume(read_policy(bucket, "t/a"))
    return Scene(bucket, seaweedfs.s3(keys), seaweedfs.s3(), seaweedfs.s3, keys)


@pytest.fixture(params=["on_ministack", "on_seaweedfs"])
def scene(request: pytest.FixtureRequest) -> Scene:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Scene)
    return found


@contextmanager
def refused(*codes: str) -> Iterator[None]:
    with pytest.raises(ClientError) as caught:
        yield
    assert caught.value.response["Error"]["Code"] in (codes or ("AccessDenied", "403"))


def test_opens_what_the_key_is_for(scene: Scene) -> None:
    assert scene.key.get_object(Bucket=scene.bucket, Key="t/a/1")["Body"].read() == b"t/a/1"
    listed = scene.key.list_objects_v2(Bucket=scene.bucket, Prefix="t/a/")
    assert [entry["Key"] for entry in listed["Contents"]] == ["t/a/1", "t/a/deep/2"]


@pytest.mark.parametrize("name", ["t/ab/secret", "t/secret", "secret", "t/a"])
def test_refuses_another_object(scene: Scene, name: str) -> None:
    with refused():
        scene.key.get_object(Bucket=scene.bucket, Key=name)
    with refused():
        scene.key.head_object(Bucket=scene.bucket, Key=name)


@pytest.mark.parametrize("prefix", ["", "t", "t/", "t/a", "t/ab", "t/ab/", "se"])
def test_refuses_another_list(scene: Scene, prefix: str) -> None:
    with refused():
        scene.key.list_objects_v2(Bucket=scene.bucket, Prefix=prefix)
    with refused():
        scene.key.list_objects(Bucket=scene.bucket, Prefix=prefix)


def test_refuses_a_list_without_a_prefix(scene: Scene) -> None:
    with refused():
        scene.key.list_objects_v2(Bucket=scene.bucket)
    with refused():
        scene.key.list_objects_v2(Bucket=scene.bucket, Delimiter="/")


def test_refuses_every_write(scene: Scene) -> None:
    key, bucket = scene.key, scene.bucket
    with refused():
        key.put_object(Bucket=bucket, Key="t/a/new", Body=b"x")
    with refused():
        key.put_object(Bucket=bucket, Key="t/a/1", Body=b"x")
    with refused():
        key.delete_object(Bucket=bucket, Key="t/a/1")
    with refused():
        key.create_multipart_upload(Bucket=bucket, Key="t/a/new")
    with refused():
        key.copy_object(Bucket=bucket, Key="t/a/new", CopySource={"Bucket": bucket, "Key": "t/a/1"})
    # The answer to a multi-delete may be 200 with an error for each key.
    try:
        answer = key.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "t/a/1"}]})
    except ClientError as error:
        assert error.response["Error"]["Code"] == "AccessDenied"
    else:
        assert [entry["Code"] for entry in answer["Errors"]] == ["AccessDenied"]
    assert scene.root.get_object(Bucket=bucket, Key="t/a/1")["Body"].read() == b"t/a/1"
    assert "t/a/new" not in [entry["Key"] for entry in scene.root.list_objects_v2(Bucket=bucket)["Contents"]]


def test_refuses_altered_keys(scene: Scene) -> None:
    keys = scene.keys
    wrong_secret = AwsKeys(keys.access_key_id, keys.secret_access_key[::-1], keys.session_token)
    with refused("SignatureDoesNotMatch", "InvalidAccessKeyId", "AccessDenied"):
        scene.client(wrong_secret).get_object(Bucket=scene.bucket, Key="t/a/1")
    assert keys.session_token is not None
    wrong_token = AwsKeys(keys.access_key_id, keys.secret_access_key, keys.session_token[:-8] + "AAAAAAAA")
    with refused("InvalidToken", "InvalidAccessKeyId", "AccessDenied", "SignatureDoesNotMatch"):
        scene.client(wrong_token).get_object(Bucket=scene.bucket, Key="t/a/1")
    without_token = AwsKeys(keys.access_key_id, keys.secret_access_key)
    with refused("InvalidToken", "InvalidAccessKeyId", "AccessDenied"):
        scene.client(without_token).get_object(Bucket=scene.bucket, Key="t/a/1")


def test_ministack_refuses_an_expired_token(ministack: Ministack, on_ministack: Scene) -> None:
    bucket = on_ministack.bucket
    broker, broker_keys = ministack.create_user()
    role = ministack.create_role(broker, [bucket])
    lifetime = timedelta(seconds=2)
    client = ministack.s3(ministack.assume(role, broker_keys, read_policy(bucket, "t/a"), lifetime=lifetime))
    client.get_object(Bucket=bucket, Key="t/a/1")
    time.sleep(2.5)
    with refused("ExpiredToken"):
        client.get_object(Bucket=bucket, Key="t/a/1")


def test_ministack_refuses_whom_the_role_does_not_trust(ministack: Ministack, on_ministack: Scene) -> None:
    broker, broker_keys = ministack.create_user()
    _, stranger_keys = ministack.create_user()
    role = ministack.create_role(broker, [on_ministack.bucket], external_id="ours")
    ministack.assume(role, broker_keys, external_id="ours")
    for keys, external_id in ((broker_keys, None), (broker_keys, "theirs"), (stranger_keys, "ours")):
        with refused():
            ministack.assume(role, keys, external_id=external_id)


def test_ministack_broker_has_no_data_of_its_own(ministack: Ministack, on_ministack: Scene) -> None:
    _, keys = ministack.create_user()
    with refused():
        ministack.s3(keys).get_object(Bucket=on_ministack.bucket, Key="t/a/1")


def test_ministack_tells_case_twins_apart(ministack: Ministack, on_ministack: Scene) -> None:
    ministack.s3().put_object(Bucket=on_ministack.bucket, Key="T/A/1", Body=b"secret")
    with refused():
        on_ministack.key.get_object(Bucket=on_ministack.bucket, Key="T/A/1")
