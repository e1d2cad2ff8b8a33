"""The Azure account that judges us must itself refuse: on the blob and on the Data Lake endpoint's shapes."""

from __future__ import annotations

import copy
import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import deltalake
import obstore
import pyarrow as pa
import pyarrow.fs
import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from azure.storage.filedatalake import DataLakeServiceClient, FileSystemClient, generate_directory_sas
from obstore.store import AzureStore

from tests.clouds.azurite import STRANGER_CLIENT, Azurite


@dataclass(frozen=True)
class Scene:
    """A container with t/a, t/ab and more, and a delegation key to sign with."""

    store: Azurite
    container: str
    key: Any
    """A user delegation key; the two SDKs each have a class for it."""

    def sas(self, path: str = "t/a", permission: str = "rl", **options: Any) -> str:
        options.setdefault("expiry", datetime.now(UTC) + timedelta(minutes=15))
        return generate_directory_sas(
            self.store.account, self.container, path, self.key, permission, protocol="https", **options
        )

    def lake(self, sas: str) -> FileSystemClient:
        client = DataLakeServiceClient(
            self.store.endpoint, sas, connection_verify=str(self.store.ca_file), retry_total=0
        )
        return client.get_file_system_client(self.container)

    def read(self, sas: str, name: str) -> bytes:
        """Over the blob endpoint."""
        blob = self.store.service(sas).get_blob_client(self.container, name)
        return blob.download_blob().readall()

    def names(self, sas: str, prefix: str | None) -> list[str]:
        """Over the blob endpoint."""
        container = self.store.service(sas).get_container_client(self.container)
        return list(container.list_blob_names(name_starts_with=prefix))


@pytest.fixture(scope="module")
def scene(azurite: Azurite) -> Iterator[Scene]:
    container = azurite.create_container()
    client = azurite.service().get_container_client(container)
    for name in ("t/a/1", "t/a/deep/2", "t/ab/secret", "t/secret", "secret"):
        client.upload_blob(name, name.encode())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in azurite.identity.items():
            patch.setenv(name, value)
        yield Scene(azurite, container, azurite.delegation_key())


@contextmanager
def refused(*codes: str) -> Iterator[None]:
    with pytest.raises(HttpResponseError) as caught:
        yield
    assert caught.value.status_code in (401, 403)
    if codes:
        assert caught.value.error_code in codes  # type: ignore[attr-defined]  # the storage SDK's addition


def test_opens_what_the_key_is_for(scene: Scene) -> None:
    sas = scene.sas()
    assert scene.read(sas, "t/a/1") == b"t/a/1"
    assert scene.names(sas, "t/a/") == ["t/a/1", "t/a/deep/2"]
    lake = scene.lake(sas)
    assert lake.get_file_client("t/a/deep/2").download_file().readall() == b"t/a/deep/2"
    assert [(path.name, path.is_directory) for path in lake.get_paths("t/a", recursive=False)] == [
        ("t/a/1", False),
        ("t/a/deep", True),
    ]
    assert [path.name for path in lake.get_paths("t/a", max_results=1)] == ["t/a/1", "t/a/deep", "t/a/deep/2"]
    assert lake.get_directory_client("t/a").get_directory_properties().name == "t/a"


def test_a_prefix_without_its_slash_shows_no_sibling(scene: Scene) -> None:
    assert scene.names(scene.sas(), "t/a") == ["t/a/1", "t/a/deep/2"]


@pytest.mark.parametrize("name", ["t/ab/secret", "t/secret", "secret", "T/A/1"])
def test_refuses_another_blob(scene: Scene, name: str) -> None:
    sas = scene.sas()
    with refused("AuthenticationFailed"):
        scene.read(sas, name)
    with refused():
        scene.lake(sas).get_file_client(name).get_file_properties()


@pytest.mark.parametrize("prefix", [None, "", "t", "t/", "t/ab", "t/ab/", "se"])
def test_refuses_another_list(scene: Scene, prefix: str | None) -> None:
    sas = scene.sas()
    with refused("AuthenticationFailed"):
        scene.names(sas, prefix)
    with refused("AuthenticationFailed"):
        list(scene.lake(sas).get_paths(prefix))


