"""The Cloud Storage that judges us must itself refuse: over the JSON API, the XML API and signed URLs."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import google.auth.impersonated_credentials
import google.oauth2.credentials
import httpx
import obstore
import pyarrow.fs
import pytest
import requests
from google.api_core.exceptions import GoogleAPICallError
from google.auth.transport.requests import Request
from obstore.exceptions import PermissionDeniedError, UnauthenticatedError
from obstore.store import GCSStore

from tests.clouds.gcs import BRIEF_SECONDS, Gcs

VIEWER = "inRole:roles/storage.objectViewer"


def boundary(bucket: str, path: str, *, expression: str | None = None, role: str = VIEWER) -> dict[str, Any]:
    """What a key to one directory says, written out here so that no product code judges itself."""
    condition = expression or (
        f"resource.name.startsWith('projects/_/buckets/{bucket}/objects/{path}/') || "
        f"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('{path}/')"
    )
    rule = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        "availablePermissions": [role],
        "availabilityCondition": {"expression": condition},
    }
    return {"accessBoundary": {"accessBoundaryRules": [rule]}}


@dataclass(frozen=True)
class Scene:
    """A bucket with t/a, t/ab and more, and a key to t/a."""

    store: Gcs
    bucket: str
    other: str
    token: str

    def client(self, token: str | None = None) -> Any:
        """The JSON API."""
        return self.store.client(_plain(token or self.token))

    def read(self, name: str, token: str | None = None, bucket: str | None = None) -> bytes:
        content = self.client(token).bucket(bucket or self.bucket).blob(name).download_as_bytes()
        assert isinstance(content, bytes)
        return content

    def names(self, prefix: str | None, token: str | None = None) -> list[str]:
        return [blob.name for blob in self.client(token).list_blobs(self.bucket, prefix=prefix)]

    def xml(self, token: str | None = None) -> GCSStore:
        """The XML API."""
        return GCSStore(self.bucket, **self.store.storage_options(token or self.token))


def _plain(token: str) -> Any:
    kind: Any = google.oauth2.credentials.Credentials
    return kind(token)


@pytest.fixture(scope="module")
def scene(gcs: Gcs) -> Scene:
    bucket, other = gcs.create_bucket(), gcs.create_bucket()
    for name in ("t/a/1", "t/a/deep/2", "t/ab/secret", "t/secret", "secret"):
        gcs.client().bucket(bucket).blob(name).upload_from_string(name.encode())
    gcs.client().bucket(other).blob("t/a/1").upload_from_string(b"secret")
    return Scene(gcs, bucket, other, gcs.downscoped(boundary(bucket, "t/a")))


@contextmanager
def refused(*codes: int) -> Iterator[None]:
    with pytest.raises(GoogleAPICallError) as caught:
        yield
    assert caught.value.code in (codes or (403,))


def test_opens_what_the_key_is_for(scene: Scene) -> None:
    assert scene.read("t/a/1") == b"t/a/1"
    assert scene.names("t/a/") == ["t/a/1", "t/a/deep/2"]
    assert [blob.name for blob in scene.client().list_blobs(scene.bucket, prefix="t/a/", page_size=1)] == [
        "t/a/1",
        "t/a/deep/2",
    ]
    with_xml = scene.xml()
    assert obstore.get(with_xml, "t/a/1").bytes() == b"t/a/1"
    assert obstore.get_range(with_xml, "t/a/1", start=2, length=2) == b"a/"
    assert obstore.get(with_xml, "t/a/1", options={"range": {"suffix": 2}}).bytes() == b"/1"
    assert obstore.head(with_xml, "t/a/1")["size"] == 5
    assert [entry["path"] for page in obstore.list(with_xml, "t/a") for entry in page] == [
        "t/a/1",
        "t/a/deep/2",
    ]
    assert obstore.list_with_delimiter(with_xml, "t/a")["common_prefixes"] == ["t/a/deep"]


@pytest.mark.parametrize("name", ["t/ab/secret", "t/secret", "secret", "t/a", "T/A/1"])
def test_refuses_another_object(scene: Scene, name: str) -> None:
    with refused():
        scene.read(name)
    with refused():
        scene.client().bucket(scene.bucket).blob(name).reload()
    with pytest.raises(PermissionDeniedError):
        obstore.get(scene.xml(), name)
    with pytest.raises(PermissionDeniedError):
        obstore.head(scene.xml(), name)


def test_refuses_another_bucket(scene: Scene) -> None:
    with refused():
        scene.read("t/a/1", bucket=scene.other)
    with refused():
        scene.client().get_bucket(scene.bucket)


@pytest.mark.parametrize("prefix", [None, "", "t", "t/", "t/a", "t/ab", "t/ab/", "se"])
def test_refuses_another_list(scene: Scene, prefix: str | None) -> None:
    with refused():
        scene.names(prefix)
    answer = requests.get(
        f"{scene.store.endpoint}/{scene.bucket}",
        params={"list-type": "2", **({} if prefix is None else {"prefix": prefix})},
        headers={"Authorization": f"Bearer {scene.token}"},
        timeout=10,
    )
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["t/a/../ab/secret", "t/a/%2e%2e/ab/secret", "t%2Fa%2F..%2Fab%2Fsecret"])
def test_refuses_a_way_round(scene: Scene, path: str) -> None:
    headers = {"Authorization": f"Bearer {scene.token}"}
    for base in (f"/{scene.bucket}/", f"/storage/v1/b/{scene.bucket}/o/"):
        connection = http.client.HTTPConnection(scene.store.endpoint.removeprefix("http://"))
        connection.request("GET", f"{base}{path}?alt=media", headers=headers)
        answer = connection.getresponse()
        assert answer.status in (400, 403, 404)
        assert answer.read() != b"t/ab/secret"


def test_refuses_every_write(scene: Scene) -> None:
    bucket = scene.client().bucket(scene.bucket)
    attempts: list[Callable[[], object]] = [
        lambda: bucket.blob("t/a/new").upload_from_string(b"x"),
        lambda: bucket.blob("t/a/1").upload_from_string(b"x"),
        lambda: bucket.blob("t/a/1").delete(),
        lambda: bucket.blob("t/a/1").compose([bucket.blob("t/a/deep/2")]),
        lambda: bucket.copy_blob(bucket.blob("t/a/1"), bucket, "t/a/new"),
        lambda: bucket.blob("t/a/new").create_resumable_upload_session(),
        lambda: bucket.delete(),
    ]
    for attempt in attempts:
        with refused():
            attempt()
    patched = bucket.blob("t/a/1")
    patched.metadata = {"a": "b"}
    with refused():
        patched.patch()
    with pytest.raises(PermissionDeniedError):
        obstore.put(scene.xml(), "t/a/new", b"x")
    with pytest.raises(PermissionDeniedError):
        obstore.delete(scene.xml(), "t/a/1")
    everything = [blob.name for blob in scene.store.client().list_blobs(scene.bucket)]
    assert everything == ["secret", "t/a/1", "t/a/deep/2", "t/ab/secret", "t/secret"]


def test_refuses_an_expired_token(scene: Scene) -> None:
    token = scene.store.downscoped(boundary(scene.bucket, "t/a"), scene.store.access_token("brief"))
    assert scene.read("t/a/1", token) == b"t/a/1"
    time.sleep(BRIEF_SECONDS + 0.2)
    answer = requests.get(
        f"{scene.store.endpoint}/{scene.bucket}/t/a/1",
        headers={"Authorization": f"Bearer {token}"},
        timeout=10,
    )
    assert answer.status_code == 401
    with pytest.raises((UnauthenticatedError, PermissionDeniedError)):
        obstore.get(scene.xml(token), "t/a/1")


def test_refuses_nobody_a_forged_token_and_an_account_without_rights(scene: Scene) -> None:
    url = f"{scene.store.endpoint}/{scene.bucket}/t/a/1"
    assert requests.get(url, timeout=10).status_code == 401
    assert requests.get(url, headers={"Authorization": "Bearer forged"}, timeout=10).status_code == 401
    stranger = scene.store.downscoped(boundary(scene.bucket, "t/a"), scene.store.access_token("stranger"))
    with refused():
        scene.read("t/a/1", stranger)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"accessBoundary": {"accessBoundaryRules": []}},
        boundary("b", "p", expression="resource.name.matches('.*')"),
        boundary("b", "p", expression="resource.name.startsWith("),
        boundary("b", "p", role="roles/storage.objectViewer"),
        boundary("b/c", "p"),
    ],
)
def test_the_exchange_refuses_what_is_no_boundary(scene: Scene, broken: dict[str, Any]) -> None:
    with pytest.raises(requests.HTTPError, match="400"):
        scene.store.downscoped(broken)


def test_the_exchange_refuses_what_cannot_be_narrowed(scene: Scene) -> None:
    wanted = boundary(scene.bucket, "t")
    for source in (
        "forged",
        scene.token,
        scene.store.access_token(scope="https://www.googleapis.com/auth/devstorage.read_write"),
    ):
        with pytest.raises(requests.HTTPError, match="400"):
            scene.store.downscoped(wanted, source)


def test_a_careless_condition_is_seen_to_leak(scene: Scene) -> None:
    """The gate is no yes-man the other way round either: without its slash a boundary opens the sibling."""
    careless = boundary(
        scene.bucket,
        "",
        expression=f"resource.name.startsWith('projects/_/buckets/{scene.bucket}/objects/t/a')",
    )
    assert scene.read("t/ab/secret", scene.store.downscoped(careless)) == b"t/ab/secret"
    default = boundary(
        scene.bucket,
        "",
        expression="api.getAttribute('storage.googleapis.com/objectListPrefix', 't/a/').startsWith('t/a/')",
    )
    assert scene.read("secret", scene.store.downscoped(default)) == b"secret"


def test_an_account_may_act_for_another_only_when_allowed(scene: Scene) -> None:
    def acting(name: str) -> Any:
        kind: Any = google.auth.impersonated_credentials.Credentials
        target = scene.store.email()
        url = f"{scene.store.iam_endpoint}/v1/projects/-/serviceAccounts/{target}:generateAccessToken"
        scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        return kind(scene.store.credentials(name), target, scopes, lifetime=300, iam_endpoint_override=url)

    allowed = acting("impersonator")
    allowed.refresh(Request())
    token = scene.store.downscoped(boundary(scene.bucket, "t/a"), allowed.token)
    assert scene.read("t/a/1", token) == b"t/a/1"
    with pytest.raises(google.auth.exceptions.RefreshError):
        acting("stranger").refresh(Request())


def _signed(scene: Scene, name: str, seconds: int = 60, account: str = "broker", method: str = "GET") -> str:
    blob = scene.store.client().bucket(scene.bucket).blob(name)
    url = blob.generate_signed_url(
        version="v4",
        expiration=timedelta(seconds=seconds),
        api_access_endpoint=scene.store.endpoint,
        credentials=scene.store.credentials(account),
        method=method,
    )
    assert isinstance(url, str)
    return url


def test_a_signed_url_opens_one_object_for_a_while(scene: Scene) -> None:
    url = _signed(scene, "t/a/1", seconds=2)
    assert httpx.get(url).content == b"t/a/1"
    assert httpx.get(url, headers={"Range": "bytes=2-3"}).content == b"a/"
    assert httpx.get(url.replace("/t/a/1", "/t/ab/secret")).status_code == 403
    assert httpx.get(url.replace("X-Goog-Expires=2", "X-Goog-Expires=9000")).status_code == 403
    assert httpx.put(url, content=b"x").status_code == 403
    assert httpx.delete(url).status_code == 403
    assert httpx.get(_signed(scene, "t/a/1", account="stranger")).status_code == 403
    time.sleep(2.2)
    assert httpx.get(url).status_code == 403


def test_pyarrow_reads_with_the_token(scene: Scene) -> None:
    options: dict[str, Any] = {
        "access_token": scene.token,
        "credential_token_expiration": datetime.now(UTC) + timedelta(hours=1),
        "endpoint_override": scene.store.endpoint.removeprefix("http://"),
        "scheme": "http",
        "retry_time_limit": timedelta(seconds=2),
    }
    files = pyarrow.fs.GcsFileSystem(**options)
    assert files.open_input_file(f"{scene.bucket}/t/a/1").read() == b"t/a/1"
    found: Any = files.get_file_info(pyarrow.fs.FileSelector(f"{scene.bucket}/t/a", recursive=True))
    assert [info.base_name for info in found] == ["1", "2"]
    with pytest.raises(OSError, match=r"403|PERMISSION_DENIED"):
        files.open_input_file(f"{scene.bucket}/t/ab/secret").read()


def test_names_keep_their_characters(scene: Scene, tmp_path: Path) -> None:
    odd = "c%20d=é/x y+z.parquet"
    file = tmp_path / odd
    file.parent.mkdir()
    file.write_bytes(b"odd")
    scene.store.seed(tmp_path, f"gs://{scene.other}/names")
    name = f"names/{odd}"
    token = scene.store.downscoped(boundary(scene.other, "names"))
    with_xml = GCSStore(scene.other, **scene.store.storage_options(token))
    assert obstore.get(with_xml, name).bytes() == b"odd"
    assert [entry["path"] for page in obstore.list(with_xml, "names") for entry in page] == [name]
    assert scene.read(name, token, scene.other) == b"odd"


def test_the_account_itself_may_write_over_both_apis(scene: Scene) -> None:
    admin = GCSStore(scene.other, **scene.store.storage_options(scene.store.access_token()))
    obstore.put(admin, "w/1", b"first")
    assert obstore.get(admin, "w/1").bytes() == b"first"
    obstore.delete(admin, "w/1")
    assert [blob.name for blob in scene.store.client().list_blobs(scene.other, prefix="w/")] == []
