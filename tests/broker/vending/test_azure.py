"""A SAS for one directory, attacked at Azurite behind a gate that knows directory SAS: our reading of
Azure's rules."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError

from lakepass.broker.config import AzureStorage, ConfigurationError, StorageEntry
from lakepass.broker.vending import CloudRefused, CloudUnavailable, Grantee, ScopeRefused, Vending
from lakepass.broker.vending.azure import AzureVendor
from lakepass.reader.credentials import AzureSas, Credential
from lakepass.reader.location import Location
from tests.broker.vending.azure_attacks import INSIDE, MINE, Attack, AzureScene, attacks, filled
from tests.broker.vending.locations import HOSTILE
from tests.broker.vending.loopback import loopback_server
from tests.broker.vending.sas import parameters
from tests.clouds.azurite import STRANGER_CLIENT, Azurite

ANN = Grantee("ann")
QUARTER = timedelta(minutes=15)


@pytest.fixture(scope="module")
def scene(azurite: Azurite) -> Iterator[AzureScene]:
    made = filled(azurite)
    before = made.contents()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in azurite.identity.items():
            patch.setenv(name, value)
        yield made
    assert made.contents() == before, "an attack changed the store"


@pytest.fixture(scope="module")
def vendor(scene: AzureScene) -> AzureVendor:
    return AzureVendor(AzureStorage(endpoint=scene.store.endpoint))


def directory(scene: AzureScene, path: str = "t/a", container: str | None = None) -> Location:
    return Location.parse(scene.store.location(container or scene.container, path))


def token(credential: Credential) -> str:
    assert isinstance(credential.keys, AzureSas)
    return credential.keys.sas_token


@pytest.fixture(scope="module")
def sas(scene: AzureScene, vendor: AzureVendor) -> str:
    return token(vendor.vend(directory(scene), ANN, QUARTER, "req-1"))


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in attacks()])
def test_attack_is_refused(scene: AzureScene, sas: str, attack: Attack) -> None:
    with pytest.raises(HttpResponseError) as caught:
        attack(scene, sas)
    assert caught.value.status_code in (400, 401, 403)


def test_there_are_enough_attacks() -> None:
    assert len(list(attacks())) >= 60


def test_everything_below_is_read(scene: AzureScene, sas: str) -> None:
    for name in INSIDE:
        assert scene.blob(sas, name).download_blob().readall() == name.encode()
        assert scene.lake(sas).get_file_client(name).download_file().readall() == name.encode()
    assert scene.blob(sas, MINE).download_blob(2, 3).readall() == MINE.encode()[2:5]


@pytest.mark.parametrize("prefix", ["t/a/", "t/a/_delta_log/", "t/a/p"])
def test_everything_below_is_listed(scene: AzureScene, sas: str, prefix: str) -> None:
    wanted = sorted(name for name in INSIDE if name.startswith(prefix))
    assert sorted(scene.box(sas).list_blob_names(name_starts_with=prefix)) == wanted


def test_paths_are_listed(scene: AzureScene, sas: str) -> None:
    found = [path.name for path in scene.lake(sas).get_paths("t/a") if not path.is_directory]
    assert sorted(found) == sorted(INSIDE)


def test_a_missing_file_is_missing_not_forbidden(scene: AzureScene, sas: str) -> None:
    with pytest.raises(HttpResponseError) as caught:
        scene.blob(sas, "t/a/_delta_log/_last_checkpoint").download_blob()
    assert caught.value.status_code == 404


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(scene: AzureScene, vendor: AzureVendor, name: str) -> None:
    own, beside = f"h/{name}/file", f"h/{name}2/secret"
    admin = scene.store.service(plain=True).get_container_client(scene.container)
    for blob in (own, beside):
        admin.upload_blob(blob, b"x", overwrite=True)
    try:
        opened = token(vendor.vend(directory(scene, f"h/{name}"), ANN, QUARTER, "req-1"))
        assert scene.blob(opened, own).download_blob().readall() == b"x"
        assert list(scene.box(opened).list_blob_names(name_starts_with=f"h/{name}/")) == [own]
        for other in (beside, "secret", MINE):
            with pytest.raises(HttpResponseError) as caught:
                scene.blob(opened, other).download_blob()
            assert caught.value.status_code == 403
    finally:
        for blob in (own, beside):
            admin.delete_blob(blob)


def test_a_path_of_900_characters(scene: AzureScene, vendor: AzureVendor) -> None:
    path = "/".join(["d" * 44] * 20) + "/end"
    assert len(path) > 900
    admin = scene.store.service(plain=True).get_container_client(scene.container)
    admin.upload_blob(f"{path}/file", b"x")
    try:
        opened = token(vendor.vend(directory(scene, path), ANN, QUARTER, "req-1"))
        assert scene.blob(opened, f"{path}/file").download_blob().readall() == b"x"
        with pytest.raises(HttpResponseError):
            scene.blob(opened, MINE).download_blob()
    finally:
        admin.delete_blob(f"{path}/file")


def test_a_table_inside_a_table(scene: AzureScene, vendor: AzureVendor) -> None:
    inner = token(vendor.vend(directory(scene, "t/a/a"), ANN, QUARTER, "req-1"))
    assert scene.blob(inner, "t/a/a/a/part-2.parquet").download_blob().readall()
    with pytest.raises(HttpResponseError):
        scene.blob(inner, MINE).download_blob()


def test_an_auxiliary_location_in_another_container(scene: AzureScene, vendor: AzureVendor) -> None:
    location = directory(scene, container=scene.other_container)
    opened = token(vendor.vend(location, ANN, QUARTER, "req-1"))
    assert scene.blob(opened, MINE, scene.other_container).download_blob().readall() == b"secret"
    with pytest.raises(HttpResponseError):
        scene.blob(opened, MINE).download_blob()


def test_what_the_token_says(scene: AzureScene, vendor: AzureVendor) -> None:
    before = datetime.now(UTC)
    credential = vendor.vend(directory(scene), ANN, QUARTER, "req-42")
    told = parameters(token(credential))
    assert (told["sr"], told["sdd"], told["sp"], told["spr"]) == ("d", "2", "rl", "https")
    assert told["scid"] == "req-42"
    assert "sip" not in told
    assert datetime.fromisoformat(told["st"]) < before
    assert datetime.fromisoformat(told["se"]) == credential.expires_at
    assert credential.store.endpoint == scene.store.endpoint


def test_plain_http_at_a_store_on_this_machine(scene: AzureScene) -> None:
    plain = AzureVendor(AzureStorage(endpoint=scene.store.plain_endpoint))
    opened = token(plain.vend(directory(scene), ANN, QUARTER, "req-1"))
    assert parameters(opened)["spr"] == "https,http"
    blob = scene.store.service(opened, plain=True).get_blob_client(scene.container, MINE)
    assert blob.download_blob().readall() == MINE.encode()


def test_an_expired_token_is_refused_by_the_store(scene: AzureScene, vendor: AzureVendor) -> None:
    credential = vendor.vend(directory(scene), ANN, timedelta(seconds=3), "req-1")
    assert scene.blob(token(credential), MINE).download_blob().readall()
    time.sleep(max(0.0, credential.remaining().total_seconds()) + 0.2)
    with pytest.raises(HttpResponseError) as caught:
        scene.blob(token(credential), MINE).download_blob()
    assert caught.value.status_code == 403


def test_the_end_is_the_keys_where_that_comes_first(
    scene: AzureScene, vendor: AzureVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OneLake gives keys of an hour; here the key is made to live for two minutes."""
    monkeypatch.setattr("lakepass.broker.vending.azure._KEY_LIFETIME", timedelta(minutes=2))
    short = AzureVendor(AzureStorage(endpoint=scene.store.endpoint))
    credential = short.vend(directory(scene), ANN, timedelta(hours=1), "req-1")
    told = parameters(token(credential))
    assert credential.expires_at is not None
    assert credential.remaining() < timedelta(minutes=2, seconds=1)
    assert datetime.fromisoformat(told["ske"]) == datetime.fromisoformat(told["se"]) == credential.expires_at


