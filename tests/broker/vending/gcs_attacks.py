"""What someone who holds a token for `t/a` might try. Each must be refused by the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import google.oauth2.credentials
import requests
from google.api_core.exceptions import Forbidden

from tests.clouds.gcs import Gcs

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
    "t/ab/secret",
    "t/a2/secret",
    "t/a.bak/secret",
    "t/a-copy/secret",
    "t/b/secret",
    "ta/secret",
    "x/t/a/secret",
    "T/a/secret",
    "t/A/secret",
)
PREFIXES = (
    None,
    "",
    "t",
    "t/",
    "t/a",
    "t/ab",
    "t/ab/",
    "t/a2/",
    "t/a.bak",
    "ta/",
    "s",
    "x/t/a/",
    "T/a/",
    "/t/a/",
)
MINE = "t/a/part-0.parquet"


@dataclass(frozen=True)
class GcsScene:
    """A bucket with a table, everything that must stay closed around it, and another bucket."""

    store: Gcs
    bucket: str
    other_bucket: str

    def client(self, token: str) -> Any:
        kind: Any = google.oauth2.credentials.Credentials
        return self.store.client(kind(token))

    def blob(self, token: str, name: str, bucket: str | None = None) -> Any:
        return self.client(token).bucket(bucket or self.bucket).blob(name)

    def names(self, token: str, **options: Any) -> list[str]:
        return sorted(blob.name for blob in self.client(token).list_blobs(self.bucket, **options))

    def contents(self) -> dict[str, str]:
        """Every object of both buckets, as the administrator sees them."""
        client: Any = self.store.client()
        return {
            f"{bucket}/{blob.name}": str(blob.generation)
            for bucket in (self.bucket, self.other_bucket)
            for blob in client.list_blobs(bucket)
        }


Attack = Callable[[GcsScene, str], Any]


def filled(store: Gcs) -> GcsScene:
    scene = GcsScene(store, store.create_bucket(), store.create_bucket())
    client: Any = store.client()
    for name in (*INSIDE, *OUTSIDE):
        client.bucket(scene.bucket).blob(name).upload_from_string(name.encode())
    client.bucket(scene.other_bucket).blob(MINE).upload_from_string(b"secret")
    return scene


def attacks() -> Iterator[tuple[str, Attack]]:
    """Names and attacks."""
    yield from _reads()
    yield from _lists()
    yield from _writes()
    yield from _identity()


def _blob(name: str, operation: str, *arguments: Any, **options: Any) -> Attack:
    return lambda scene, token: getattr(scene.blob(token, name), operation)(*arguments, **options)


def _reads() -> Iterator[tuple[str, Attack]]:
    for name in OUTSIDE:
        yield f"get {name}", _blob(name, "download_as_bytes")
        yield f"stat {name}", _blob(name, "reload")
        yield f"get {name} over XML", _http("GET", "/{bucket}/" + quote(name))
        yield (
            f"get {name} with our prefix beside",
            _http("GET", "/storage/v1/b/{bucket}/o/" + quote(name, safe="") + "?alt=media&prefix=t/a/"),
        )
    yield "get in another bucket", lambda s, t: s.blob(t, MINE, s.other_bucket).download_as_bytes()
    yield "get a range beside", _blob("t/ab/secret", "download_as_bytes", start=0, end=2)
    yield "read the bucket", lambda s, t: s.client(t).get_bucket(s.bucket)
    yield "read the bucket's policy", lambda s, t: s.client(t).bucket(s.bucket).get_iam_policy()
    for way in ("t/a/../ab/secret", "t/a/%2e%2e/ab/secret"):
        yield f"way round {way}", _http("GET", "/{bucket}/" + way)


def _listed(**options: Any) -> Attack:
    return lambda scene, token: scene.names(token, **options)


def _lists() -> Iterator[tuple[str, Attack]]:
    for prefix in PREFIXES:
        yield f"list {prefix!r}", _listed(prefix=prefix)
        yield f"list folders {prefix!r}", _listed(prefix=prefix, delimiter="/")
        if prefix:
            yield f"list {prefix!r} over XML", _http("GET", "/{bucket}?list-type=2&prefix=" + quote(prefix))
    yield "list from here", _listed(start_offset="t/a/", end_offset="t/b")
    yield "list by pattern", _listed(match_glob="t/a/**")
    yield "list over XML without prefix", _http("GET", "/{bucket}")
    yield "list another bucket", lambda s, t: list(s.client(t).list_blobs(s.other_bucket, prefix="t/a/"))
    yield "list buckets", lambda s, t: list(s.client(t).list_buckets())


def _writes() -> Iterator[tuple[str, Attack]]:
    for name in ("t/a/new", MINE, "t/ab/new", "new"):
        yield f"put {name}", _blob(name, "upload_from_string", b"x")
        yield f"put {name} over XML", _http("PUT", "/{bucket}/" + name)
    for name in (MINE, "t/ab/secret", "secret"):
        yield f"delete {name}", _blob(name, "delete")
        yield f"delete {name} over XML", _http("DELETE", "/{bucket}/" + name)
    yield "begin a resumable upload", _blob("t/a/new", "create_resumable_upload_session")
    yield "rewrite within", lambda s, t: s.blob(t, "t/a/new").rewrite(s.blob(t, MINE))
    yield "rewrite a sibling in", lambda s, t: s.blob(t, "t/a/new").rewrite(s.blob(t, "t/ab/secret"))
    yield "rewrite out", lambda s, t: s.blob(t, "new", s.other_bucket).rewrite(s.blob(t, MINE))
    yield "compose", lambda s, t: s.blob(t, "t/a/new").compose([s.blob(t, MINE)])
    yield "set metadata", _blob(MINE, "patch")
    yield "open to all", _blob(MINE, "make_public")
    yield "create a bucket", lambda s, t: s.client(t).create_bucket(f"{s.bucket}-new")
    yield "delete the bucket", lambda s, t: s.client(t).bucket(s.bucket).delete()


def _identity() -> Iterator[tuple[str, Attack]]:
    yield "a bent token", lambda s, t: s.blob(t[:-4] + "AAAA", MINE).download_as_bytes()
    yield "no token", lambda s, _t: s.blob("", MINE).download_as_bytes()
    yield "exchange it for a wider one", _exchange_again


def _forbidden(status: int) -> Exception:
    kind: Any = Forbidden  # untyped in google-api-core
    error: Exception = kind(str(status))
    return error


def _exchange_again(scene: GcsScene, token: str) -> Any:
    rule = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{scene.bucket}",
        "availablePermissions": ["inRole:roles/storage.objectAdmin"],
    }
    try:
        return scene.store.downscoped({"accessBoundary": {"accessBoundaryRules": [rule]}}, source=token)
    except requests.HTTPError as error:
        raise _forbidden(error.response.status_code) from None


def _http(method: str, path: str) -> Attack:
    """Without a client library."""

    def attack(scene: GcsScene, token: str) -> Any:
        url = scene.store.endpoint + path.replace("{bucket}", scene.bucket)
        request = requests.Request(
            method, url, headers={"Authorization": f"Bearer {token}"}, data=b"x" * (method == "PUT")
        )
        prepared = request.prepare()
        prepared.url = url  # as it is: requests would take the dots out
        answer = requests.Session().send(prepared, timeout=30)
        if answer.status_code in (400, 401, 403, 404):
            raise _forbidden(answer.status_code)
        return answer

    return attack
