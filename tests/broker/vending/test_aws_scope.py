"""The session policy: pinned whole, and judged by an evaluator of IAM's documented rules."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakepass.broker.config import ConfigurationError
from lakepass.broker.vending.aws_scope import POLICY_LIMIT, escape, partition_of, session_policy
from lakepass.broker.vending.errors import ScopeRefused
from lakepass.reader.location import Location
from tests.broker.vending.iam import allows, can_list, can_read
from tests.broker.vending.locations import HOSTILE, neighbours, paths

ORDERS = Location.parse("s3://lake/sales/orders")
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def test_pinned() -> None:
    assert session_policy(ORDERS) == (
        '{"Version":"2012-10-17","Statement":['
        '{"Effect":"Allow","Action":["s3:GetObject","s3:GetObjectVersion"],'
        '"Resource":"arn:aws:s3:::lake/sales/orders/*"},'
        '{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake",'
        '"Condition":{"StringLike":{"s3:prefix":"sales/orders/*"}}}]}'
    )


def test_pinned_with_everything() -> None:
    policy = session_policy(
        ORDERS,
        partition="aws-us-gov",
        kms_keys=[KEY.replace("arn:aws:", "arn:aws-us-gov:").replace("eu-west-1", "us-gov-west-1")],
        source_ranges=["192.0.2.0/24", "2001:db8::/32"],
        list_bare_prefix=True,
    )
    addresses = {"aws:SourceIp": ["192.0.2.0/24", "2001:db8::/32"]}
    assert json.loads(policy) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject", "s3:GetObjectVersion"],
                "Resource": "arn:aws-us-gov:s3:::lake/sales/orders/*",
                "Condition": {"IpAddress": addresses},
            },
            {
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": "arn:aws-us-gov:s3:::lake",
                "Condition": {
                    "StringLike": {"s3:prefix": ["sales/orders", "sales/orders/*"]},
                    "IpAddress": addresses,
                },
            },
            {
                "Effect": "Allow",
                "Action": "kms:Decrypt",
                "Resource": [
                    "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
                ],
                "Condition": {"StringEquals": {"kms:ViaService": ["s3.us-gov-west-1.amazonaws.com"]}},
            },
        ],
    }


def test_pinned_for_a_hostile_path() -> None:
    location = Location.parse("s3://lake/a*b?c$d/${aws:username}/\"x'/é")
    statements = json.loads(session_policy(location))["Statement"]
    escaped = "a${*}b${?}c${$}d/${$}{aws:username}/\"x'/é"
    assert statements[0]["Resource"] == f"arn:aws:s3:::lake/{escaped}/*"
    assert statements[1]["Condition"] == {"StringLike": {"s3:prefix": f"{escaped}/*"}}
    assert session_policy(location).isascii()


@given(data=st.data(), path=paths)
def test_opens_exactly_what_lies_below(data: st.DataObject, path: str) -> None:
    location = Location("s3", "lake", path)
    policy = session_policy(location)
    name = data.draw(neighbours(path))
    below = name.startswith(f"{path}/")
    assert can_read(policy, "lake", name) is below
    assert can_list(policy, "lake", name) is below
    assert allows(policy, "s3:GetObjectVersion", f"arn:aws:s3:::lake/{name}") is below


@given(path=paths, key=st.sampled_from(["", "x", "_delta_log/0.json", "a b*?$", "é/ü"]))
def test_opens_everything_below(path: str, key: str) -> None:
    policy = session_policy(Location("s3", "lake", path))
    assert can_read(policy, "lake", f"{path}/{key}")
    assert can_list(policy, "lake", f"{path}/{key}")


@given(path=paths)
def test_opens_no_other_bucket_and_no_list_without_prefix(path: str) -> None:
    policy = session_policy(Location("s3", "lake", path))
    assert not can_list(policy, "lake", None)
    assert not can_read(policy, "lake2", f"{path}/x")
    assert not can_list(policy, "lake2", f"{path}/")
    assert not can_read(policy, "lak", f"{path}/x")


ACTIONS = (
    "s3:PutObject s3:DeleteObject s3:DeleteObjectVersion s3:AbortMultipartUpload s3:PutObjectAcl "
    "s3:GetObjectAcl s3:GetObjectTagging s3:PutObjectTagging s3:RestoreObject s3:ListBucketVersions "
    "s3:ListBucketMultipartUploads s3:GetBucketPolicy s3:PutBucketPolicy s3:DeleteBucket s3:GetBucketAcl "
    "s3:GetObjectVersionAcl s3:ListAllMyBuckets s3:CreateBucket s3:GetBucketLocation "
    "s3:GetObjectRetention s3:BypassGovernanceRetention sts:AssumeRole iam:GetRole kms:Decrypt "
    "kms:Encrypt kms:GenerateDataKey s3:GetObjectTorrent"
)


@pytest.mark.parametrize("action", ACTIONS.split())
@pytest.mark.parametrize("resource", ["arn:aws:s3:::lake/sales/orders/x", "arn:aws:s3:::lake", "*", KEY])
def test_allows_no_other_action(action: str, resource: str) -> None:
    assert not allows(session_policy(ORDERS), action, resource, {"s3:prefix": "sales/orders/"})


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_themselves(name: str) -> None:
    policy = session_policy(Location.parse(f"s3://lake/t/{name}"))
    assert can_read(policy, "lake", f"t/{name}/x")
    assert can_list(policy, "lake", f"t/{name}/")
    for other in (
        "t/other/x",
        f"t/{name}2/x",
        f"t/{name}",
        "t/starry/x",
        "t/questions/x",
        "t/user/x",
        "secret",
    ):
        assert not can_read(policy, "lake", other)
        assert not can_list(policy, "lake", other)


def test_kms_only_through_s3_in_the_keys_own_region() -> None:
    policy = session_policy(ORDERS, kms_keys=[KEY, KEY])
    assert allows(policy, "kms:Decrypt", KEY, {"kms:ViaService": "s3.eu-west-1.amazonaws.com"})
    assert not allows(policy, "kms:Decrypt", KEY)
    assert not allows(policy, "kms:Decrypt", KEY, {"kms:ViaService": "ec2.eu-west-1.amazonaws.com"})
    assert not allows(policy, "kms:Decrypt", KEY, {"kms:ViaService": "s3.eu-west-2.amazonaws.com"})
    assert not allows(policy, "kms:Decrypt", KEY[:-1] + "0", {"kms:ViaService": "s3.eu-west-1.amazonaws.com"})
    assert policy.count(KEY) == 1


@pytest.mark.parametrize(
    "key", ["*", "arn:aws:kms:eu-west-1:123456789012:key/*", "alias/data", KEY + "*", ""]
)
def test_a_kms_key_is_an_exact_arn(key: str) -> None:
    with pytest.raises(ConfigurationError, match="kms_keys"):
        session_policy(ORDERS, kms_keys=[key])


def test_holds_the_credential_to_addresses() -> None:
    policy = session_policy(ORDERS, source_ranges=["192.0.2.0/24"])
    read = ("s3:GetObject", "arn:aws:s3:::lake/sales/orders/x")
    assert allows(policy, *read, {"aws:SourceIp": "192.0.2.7"})
    assert not allows(policy, *read, {"aws:SourceIp": "198.51.100.7"})
    assert not allows(policy, *read)
    listing = ("s3:ListBucket", "arn:aws:s3:::lake")
    assert allows(policy, *listing, {"aws:SourceIp": "192.0.2.7", "s3:prefix": "sales/orders/"})
    assert not allows(policy, *listing, {"aws:SourceIp": "198.51.100.7", "s3:prefix": "sales/orders/"})


def test_bare_prefix_only_on_request() -> None:
    assert not can_list(session_policy(ORDERS), "lake", "sales/orders")
    wider = session_policy(ORDERS, list_bare_prefix=True)
    assert can_list(wider, "lake", "sales/orders")
    assert not can_list(wider, "lake", "sales/order")
    assert not can_list(wider, "lake", "sales/orders2")
    assert not can_read(wider, "lake", "sales/orders")


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_partitions(partition: str) -> None:
    policy = session_policy(ORDERS, partition=partition)
    assert can_read(policy, "lake", "sales/orders/x", partition=partition)
    assert can_list(policy, "lake", "sales/orders/", partition=partition)
    assert partition_of(f"arn:{partition}:iam::123456789012:role/data") == partition


@pytest.mark.parametrize(
    "arn", ["", "role/data", "arn:azure:iam::123456789012:role/data", "arn:aws:s3:::lake"]
)
def test_a_role_is_an_arn(arn: str) -> None:
    with pytest.raises(ConfigurationError, match="role_arn"):
        partition_of(arn)


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ("a" * 880, True),
        ("a" * 1000, False),
        ("é" * 140, True),
        ("表" * 160, False),
        ("*" * 220, True),
        ("*" * 250, False),
    ],
)
def test_size_is_checked_before_any_call(path: str, fits: bool) -> None:
    location = Location.parse(f"s3://lake/{path}")
    if fits:
        assert len(session_policy(location)) <= POLICY_LIMIT
    else:
        with pytest.raises(ScopeRefused, match=r"\d+ characters and AWS takes 2048"):
            session_policy(location)


def test_too_many_keys_do_not_fit_and_are_not_dropped() -> None:
    keys = [KEY[:-4] + f"{number:04d}" for number in range(40)]
    with pytest.raises(ScopeRefused, match="fewer KMS keys"):
        session_policy(ORDERS, kms_keys=keys)


def test_a_whole_bucket_is_refused() -> None:
    with pytest.raises(ScopeRefused, match="whole bucket"):
        session_policy(Location.parse("s3://lake", allow_root=True))


def test_another_cloud_is_refused() -> None:
    with pytest.raises(ScopeRefused):
        session_policy(Location.parse("gs://lake/sales"))


@given(path=paths)
def test_escaping_is_undone_by_the_documented_rules(path: str) -> None:
    assume("$" in path or "*" in path or "?" in path)
    policy = json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "x", "Resource": escape(path)}]}
    )
    assert allows(policy, "x", path)
    assert not allows(policy, "x", path + "x")