@pytest.mark.parametrize("dots", ["t/a/../ab/secret", "t/a/%2e%2e/ab/secret", "t/a/..%2fab/secret"])
def test_refuses_a_way_round(scene: Scene, dots: str) -> None:
    connection = http.client.HTTPConnection(scene.store.plain_authority)
    connection.request("GET", f"/{scene.store.account}/{scene.container}/{dots}?{scene.sas()}")
    answer = connection.getresponse()
    assert answer.status in (400, 403)
    assert b"t/ab/secret" not in answer.read()


def _depth(sas: str, depth: str) -> str:
    """`sdd` is not signed: a holder can change it."""
    return urlencode([(name, depth if name == "sdd" else value) for name, value in parse_qsl(sas)])


@pytest.mark.parametrize("depth", ["0", "1", "3", "-1", "x", ""])
def test_refuses_another_depth(scene: Scene, depth: str) -> None:
    sas = _depth(scene.sas(), depth)
    for name in ("t/a/1", "t/ab/secret", "t/secret"):
        with refused("AuthenticationFailed"):
            scene.read(sas, name)


def _changed(sas: str, **fields: str) -> str:
    return urlencode([*((name, fields.pop(name, value)) for name, value in parse_qsl(sas)), *fields.items()])


@pytest.mark.parametrize(
    "change",
    [{"sp": "rwdl"}, {"se": "2099-01-01T00:00:00Z"}, {"sr": "c"}, {"sig": "AAAA"}, {"skoid": "else"}],
)
def test_refuses_an_altered_signature(scene: Scene, change: dict[str, str]) -> None:
    with refused("AuthenticationFailed"):
        scene.read(_changed(scene.sas(), **change), "t/a/1")


def test_refuses_every_write(scene: Scene) -> None:
    sas = scene.sas()
    blobs = scene.store.service(sas).get_container_client(scene.container)
    file = scene.lake(sas).get_file_client("t/a/new")
    attempts: list[Callable[[], object]] = [
        lambda: blobs.upload_blob("t/a/new", b"x"),
        lambda: blobs.upload_blob("t/a/1", b"x", overwrite=True),
        lambda: blobs.delete_blob("t/a/1"),
        lambda: blobs.get_blob_client("t/a/1").set_blob_metadata({"a": "b"}),
        lambda: blobs.get_blob_client("t/a/new").start_copy_from_url(blobs.get_blob_client("t/a/1").url),
        lambda: blobs.get_blob_client("t/a/new").stage_block("AAAA", b"x"),
        lambda: blobs.delete_blobs("t/a/1"),
        lambda: file.upload_data(b"x", overwrite=True),
        lambda: file.delete_file(),
        lambda: scene.lake(sas).get_directory_client("t/a").delete_directory(),
        lambda: scene.lake(sas).get_directory_client("t/a").rename_directory(f"{scene.container}/t/b"),
        lambda: scene.lake(sas).create_directory("t/a/directory"),
        lambda: blobs.delete_container(),
        lambda: blobs.get_container_properties(),
    ]
    for attempt in attempts:
        with refused():
            attempt()
    everything = scene.store.service().get_container_client(scene.container).list_blob_names()
    assert list(everything) == ["secret", "t/a/1", "t/a/deep/2", "t/ab/secret", "t/secret"]


def test_refuses_what_was_not_permitted(scene: Scene) -> None:
    with refused("AuthorizationPermissionMismatch"):
        scene.names(scene.sas(permission="r"), "t/a/")
    with refused("AuthorizationPermissionMismatch"):
        scene.read(scene.sas(permission="l"), "t/a/1")


def test_refuses_an_expired_signature(scene: Scene) -> None:
    sas = scene.sas(expiry=datetime.now(UTC) + timedelta(seconds=2))
    assert scene.read(sas, "t/a/1") == b"t/a/1"
    time.sleep(2.5)
    with refused("AuthenticationFailed"):
        scene.read(sas, "t/a/1")
    with refused("AuthenticationFailed"):
        list(scene.lake(sas).get_paths("t/a"))


def test_a_signature_ends_with_its_key(scene: Scene) -> None:
    key = scene.store.delegation_key(timedelta(seconds=2))
    sas = Scene(scene.store, scene.container, key).sas()
    assert scene.read(sas, "t/a/1") == b"t/a/1"
    time.sleep(2.5)
    with refused("AuthenticationFailed"):
        scene.read(sas, "t/a/1")


