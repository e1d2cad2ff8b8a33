"""A downscoped token for one directory, attacked at an emulator behind a gate that evaluates access
boundaries with CEL: our reading of Google's rules.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from google.api_core.exceptions import GoogleAPICallError, NotFound
from google.auth.exceptions import RefreshError

from lakepass.broker.config import ConfigurationError, GcpStorage
from lakepass.broker.vending import CloudRefused, CloudUnavailable, Grantee, ScopeRefused
from lakepass.broker.vending.gcp import GcpVendor
from lakepass.reader.credentials import Credential, GcpToken
from lakepass.reader.location import Location
from tests.broker.vending.gcs_attacks import INSIDE, MINE, Attack, GcsScene, attacks, filled
from tests.broker.vending.locations import HOSTILE
from tests.broker.vending.loopback import loopback_server
from tests.clouds.gcs import BRIEF_SECONDS, Gcs

ANN = Grantee("ann")
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def scene(gcs: Gcs) -> Iterator[GcsScene]:
    made = filled(gcs)
    before = made.contents()
    yield made
    assert made.contents() == before, "an attack changed the store"


def vendor_of(store: Gcs, name: str = "broker", **changes: object) -> GcpVendor:
    settings = {
        "key_file": store.key_files[name],
        "endpoint": store.endpoint,
        "token_endpoint": store.token_endpoint,
        "iam_endpoint": store.iam_endpoint,
        **changes,
    }
    return GcpVendor(GcpStorage.model_validate(settings))


@pytest.fixture(scope="module")
def vendor(scene: GcsScene) -> GcpVendor:
    return vendor_of(scene.store)


def directory(scene: GcsScene, path: str = "t/a", bucket: str | None = None) -> Location:
    return Location.parse(f"gs://{bucket or scene.bucket}/{path}")


def token_of(credential: Credential) -> str:
    assert isinstance(credential.keys, GcpToken)
    return credential.keys.oauth_token


@pytest.fixture(scope="module")
def token(scene: GcsScene, vendor: GcpVendor) -> str:
    return token_of(vendor.vend(directory(scene), ANN, HOUR, "req-1"))


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in attacks()])
def test_attack_is_refused(scene: GcsScene, token: str, attack: Attack) -> None:
    with pytest.raises((GoogleAPICallError, RefreshError)) as caught:
        attack(scene, token)
    if isinstance(caught.value, GoogleAPICallError):
        assert caught.value.code in (400, 401, 403)


def test_there_are_enough_attacks() -> None:
    assert len(list(attacks())) >= 60


def test_everything_below_is_read(scene: GcsScene, token: str) -> None:
    for name in INSIDE:
        assert scene.blob(token, name).download_as_bytes() == name.encode()
    assert scene.blob(token, MINE).download_as_bytes(start=2, end=4) == MINE.encode()[2:5]


@pytest.mark.parametrize("prefix", ["t/a/", "t/a/_delta_log/", "t/a/p", "t/a/nothing"])
def test_everything_below_is_listed(scene: GcsScene, token: str, prefix: str) -> None:
    assert scene.names(token, prefix=prefix) == sorted(name for name in INSIDE if name.startswith(prefix))


def test_a_missing_object_is_missing_not_forbidden(scene: GcsScene, token: str) -> None:
    with pytest.raises(NotFound):
        scene.blob(token, "t/a/_delta_log/_last_checkpoint").download_as_bytes()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(scene: GcsScene, vendor: GcpVendor, name: str) -> None:
    own, beside = f"h/{name}/file", f"h/{name}2/secret"
    admin = scene.store.client().bucket(scene.bucket)
    for blob in (own, beside):
        admin.blob(blob).upload_from_string(b"x")
    try:
        opened = token_of(vendor.vend(directory(scene, f"h/{name}"), ANN, HOUR, "req-1"))
        assert scene.blob(opened, own).download_as_bytes() == b"x"
        assert scene.names(opened, prefix=f"h/{name}/") == [own]
        for other in (beside, "secret", MINE):
            with pytest.raises(GoogleAPICallError) as caught:
                scene.blob(opened, other).download_as_bytes()
            assert caught.value.code == 403
    finally:
        for blob in (own, beside):
            admin.blob(blob).delete()


def test_a_path_of_900_characters(scene: GcsScene, vendor: GcpVendor) -> None:
    path = "/".join(["d" * 44] * 20) + "/end"
    assert len(path) > 900
    admin = scene.store.client().bucket(scene.bucket)
    admin.blob(f"{path}/file").upload_from_string(b"x")
    try:
        opened = token_of(vendor.vend(directory(scene, path), ANN, HOUR, "req-1"))
        assert scene.blob(opened, f"{path}/file").download_as_bytes() == b"x"
        with pytest.raises(GoogleAPICallError):
            scene.blob(opened, MINE).download_as_bytes()
    finally:
        admin.blob(f"{path}/file").delete()


def test_a_table_inside_a_table(scene: GcsScene, vendor: GcpVendor) -> None:
    inner = token_of(vendor.vend(directory(scene, "t/a/a"), ANN, HOUR, "req-1"))
    assert scene.blob(inner, "t/a/a/a/part-2.parquet").download_as_bytes()
    with pytest.raises(GoogleAPICallError):
        scene.blob(inner, MINE).download_as_bytes()


def test_an_auxiliary_location_in_another_bucket(scene: GcsScene, vendor: GcpVendor) -> None:
    opened = token_of(vendor.vend(directory(scene, bucket=scene.other_bucket), ANN, HOUR, "req-1"))
    assert scene.blob(opened, MINE, scene.other_bucket).download_as_bytes() == b"secret"
    with pytest.raises(GoogleAPICallError):
        scene.blob(opened, MINE).download_as_bytes()


def test_the_end_is_the_tokens_own(scene: GcsScene, vendor: GcpVendor) -> None:
    """A requested duration changes nothing: the source token's end becomes the new one's."""
    for lifetime in (timedelta(minutes=15), timedelta(hours=12)):
        credential = vendor.vend(directory(scene), ANN, lifetime, "req-1")
        assert timedelta(minutes=58) < credential.remaining() <= timedelta(hours=1)
    assert credential.store.endpoint == scene.store.endpoint


def test_an_expired_token_is_refused_by_the_store(scene: GcsScene) -> None:
    credential = vendor_of(scene.store, "brief").vend(directory(scene), ANN, HOUR, "req-1")
    assert credential.remaining() <= timedelta(seconds=BRIEF_SECONDS)
    assert scene.blob(token_of(credential), MINE).download_as_bytes()
    time.sleep(max(0.0, credential.remaining().total_seconds()) + 1.2)
    with pytest.raises((GoogleAPICallError, RefreshError)):
        scene.blob(token_of(credential), MINE).download_as_bytes()


def test_a_short_source_token_is_not_used_twice(scene: GcsScene) -> None:
    brief = vendor_of(scene.store, "brief")
    ends = []
    for _ in range(2):
        ends.append(brief.vend(directory(scene), ANN, HOUR, "req-1").expires_at)
        time.sleep(1.1)
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[0] < ends[1]


def test_an_impersonated_account(scene: GcsScene) -> None:
    impersonating = vendor_of(scene.store, "impersonator", service_account=scene.store.email("broker"))
    opened = token_of(impersonating.vend(directory(scene), ANN, HOUR, "req-1"))
    assert scene.blob(opened, MINE).download_as_bytes()
    with pytest.raises(GoogleAPICallError):
        scene.blob(opened, "t/ab/secret").download_as_bytes()


def test_the_environments_identity(scene: GcsScene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(scene.store.key_files["broker"]))
    ambient = vendor_of(scene.store, key_file=None)
    assert scene.blob(token_of(ambient.vend(directory(scene), ANN, HOUR, "req-1")), MINE).download_as_bytes()


def test_without_an_identity(scene: GcsScene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    with pytest.raises(CloudRefused, match="no identity"):
        vendor_of(scene.store, key_file=None).vend(directory(scene), ANN, HOUR, "req-1")


def test_an_account_that_may_not_impersonate(scene: GcsScene) -> None:
    stranger = vendor_of(scene.store, "stranger", service_account=scene.store.email("broker"))
    with pytest.raises(CloudRefused) as caught:
        stranger.vend(directory(scene), ANN, HOUR, "req-1")
    assert "gserviceaccount" not in str(caught.value)


def test_an_account_without_rights_opens_nothing(scene: GcsScene) -> None:
    opened = token_of(vendor_of(scene.store, "stranger").vend(directory(scene), ANN, HOUR, "req-1"))
    with pytest.raises(GoogleAPICallError):
        scene.blob(opened, MINE).download_as_bytes()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"error": "invalid_grant", "error_description": "secret detail"}, CloudRefused),
        (403, {"error": "access_denied", "error_description": "secret detail"}, CloudRefused),
    ],
)
def test_what_the_exchange_answers(
    scene: GcsScene, status: int, body: dict[str, str], expected: type[Exception]
) -> None:
    with loopback_server(lambda _asked: (status, json.dumps(body))) as server:
        other = vendor_of(scene.store, token_endpoint=f"{server.url}/v1/token")
        with pytest.raises(expected) as caught:
            other.vend(directory(scene), ANN, HOUR, "req-1")
    assert "secret detail" not in str(caught.value)


def test_an_exchange_that_does_not_answer(scene: GcsScene) -> None:
    with pytest.raises(CloudUnavailable):
        vendor_of(scene.store, token_endpoint="http://127.0.0.1:9/v1/token").vend(
            directory(scene), ANN, HOUR, "req-1"
        )


def test_addresses_cannot_be_held(scene: GcsScene) -> None:
    held = Grantee("ann", ("192.0.2.0/24",))
    with pytest.raises(ScopeRefused, match="bind_source_ip"):
        vendor_of(scene.store).vend(directory(scene), held, HOUR, "req-1")
    assert vendor_of(scene.store, bind_source_ip=False).vend(directory(scene), held, HOUR, "req-1")


def test_a_key_file_that_is_none(scene: GcsScene, tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text('{"private_key": "local-private-key"}')
    for file in (tmp_path / "key.json", tmp_path / "missing.json"):
        with pytest.raises(ConfigurationError, match=r"gcp\.key_file") as caught:
            vendor_of(scene.store, key_file=file).vend(directory(scene), ANN, HOUR, "req-1")
        assert "local-private-key" not in str(caught.value)


@pytest.mark.parametrize("key", ["token_endpoint", "iam_endpoint"])
def test_tokens_do_not_travel_in_the_clear(key: str) -> None:
    with pytest.raises(ConfigurationError, match=key):
        GcpVendor(GcpStorage.model_validate({key: "http://sts.example.com/v1/token"}))


def test_secrets_stay_out_of_reprs(scene: GcsScene, vendor: GcpVendor) -> None:
    credential = vendor.vend(directory(scene), ANN, HOUR, "req-1")
    assert token_of(credential) not in repr(credential) + repr(vendor.__dict__) + repr(
        vendor._source.__dict__
    )
    assert credential.expires_at is not None
    assert credential.expires_at.tzinfo is UTC
    assert credential.expires_at > datetime.now(UTC)
