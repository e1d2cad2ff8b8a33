"""A credential for one directory in S3, attacked on two stores that enforce session policies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from lakepass.reader.credentials import AwsKeys
from tests.broker.vending import s3_scene
from tests.broker.vending.locations import HOSTILE
from tests.broker.vending.s3_attacks import Attack, attacks
from tests.broker.vending.s3_scene import CASE_TWINS, INSIDE, S3Scene
from tests.clouds.ministack import Ministack
from tests.clouds.seaweedfs import SeaweedFS

REFUSED = {
    "AccessDenied",
    "403",
    "400",
    "InvalidToken",
    "InvalidClientTokenId",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
}


@pytest.fixture(scope="module")
def ministack_scene(ministack: Ministack) -> S3Scene:
    return s3_scene.on_ministack(ministack)


@pytest.fixture(scope="module")
def seaweedfs_scene(seaweedfs: SeaweedFS) -> S3Scene:
    return s3_scene.on_seaweedfs(seaweedfs)


@pytest.fixture(scope="module", params=["ministack_scene", "seaweedfs_scene"])
def scene(request: pytest.FixtureRequest) -> Iterator[S3Scene]:
    found: S3Scene = request.getfixturevalue(request.param)
    before = found.contents()
    yield found
    assert found.contents() == before, "an attack changed the store"


@pytest.fixture(scope="module")
def keys(scene: S3Scene) -> AwsKeys:
    vended = scene.vend().keys
    assert isinstance(vended, AwsKeys)
    return vended


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in attacks()])
def test_attack_is_refused(scene: S3Scene, keys: AwsKeys, attack: Attack) -> None:
    with pytest.raises(ClientError) as caught:
        attack(scene, keys)
    assert caught.value.response["Error"]["Code"] in REFUSED


@pytest.mark.parametrize("name", CASE_TWINS)
def test_a_name_in_other_case_is_refused(ministack_scene: S3Scene, name: str) -> None:
    """SeaweedFS compares names without regard to case, so it cannot judge this."""
    client = ministack_scene.opened()
    with pytest.raises(ClientError, match="AccessDenied"):
        client.get_object(Bucket=ministack_scene.bucket, Key=name)
    with pytest.raises(ClientError, match="AccessDenied"):
        client.list_objects_v2(Bucket=ministack_scene.bucket, Prefix=name.rpartition("/")[0] + "/")


def test_there_are_enough_attacks() -> None:
    assert len(list(attacks())) >= 60


def test_everything_below_is_read(scene: S3Scene, keys: AwsKeys) -> None:
    client = scene.client(keys)
    for name in INSIDE:
        assert client.get_object(Bucket=scene.bucket, Key=name)["Body"].read() == name.encode()
        assert client.head_object(Bucket=scene.bucket, Key=name)["ContentLength"] == len(name.encode())
    part = client.get_object(Bucket=scene.bucket, Key=INSIDE[1], Range="bytes=2-4")
    assert part["Body"].read() == INSIDE[1].encode()[2:5]


@pytest.mark.parametrize("prefix", ["t/a/", "t/a/_delta_log/", "t/a/p", "t/a/day=2030-01-01/", "t/a/nothing"])
def test_everything_below_is_listed(scene: S3Scene, keys: AwsKeys, prefix: str) -> None:
    wanted = sorted(name for name in INSIDE if name.startswith(prefix))
    for listing in (scene.client(keys).list_objects_v2, scene.client(keys).list_objects):
        answer = listing(Bucket=scene.bucket, Prefix=prefix)
        assert sorted(entry["Key"] for entry in answer.get("Contents", [])) == wanted


def test_folders_below_are_listed(scene: S3Scene, keys: AwsKeys) -> None:
    answer = scene.client(keys).list_objects_v2(Bucket=scene.bucket, Prefix="t/a/", Delimiter="/")
    assert {entry["Prefix"] for entry in answer["CommonPrefixes"]} == {
        "t/a/_delta_log/",
        "t/a/day=2030-01-01/",
        "t/a/a/",
        "t/a/100%25/",
        "t/a/ünï/",
    }


def test_a_missing_key_below_is_missing_not_forbidden(scene: S3Scene, keys: AwsKeys) -> None:
    with pytest.raises(ClientError) as caught:
        scene.client(keys).get_object(Bucket=scene.bucket, Key="t/a/_delta_log/_last_checkpoint")
    assert caught.value.response["Error"]["Code"] == "NoSuchKey"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(scene: S3Scene, name: str) -> None:
    """Neither store knows `${*}`, `${?}` and `${$}`: such a path opens nothing there, and is judged by the
    evaluator of IAM's rules in test_aws_scope.
    """
    own, beside = f"h/{name}/file", f"h/{name}2/secret"
    for key in (own, beside, "h/other/secret"):
        scene.root.put_object(Bucket=scene.bucket, Key=key, Body=b"x")
    try:
        client = scene.opened(scene.location(f"h/{name}"))
        if not set("*?$") & set(name):
            assert client.get_object(Bucket=scene.bucket, Key=own)["Body"].read() == b"x"
            listed = client.list_objects_v2(Bucket=scene.bucket, Prefix=f"h/{name}/")
            assert [entry["Key"] for entry in listed["Contents"]] == [own]
        for key in (beside, "h/other/secret"):
            with pytest.raises(ClientError, match=r"AccessDenied|403"):
                client.get_object(Bucket=scene.bucket, Key=key)
            with pytest.raises(ClientError, match=r"AccessDenied|403"):
                client.list_objects_v2(Bucket=scene.bucket, Prefix=key.rpartition("/")[0])
    finally:
        for key in (own, beside, "h/other/secret"):
            scene.root.delete_object(Bucket=scene.bucket, Key=key)


def test_a_prefix_of_880_characters(scene: S3Scene) -> None:
    path = "/".join(["long-directory-name-of-39-characters---"] * 22)
    assert len(path) == 879
    own, beside = f"{path}/file", f"{path}2/secret"
    for key in (own, beside):
        scene.root.put_object(Bucket=scene.bucket, Key=key, Body=b"x")
    try:
        client = scene.opened(scene.location(path))
        assert client.get_object(Bucket=scene.bucket, Key=own)["Body"].read() == b"x"
        with pytest.raises(ClientError, match="AccessDenied"):
            client.get_object(Bucket=scene.bucket, Key=beside)
    finally:
        for key in (own, beside):
            scene.root.delete_object(Bucket=scene.bucket, Key=key)


def test_a_table_inside_a_table(scene: S3Scene) -> None:
    inner = scene.opened(scene.location("t/a/a"))
    assert inner.get_object(Bucket=scene.bucket, Key="t/a/a/a/part-2.parquet")
    with pytest.raises(ClientError, match="AccessDenied"):
        inner.get_object(Bucket=scene.bucket, Key="t/a/part-0.parquet")
    with pytest.raises(ClientError, match="AccessDenied"):
        inner.list_objects_v2(Bucket=scene.bucket, Prefix="t/a/")


def test_an_auxiliary_location_in_another_bucket(scene: S3Scene) -> None:
    client = scene.opened(scene.location(bucket=scene.other_bucket))
    assert client.get_object(Bucket=scene.other_bucket, Key="t/a/secret")["Body"].read() == b"secret"
    with pytest.raises(ClientError, match="AccessDenied"):
        client.get_object(Bucket=scene.bucket, Key="t/a/part-0.parquet")


def test_the_end_told_is_the_end(scene: S3Scene) -> None:
    before = datetime.now(UTC)
    credential = scene.vend(lifetime=timedelta(minutes=20))
    assert credential.expires_at is not None
    assert timedelta(minutes=19) < credential.expires_at - before < timedelta(minutes=21)


def test_an_expired_credential_is_refused_by_the_store(ministack_scene: S3Scene) -> None:
    credential = ministack_scene.vend(lifetime=timedelta(seconds=2))
    assert isinstance(credential.keys, AwsKeys)
    assert credential.expires_at is not None
    client = ministack_scene.client(credential.keys)
    assert client.get_object(Bucket=ministack_scene.bucket, Key=INSIDE[0])
    # The end is told in whole seconds, rounded down.
    time.sleep(max(0.0, credential.remaining().total_seconds()) + 1.2)
    with pytest.raises(ClientError, match="ExpiredToken"):
        client.get_object(Bucket=ministack_scene.bucket, Key=INSIDE[0])


def test_the_store_is_told(scene: S3Scene) -> None:
    store = scene.vend().store
    assert (store.endpoint, store.region, store.path_style) == (scene.settings.endpoint, "us-east-1", True)