def test_refuses_one_from_the_future_and_one_for_other_addresses(scene: Scene) -> None:
    with refused("AuthenticationFailed"):
        scene.read(scene.sas(start=datetime.now(UTC) + timedelta(minutes=5)), "t/a/1")
    with refused("AuthorizationSourceIPMismatch"):
        scene.read(scene.sas(ip="192.0.2.0-192.0.2.255"), "t/a/1")
    assert scene.read(scene.sas(ip="127.0.0.0-127.0.0.255"), "t/a/1") == b"t/a/1"


def test_refuses_a_forged_key(scene: Scene) -> None:
    forged = copy.copy(scene.key)
    forged.value = "QUFBQQ=="
    with refused("AuthenticationFailed"):
        scene.read(Scene(scene.store, scene.container, forged).sas(), "t/a/1")


@pytest.mark.parametrize("correlation", [None, "44444444-4444-4444-8444-444444444444"])
def test_a_signature_for_one_blob_opens_one_blob(scene: Scene, correlation: str | None) -> None:
    """Without a correlation id Azurite judges this one itself."""
    sas = generate_blob_sas(
        scene.store.account,
        scene.container,
        "t/a/1",
        user_delegation_key=scene.key,
        permission=BlobSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(minutes=5),
        protocol="https",
        correlation_id=correlation,
    )
    assert scene.read(sas, "t/a/1") == b"t/a/1"
    with refused("AuthenticationFailed"):
        scene.read(sas, "t/a/deep/2")
    with refused("AuthenticationFailed"):
        scene.read(_changed(sas, se="2099-01-01T00:00:00Z"), "t/a/1")
    with refused():
        scene.store.service(sas).get_blob_client(scene.container, "t/a/1").delete_blob()


def test_an_identity_without_a_role_gets_nothing(scene: Scene) -> None:
    with refused("AuthorizationPermissionMismatch"):
        scene.store.delegation_key(client_id=STRANGER_CLIENT)
    stranger = scene.store.service(scene.store.token_credential(STRANGER_CLIENT))
    with refused("AuthorizationPermissionMismatch"):
        stranger.get_blob_client(scene.container, "t/a/1").download_blob()


def test_refuses_nobody_and_a_wrong_key(scene: Scene) -> None:
    with pytest.raises(ClientAuthenticationError):
        scene.store.service("QUFB").get_container_client(scene.container).list_blob_names().next()
    anonymous = AzureStore(
        scene.container,
        account_name=scene.store.account,
        endpoint=scene.store.plain_endpoint,
        skip_signature=True,
        client_options={"allow_http": True},
    )
    with pytest.raises(Exception, match=r"40[134]"):
        obstore.get(anonymous, "t/a/1")


def test_the_default_credential_reaches_it(scene: Scene) -> None:
    client = scene.store.service(DefaultAzureCredential())
    assert client.get_blob_client(scene.container, "t/a/1").download_blob().readall() == b"t/a/1"


def test_other_clients_read_with_the_signature(scene: Scene, tmp_path: Path) -> None:
    store, sas = scene.store, scene.sas()
    with_obstore = AzureStore(
        scene.container,
        account_name=store.account,
        sas_key=sas,
        endpoint=store.plain_endpoint,
        client_options={"allow_http": True},
    )
    assert obstore.get(with_obstore, "t/a/1").bytes() == b"t/a/1"
    assert [entry["path"] for page in obstore.list(with_obstore, "t/a") for entry in page] == [
        "t/a/1",
        "t/a/deep/2",
    ]
    with pytest.raises(Exception, match="AuthenticationFailed"):
        obstore.get(with_obstore, "t/ab/secret")
    schemes: dict[str, Any] = {"blob_storage_scheme": "http", "dfs_storage_scheme": "http"}
    with_arrow = pyarrow.fs.AzureFileSystem(
        store.account,
        sas_token=f"?{sas}",
        blob_storage_authority=store.plain_authority,
        dfs_storage_authority=store.plain_authority,
        **schemes,
    )
    assert with_arrow.open_input_file(f"{scene.container}/t/a/1").read() == b"t/a/1"


def test_deltalake_reads_a_seeded_table(scene: Scene, tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "table", pa.table({"id": [1, 2, 3]}))
    location = scene.store.location(scene.container, "tables/numbers")
    scene.store.seed(tmp_path / "table", location)
    options = scene.store.storage_options(scene.sas("tables/numbers"))
    assert deltalake.DeltaTable(location, storage_options=options).to_pyarrow_table()["id"].to_pylist() == [
        1,
        2,
        3,
    ]