def test_the_delegation_key_is_fetched_once(scene: AzureScene) -> None:
    fresh = AzureVendor(AzureStorage(endpoint=scene.store.endpoint))
    keys = {
        parameters(token(fresh.vend(directory(scene, path), Grantee(name), QUARTER, "req-1")))["skt"]
        for path in ("t/a", "t/ab", "t/b")
        for name in ("ann", "bob")
    }
    assert len(keys) == 1


def test_a_flat_account(scene: AzureScene) -> None:
    flat = AzureVendor(AzureStorage(endpoint=scene.store.endpoint, hierarchical_namespace=False))
    with pytest.raises(ScopeRefused, match="allow_container_scope"):
        flat.vend(directory(scene), ANN, QUARTER, "req-1")
    accepted = AzureVendor(
        AzureStorage(endpoint=scene.store.endpoint, hierarchical_namespace=False, allow_container_scope=True)
    )
    assert (flat.scope, accepted.scope) == ("container", "container")
    told = parameters(token(accepted.vend(directory(scene), ANN, QUARTER, "req-1")))
    assert (told["sr"], told["sp"]) == ("c", "rl")


def test_addresses(scene: AzureScene, vendor: AzureVendor) -> None:
    elsewhere = token(vendor.vend(directory(scene), Grantee("ann", ("192.0.2.0/24",)), QUARTER, "req-1"))
    assert parameters(elsewhere)["sip"] == "192.0.2.0-192.0.2.255"
    with pytest.raises(HttpResponseError) as caught:
        scene.blob(elsewhere, MINE).download_blob()
    assert caught.value.status_code == 403
    here = token(vendor.vend(directory(scene), Grantee("ann", ("127.0.0.1/32",)), QUARTER, "req-1"))
    assert scene.blob(here, MINE).download_blob().readall()


