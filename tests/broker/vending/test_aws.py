"""The caller of STS: what it asks for, and what it makes of the answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from lakepass.broker.config import AwsStorage, ConfigurationError
from lakepass.broker.vending import CloudRefused, CloudUnavailable, Grantee, ScopeRefused
from lakepass.broker.vending.aws import AwsVendor
from lakepass.broker.vending.aws_scope import session_policy
from lakepass.reader.location import Location
from tests.broker.vending.loopback import Asked, LoopbackServer, loopback_server, sts_answer, sts_error

ROLE = "arn:aws:iam::123456789012:role/lakepass-data"
ORDERS = Location.parse("s3://lake/sales/orders")
HOUR = timedelta(hours=1)
ANN = Grantee("ann")


def vendor(server: LoopbackServer, **changes: object) -> AwsVendor:
    settings = {
        "role_arn": ROLE,
        "region": "eu-west-1",
        "sts_endpoint": server.url,
        "access_key_id": "AKIALOCALBROKER",
        "secret_access_key": "local-broker-secret",
        **changes,
    }
    return AwsVendor(AwsStorage.model_validate(settings))


def test_asks_for_exactly_the_scope() -> None:
    with loopback_server(sts_answer()) as server:
        vendor(server, external_id="local-external-id").vend(ORDERS, ANN, HOUR, "req-1")
    form = server.asked[0].form
    assert form == {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": ROLE,
        "RoleSessionName": "ann",
        "SourceIdentity": "ann",
        "Policy": session_policy(ORDERS),
        "DurationSeconds": "3600",
        "ExternalId": "local-external-id",
    }


def test_leaves_out_what_is_not_configured() -> None:
    with loopback_server(sts_answer()) as server:
        vendor(server, source_identity=False).vend(ORDERS, ANN, HOUR, "req-1")
    assert not server.asked[0].form.keys() & {"ExternalId", "SourceIdentity", "Tags.member.1.Key"}


def test_never_sends_an_empty_policy() -> None:
    with loopback_server(sts_answer()) as server:
        for path in ("a", "a/b", "*", "${*}"):
            vendor(server).vend(Location("s3", "lake", path), ANN, HOUR, "req-1")
    for asked in server.asked:
        assert len(json.loads(asked.form["Policy"])["Statement"]) == 2


def test_tells_the_clouds_own_end_and_the_store() -> None:
    with loopback_server(sts_answer(1234)) as server:
        credential = vendor(server, endpoint="https://s3.example.com", path_style=True).vend(
            ORDERS, ANN, HOUR, "req-1"
        )
    assert credential.expires_at is not None
    assert abs(credential.expires_at - datetime.now(UTC) - timedelta(seconds=1234)) < timedelta(seconds=30)
    assert credential.location == "s3://lake/sales/orders"
    assert credential.store.endpoint == "https://s3.example.com"
    assert credential.store.region == "eu-west-1"
    assert credential.store.path_style


@pytest.mark.parametrize(
    ("ranges", "bind", "held"),
    [(("192.0.2.0/24",), True, True), (("192.0.2.0/24",), False, False), ((), True, False)],
)
def test_addresses(ranges: tuple[str, ...], bind: bool, held: bool) -> None:
    with loopback_server(sts_answer()) as server:
        vendor(server, bind_source_ip=bind).vend(ORDERS, Grantee("ann", ranges), HOUR, "req-1")
    assert ("aws:SourceIp" in server.asked[0].form["Policy"]) is held


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("PackedPolicyTooLarge", 400, ScopeRefused),
        ("MalformedPolicyDocument", 400, ScopeRefused),
        ("AccessDenied", 403, CloudRefused),
        ("InvalidClientTokenId", 403, CloudRefused),
        ("SignatureDoesNotMatch", 403, CloudRefused),
        ("RegionDisabledException", 403, CloudRefused),
        ("ExpiredTokenException", 400, CloudRefused),
        ("Throttling", 400, CloudUnavailable),
        ("InternalFailure", 500, CloudUnavailable),
        ("ServiceUnavailable", 503, CloudUnavailable),
    ],
)
def test_refusals(code: str, status: int, expected: type[Exception]) -> None:
    answers = loopback_server(lambda _asked: sts_error(code, status=status))
    with answers as server, pytest.raises(expected) as caught:
        vendor(server).vend(ORDERS, ANN, HOUR, "req-1")
    assert "123456789012" not in str(caught.value), "the message tells nothing of the cloud's answer"
    assert code in caught.value.detail  # type: ignore[attr-defined]  # all three have it


def test_a_policy_that_packs_too_large_is_never_replaced_by_a_wider_one() -> None:
    answers = loopback_server(lambda _asked: sts_error("PackedPolicyTooLarge"))
    with answers as server, pytest.raises(ScopeRefused):
        vendor(server).vend(ORDERS, ANN, HOUR, "req-1")
    assert len(server.asked) == 1


def test_a_policy_that_is_too_long_is_refused_before_the_call() -> None:
    with loopback_server(sts_answer()) as server, pytest.raises(ScopeRefused):
        vendor(server).vend(Location.parse("s3://lake/" + "a" * 1000), ANN, HOUR, "req-1")
    assert server.asked == []


def test_no_answer() -> None:
    with loopback_server(sts_answer()) as server:
        gone = vendor(server)
    with pytest.raises(CloudUnavailable):
        gone.vend(ORDERS, ANN, HOUR, "req-1")


def test_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with loopback_server(sts_answer()) as server, pytest.raises(CloudRefused, match="no identity"):
        vendor(server, access_key_id=None, secret_access_key=None).vend(ORDERS, ANN, HOUR, "req-1")


def test_a_profile_of_the_aws_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        "[lake]\naws_access_key_id = AKIALOCALPROFILE\naws_secret_access_key = local-profile-secret\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    own = {"access_key_id": None, "secret_access_key": None}
    with loopback_server(sts_answer()) as server:
        vendor(server, profile="lake", **own).vend(ORDERS, ANN, HOUR, "req-1")
        with pytest.raises(ConfigurationError, match="AWS settings"):
            vendor(server, profile="missing", **own)
    assert "Credential=AKIALOCALPROFILE/" in server.asked[0].authorization


def test_a_role_that_gives_an_hour_at_most() -> None:
    """AWS tells only when asked: for a chained role, or by the role's own maximum."""

    def answer(asked: Asked) -> tuple[int, str]:
        if int(asked.form["DurationSeconds"]) > 3600:
            return sts_error(
                "ValidationError",
                "The requested DurationSeconds exceeds the 1 hour session limit for role chaining.",
            )
        return sts_answer()(asked)

    with loopback_server(answer) as server:
        chained = vendor(server)
        for _ in range(2):
            credential = chained.vend(ORDERS, ANN, timedelta(hours=12), "req-1")
    assert [asked.form["DurationSeconds"] for asked in server.asked] == ["43200", "3600", "3600"]
    assert credential.remaining() < timedelta(hours=1, minutes=1)


