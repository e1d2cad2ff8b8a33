"""What someone who holds a SAS for `t/a` might try. Each must be refused by the account."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, ContainerClient
from azure.storage.filedatalake import DataLakeServiceClient, FileSystemClient

from tests.clouds.azurite import Azurite

INSIDE = (
    "t/a/_delta_log/00000000000000000000.json",
    "t/a/part-0.parquet",
    "t/a/day=2030-01-01/part 1.parquet",
    "t/a/a/a/part-2.parquet",
    "t/a/100%25/p+l#u's.parquet",
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
    "t/ab",
    "t/ab/",
    "t/a2/",
    "t/a.bak",
    "ta/",
    "s",
    "x/t/a/",
    "T/a/",
    "other/t/a/",
)
MINE = "t/a/part-0.parquet"


@dataclass(frozen=True)
class AzureScene:
    """A container with a table, everything that must stay closed around it, and another container.

    Over the gate's plain port, which stands for an encrypted one.
    """

    store: Azurite
    container: str
    other_container: str

    def blob(self, sas: str, name: str, container: str | None = None) -> BlobClient:
        return self.store.service(sas, plain=True).get_blob_client(container or self.container, name)

    def box(self, sas: str, container: str | None = None) -> ContainerClient:
        return self.store.service(sas, plain=True).get_container_client(container or self.container)

    def lake(self, sas: str, container: str | None = None) -> FileSystemClient:
        """Over the Data Lake endpoint's shapes."""
        service = DataLakeServiceClient(self.store.plain_endpoint, sas, retry_total=0)
        return service.get_file_system_client(container or self.container)

    def contents(self) -> dict[str, str]:
        """Every blob of both containers, as the administrator sees them."""
        return {
            f"{container}/{blob.name}": str(blob.etag)
            for container in (self.container, self.other_container)
            for blob in self.store.service(plain=True).get_container_client(container).list_blobs()
        }


Attack = Callable[[AzureScene, str], Any]


def filled(store: Azurite) -> AzureScene:
    scene = AzureScene(store, store.create_container(), store.create_container())
    for name in (*INSIDE, *OUTSIDE):
        store.service(plain=True).get_blob_client(scene.container, name).upload_blob(name.encode())
    store.service(plain=True).get_blob_client(scene.other_container, MINE).upload_blob(b"secret")
    return scene


def attacks() -> Iterator[tuple[str, Attack]]:
    """Names and attacks."""
    yield from _reads()
    yield from _lists()
    yield from _writes()
    yield from _bent()


def _blob(name: str, operation: str, *arguments: Any, **options: Any) -> Attack:
    def attack(scene: AzureScene, sas: str) -> Any:
        answer = getattr(scene.blob(sas, name), operation)(*arguments, **options)
        return answer.readall() if operation == "download_blob" else answer

    return attack


def _reads() -> Iterator[tuple[str, Attack]]:
    for name in OUTSIDE:
        yield f"get {name}", _blob(name, "download_blob")
        yield f"head {name}", _blob(name, "get_blob_properties")
        yield f"stat {name}", _stat(name)
    yield (
        "get in another container",
        lambda s, t: s.blob(t, MINE, s.other_container).download_blob().readall(),
    )
    yield "get a range beside", _blob("t/ab/secret", "download_blob", 0, 2)
    for way in ("t/a/../ab/secret", "t/a/%2e%2e/ab/secret", "t/a/..%2fab/secret", "t/a/..%5cab/secret"):
        yield f"way round {way}", _raw("GET", way)


def _stat(name: str) -> Attack:
    return lambda scene, sas: scene.lake(sas).get_file_client(name).get_file_properties()


def _listed(prefix: str | None) -> Attack:
    return lambda scene, sas: list(scene.box(sas).list_blob_names(name_starts_with=prefix))


def _walked(prefix: str | None) -> Attack:
    return lambda scene, sas: list(scene.box(sas).walk_blobs(name_starts_with=prefix))


def _paths(directory: str | None) -> Attack:
    return lambda scene, sas: list(scene.lake(sas).get_paths(directory))