def test_an_identity_without_rights_is_refused(scene: AzureScene) -> None:
    stranger = AzureVendor(AzureStorage(endpoint=scene.store.endpoint, client_id=STRANGER_CLIENT))
    with pytest.raises(CloudRefused) as caught:
        stranger.vend(directory(scene), ANN, QUARTER, "req-1")
    assert scene.store.account not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "expected"), [(503, CloudUnavailable), (429, CloudUnavailable), (403, CloudRefused)]
)
def test_what_the_account_answers(scene: AzureScene, status: int, expected: type[Exception]) -> None:
    with loopback_server(
        lambda _asked: (status, "<Error><Code>Told</Code><Message>secret detail</Message></Error>")
    ) as server:
        other = AzureVendor(AzureStorage(endpoint=f"{server.url}/account"))
        with pytest.raises(expected) as caught:
            other.vend(directory(scene), ANN, QUARTER, "req-1")
    assert "secret detail" not in str(caught.value)


def test_an_answer_that_the_sdk_stumbles_over(scene: AzureScene) -> None:
    with loopback_server(lambda _asked: (409, "<Error><Code>Told</Code></Error>")) as server:
        settings = {
            "location": scene.store.location(scene.container, ""),
            "azure": {"endpoint": f"{server.url}/x"},
        }
        entry = StorageEntry.model_validate(settings)
        with pytest.raises(CloudUnavailable, match="not understood"):
            Vending(QUARTER).vend(entry, directory(scene), ANN)


def test_an_account_that_does_not_answer(scene: AzureScene) -> None:
    gone = AzureVendor(AzureStorage(endpoint="https://127.0.0.1:9/account"))
    with pytest.raises(CloudUnavailable):
        gone.vend(directory(scene), ANN, QUARTER, "req-1")


def test_a_client_secret_needs_its_tenant(scene: AzureScene) -> None:
    settings = AzureStorage.model_validate(
        {"endpoint": scene.store.endpoint, "client_secret": "local-secret"}
    )
    with pytest.raises(ConfigurationError, match=r"azure\.tenant_id"):
        AzureVendor(settings).vend(directory(scene), ANN, QUARTER, "req-1")