@pytest.mark.parametrize(
    ("region", "partition", "endpoint"),
    [
        ("eu-west-1", "aws", "https://sts.eu-west-1.amazonaws.com"),
        ("us-east-1", "aws", "https://sts.us-east-1.amazonaws.com"),
        ("cn-north-1", "aws-cn", "https://sts.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "aws-us-gov", "https://sts.us-gov-west-1.amazonaws.com"),
    ],
)
def test_sts_is_asked_in_the_region(region: str, partition: str, endpoint: str) -> None:
    settings = AwsStorage(role_arn=f"arn:{partition}:iam::123456789012:role/data", region=region)
    assert AwsVendor(settings).identity.endswith(endpoint)
    assert f'"arn:{partition}:s3:::lake"' in AwsVendor(settings).check(ORDERS, ANN)


@pytest.mark.parametrize(
    ("endpoint", "sts_endpoint", "asked"),
    [
        ("https://minio.example.com", None, "https://minio.example.com"),
        ("https://minio.example.com", "https://sts.example.com", "https://sts.example.com"),
        (
            "https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com",
            None,
            "https://sts.eu-west-1.amazonaws.com",
        ),
        ("https://s3.amazonaws.com.example.com", None, "https://s3.amazonaws.com.example.com"),
    ],
)
def test_where_a_compatible_store_answers_sts(endpoint: str, sts_endpoint: str | None, asked: str) -> None:
    settings = AwsStorage(role_arn=ROLE, region="eu-west-1", endpoint=endpoint, sts_endpoint=sts_endpoint)
    assert AwsVendor(settings).identity.endswith(f"|{asked}")


def test_without_a_role_nothing_can_be_scoped() -> None:
    with pytest.raises(ConfigurationError, match=r"aws\.role_arn"):
        AwsVendor(AwsStorage(region="eu-west-1"))


@pytest.mark.parametrize("lifetime", [timedelta(minutes=14), timedelta(hours=13), timedelta(0)])
def test_lifetimes_outside_the_bounds(lifetime: timedelta) -> None:
    distant = AwsVendor(AwsStorage(role_arn=ROLE, region="eu-west-1"))
    with pytest.raises(ConfigurationError, match=r"credentials\.lifetime"):
        distant.vend(ORDERS, ANN, lifetime, "req-1")


@pytest.mark.parametrize(
    ("recipient", "expected"),
    [
        ("ann", "ann"),
        ("ann@example.com", "ann@example.com"),
        ("a", "a-ca978112ca1b"),
        ("Ünï:x y", "-n--x-y-"),
        ("x" * 65, "x" * 51 + "-"),
        ("lakepass-broker", "lakepass-broker-"),
    ],
)
def test_session_names(recipient: str, expected: str) -> None:
    name = Grantee(recipient).session_name
    assert name.startswith(expected)
    assert 2 <= len(name) <= 64
    assert name != Grantee.broker().session_name


def test_session_names_tell_recipients_apart() -> None:
    names = [
        Grantee(recipient).session_name
        for recipient in ("a b", "a:b", "a/b", "a-b", "x" * 64, "x" * 65, "x" * 66)
    ]
    assert len(set(names)) == len(names)


def test_secrets_stay_out_of_reprs() -> None:
    with loopback_server(sts_answer()) as server:
        one = vendor(server)
        credential = one.vend(ORDERS, ANN, HOUR, "req-1")
    shown = (
        repr(one)
        + repr(credential)
        + repr(one.__dict__)
        + str(AwsStorage(secret_access_key=SecretStr("local-broker-secret")))
    )
    for secret in ("local-secret-1", "local-session-token-1", "local-broker-secret"):
        assert secret not in shown