def _lists() -> Iterator[tuple[str, Attack]]:
    for prefix in PREFIXES:
        yield f"list {prefix!r}", _listed(prefix)
        yield f"walk {prefix!r}", _walked(prefix)
        yield f"paths {prefix!r}", _paths(prefix)
    yield (
        "list another container",
        lambda s, t: list(s.box(t, s.other_container).list_blob_names(name_starts_with="t/a/")),
    )
    yield "list containers", lambda s, t: list(s.store.service(t, plain=True).list_containers())
    yield "read the container", lambda s, t: s.box(t).get_container_properties()
    yield "read the container's access policy", lambda s, t: s.box(t).get_container_access_policy()
    yield "read the service", lambda s, t: s.store.service(t, plain=True).get_service_properties()


def _writes() -> Iterator[tuple[str, Attack]]:
    for name in ("t/a/new", "t/ab/new", "new"):
        yield f"put {name}", _blob(name, "upload_blob", b"x")
    yield "overwrite", _blob(MINE, "upload_blob", b"x", overwrite=True)
    for name in (MINE, "t/ab/secret", "secret"):
        yield f"delete {name}", _blob(name, "delete_blob")
    yield "stage a block", _blob("t/a/new", "stage_block", "AAAA", b"x")
    yield "create an append blob", _blob("t/a/new", "create_append_blob")
    yield "set metadata", _blob(MINE, "set_blob_metadata", {"k": "v"})
    yield "snapshot", _blob(MINE, "create_snapshot")
    yield "lease", _blob(MINE, "acquire_lease", 15)
    yield "set the tier", _blob(MINE, "set_standard_blob_tier", "Cool")
    yield "create a directory", lambda s, t: s.lake(t).create_directory("t/a/new")
    yield "delete the directory", lambda s, t: s.lake(t).delete_directory("t/a")
    yield "rename", lambda s, t: s.lake(t).get_file_client(MINE).rename_file(f"{s.container}/t/a/new")
    yield "copy within", lambda s, t: s.blob(t, "t/a/new").start_copy_from_url(s.blob(t, MINE).url)
    yield (
        "copy out",
        lambda s, t: s.blob(t, "new", s.other_container).start_copy_from_url(s.blob(t, MINE).url),
    )
    yield (
        "create a container",
        lambda s, t: s.store.service(t, plain=True).create_container(f"{s.container}-new"),
    )
    yield "delete the container", lambda s, t: s.box(t).delete_container()
    yield (
        "open the container",
        lambda s, t: s.box(t).set_container_access_policy(signed_identifiers={}, public_access="blob"),
    )


def _bent() -> Iterator[tuple[str, Attack]]:
    """The token itself, changed by its holder."""
    yield "no signature", _bent_read(MINE, sig=None)
    yield "another signature", _bent_read(MINE, sig="AAAA")
    for change in (
        {"sp": "racwdl"},
        {"se": "2099-01-01T00:00:00Z"},
        {"ske": "2099-01-01T00:00:00Z"},
        {"sr": "c", "sdd": None},
        {"sr": "b", "sdd": None},
        {"skoid": "00000000-0000-0000-0000-000000000000"},
        {"spr": "https,http"},
        {"scid": "another"},
    ):
        yield f"changed {'+'.join(change)}", _bent_read(MINE, **change)
    for depth in ("0", "1", "3", "-1", ""):
        yield f"depth {depth!r} on a sibling", _bent_read("t/ab/secret", sdd=depth)
        yield f"depth {depth!r} on the parent", _bent_read("t/secret", sdd=depth)


def _bent_read(name: str, **changes: str | None) -> Attack:
    def attack(scene: AzureScene, sas: str) -> Any:
        told: dict[str, str | None] = {**dict(parse_qsl(sas)), **changes}
        bent = urlencode({key: value for key, value in told.items() if value is not None})
        return scene.blob(bent, name).download_blob().readall()

    return attack


def _raw(method: str, path: str) -> Attack:
    """Without an SDK, which would normalise the path."""

    def attack(scene: AzureScene, sas: str) -> Any:
        connection = http.client.HTTPConnection(scene.store.plain_authority)
        connection.request(method, f"/{scene.store.account}/{scene.container}/{path}?{sas}")
        answer = connection.getresponse()
        if answer.status >= 400:
            error = HttpResponseError(message="refused")
            error.status_code = answer.status
            raise error
        return answer.read()

    return attack
