"""Tables on object stores, with keys to one directory that end and are renewed."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from azure.storage.filedatalake import generate_directory_sas

from lakepass.reader import DeltaError, Table
from lakepass.reader.credentials import AwsKeys, AzureSas, Credential, GcpToken, StoreSettings
from lakepass.reader.errors import AccessRefusedError, FileMissingError, NotATableError, PathRefusedError
from lakepass.reader.location import Location
from lakepass.reader.storage import TooLargeError, open_storage
from lakepass.reader.storage.objects import ObjectStorage
from tests.clouds.azurite import Azurite
from tests.clouds.gcs import Gcs
from tests.clouds.ministack import Ministack
from tests.reader.log_folder import LogFolder, live, paths_of
from tests.tables.fixtures import fixture

TABLE = fixture("checkpoint_v2_parquet").path


@dataclass
class Keys:
    """A source of keys to one directory of S3, as a broker would give them out."""

    store: Ministack
    location: str
    life: timedelta = timedelta(hours=1)
    given: list[Credential] = field(default_factory=list)
    told_life: timedelta | None = None
    """What the credential says its life is, when that is not the truth."""

    def __post_init__(self) -> None:
        place = Location.parse(self.location)
        arn, self.user = self.store.create_user()
        self.role = self.store.create_role(arn, [place.bucket])
        self.policy = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": ["s3:GetObject"],
                    "Resource": [f"arn:aws:s3:::{place.bucket}/{place.path}/*"],
                },
                {
                    "Effect": "Allow",
                    "Action": ["s3:ListBucket"],
                    "Resource": [f"arn:aws:s3:::{place.bucket}"],
                    "Condition": {"StringLike": {"s3:prefix": [f"{place.path}/", f"{place.path}/*"]}},
                },
            ],
        }

    def __call__(self) -> Credential:
        keys = self.store.assume(self.role, self.user, self.policy, lifetime=self.life)
        end = datetime.now(UTC) + (self.told_life or self.life)
        settings = StoreSettings(self.store.endpoint, self.store.region, path_style=True)
        self.given.append(Credential(self.location, keys, end, settings))
        return self.given[-1]


@pytest.fixture(scope="module")
def bucket(ministack: Ministack) -> str:
    name = ministack.create_bucket()
    ministack.seed(TABLE, f"s3://{name}/t/a")
    ministack.seed(TABLE, f"s3://{name}/t/ab")
    return name


def rows(table: Table) -> int:
    """Reads every file of the latest version through the table's storages."""
    snapshot = table.snapshot()
    found = 0
    for batch in snapshot.file_batches():
        for path, size in zip(
            batch.column("path").to_pylist(), batch.column("size").to_pylist(), strict=True
        ):
            full = snapshot.resolve(str(path))
            with pq.ParquetFile(
                snapshot.storages.storage_for(full).open(full, size), pre_buffer=True
            ) as file:
                found += file.read().num_rows
    return found


def local_rows() -> int:
    return rows(Table(TABLE))


def test_a_table_with_the_key_to_its_directory(ministack: Ministack, bucket: str) -> None:
    keys = Keys(ministack, f"s3://{bucket}/t/a")
    table = Table(f"s3a://{bucket}/t/a/", keys)
    assert live(table) == live(Table(TABLE))
    assert rows(table) == local_rows()
    assert table.snapshot(1).version == 1
    assert len(table.history()) == len(Table(TABLE).history())
    assert len(keys.given) == 1


def test_the_key_opens_nothing_else(ministack: Ministack, bucket: str) -> None:
    keys = Keys(ministack, f"s3://{bucket}/t/a")
    with pytest.raises(
        AccessRefusedError, match=rf"s3://{bucket}/t/ab/.* refused the credential \(status 403"
    ):
        Table(f"s3://{bucket}/t/ab", keys).snapshot()
    with pytest.raises(PathRefusedError):
        Table(f"s3://{bucket}/t/a", keys).snapshot().storages.storage_for(f"s3://{bucket}/t/ab/x")


def test_a_key_that_ends_unexpectedly_is_renewed_once(ministack: Ministack, bucket: str) -> None:
    """It says an hour and lives two seconds: the store refuses it, and one renewal goes unnoticed above."""
    keys = Keys(ministack, f"s3://{bucket}/t/a", life=timedelta(seconds=2), told_life=timedelta(hours=1))
    table = Table(f"s3://{bucket}/t/a", keys)
    snapshot = table.snapshot()
    assert len(keys.given) == 1
    time.sleep(2.5)
    keys.life = timedelta(hours=1)
    assert len(paths_of(snapshot)) == len(live(Table(TABLE)))
    assert len(keys.given) == 2


@pytest.mark.slow
def test_a_short_life_is_renewed_before_its_end(ministack: Ministack, bucket: str) -> None:
    keys = Keys(ministack, f"s3://{bucket}/t/a", life=timedelta(seconds=4))
    table = Table(f"s3://{bucket}/t/a", keys)
    end = time.monotonic() + 6
    while time.monotonic() < end:
        assert len(live(table)) > 0
    assert 2 <= len(keys.given) <= 4


def test_refused_for_good_asks_for_keys_twice_at_most(ministack: Ministack, bucket: str) -> None:
    keys = Keys(ministack, f"s3://{bucket}/t/a")
    storage = ObjectStorage(Location.parse(f"s3://{bucket}/t"), keys)
    for name in ("t/ab/x", "t/ab/y", "t/ab/z"):
        with pytest.raises(AccessRefusedError):
            storage.read(f"s3://{bucket}/{name}")
    assert len(keys.given) == 2


def test_errors_hold_no_secret(ministack: Ministack, bucket: str) -> None:
    def wrong() -> Credential:
        keys = AwsKeys("AKIALOCALWRONG000000", "local-secret-key", "local-session-token")
        return Credential("x", keys, None, StoreSettings(ministack.endpoint, ministack.region, True))

    told = ""
    for call in (
        lambda: Table(f"s3://{bucket}/t/a", wrong).snapshot(),
        lambda: list(open_storage(Location.parse(f"s3://{bucket}/t/a"), wrong).list(f"s3://{bucket}/t/a")),
    ):
        with pytest.raises(DeltaError) as caught:
            call()
        told += str(caught.value) + repr(caught.value.__cause__)
    for secret in ("local-secret-key", "local-session-token", "AKIALOCALWRONG"):
        assert secret not in told


def root_credential(store: Ministack) -> Callable[[], Credential]:
    settings = StoreSettings(store.endpoint, store.region, path_style=True)
    return lambda: Credential("x", store.root, None, settings)


NAMES = [
    "a b",
    "p=%20x",
    "x#y",
    "til~de",
    "é",
    "c:d",
    "q?z",
    "a%2Fb",
    "plus+x",
    "star*",
    "[b]{c}^",
    "`q'\"",
    "a&b=c;d",
]


def test_names_of_every_kind(ministack: Ministack) -> None:
    bucket = ministack.create_bucket()
    for name in NAMES:
        ministack.s3().put_object(Bucket=bucket, Key=f"t/{name}", Body=name.encode())
    storage = open_storage(Location.parse(f"s3://{bucket}/t"), root_credential(ministack))
    for name in NAMES:
        path = f"s3://{bucket}/t/{name}"
        assert storage.read(path) == name.encode()
        assert storage.open(path).read() == name.encode()
    assert [each.path.rsplit("/", 1)[-1] for each in storage.list(f"s3://{bucket}/t")] == sorted(
        NAMES, key=lambda name: name.encode()
    )


def test_listing_starts_where_it_is_told_and_stays_in_its_directory(ministack: Ministack) -> None:
    bucket = ministack.create_bucket()
    for name in ("log/1", "log/2", "log/3", "log/sub/4", "log2/5"):
        ministack.s3().put_object(Bucket=bucket, Key=f"t/{name}", Body=b"12345")
    storage = open_storage(Location.parse(f"s3://{bucket}/t"), root_credential(ministack))
    found = list(storage.list(f"s3://{bucket}/t/log", "1"))
    assert [each.name for each in found] == ["2", "3"]
    assert all(each.size == 5 and abs(each.modified_ms / 1000 - time.time()) < 3600 for each in found)
    assert list(storage.list(f"s3://{bucket}/t/nothing")) == []


def test_bounds_ranges_and_missing_objects(ministack: Ministack) -> None:
    bucket = ministack.create_bucket()
    ministack.s3().put_object(Bucket=bucket, Key="t/x", Body=bytes(1000))
    storage = open_storage(Location.parse(f"s3://{bucket}/t"), root_credential(ministack))
    path = f"s3://{bucket}/t/x"
    assert len(storage.read(path, offset=10, length=20)) == 20
    assert len(storage.read(path, offset=990)) == 10
    for options in ({"limit": 999}, {"length": 500, "limit": 499}):
        with pytest.raises(TooLargeError):
            storage.read(path, **options)
    for call in (lambda: storage.read(path + "y"), lambda: storage.open(path + "y")):
        with pytest.raises(FileMissingError, match="no such object"):
            call()
    with pytest.raises(DeltaError, match=r"shorter|overwritten|Cannot read"):
        storage.open(path, 2000).read()


def test_no_table_there(ministack: Ministack, bucket: str) -> None:
    with pytest.raises(NotATableError, match="is not a Delta table"):
        Table(f"s3://{bucket}/nothing", root_credential(ministack)).snapshot()
    with pytest.raises(DeltaError, match=r"NoSuchBucket|404"):
        Table("s3://no-such-bucket-here/t", root_credential(ministack)).snapshot()


def test_auxiliary_locations_have_their_own_keys(ministack: Ministack, bucket: str) -> None:
    other = ministack.create_bucket()
    ministack.s3().put_object(Bucket=other, Key="aux/x", Body=b"auxiliary")
    one, two = Keys(ministack, f"s3://{bucket}/t/a"), Keys(ministack, f"s3://{other}/aux")
    snapshot = Table(f"s3://{bucket}/t/a", one, auxiliary={f"s3a://{other}/aux/": two}).snapshot()
    path = snapshot.resolve(f"s3n://{other}/aux/x")
    assert snapshot.storages.storage_for(path).read(path) == b"auxiliary"
    assert (len(one.given), len(two.given)) == (1, 1)


def test_a_forked_process_is_told_instead_of_hanging(ministack: Ministack, bucket: str) -> None:
    storage = open_storage(Location.parse(f"s3://{bucket}/t/a"), root_credential(ministack))
    path = f"s3://{bucket}/t/a/_delta_log/_last_checkpoint"
    storage.read(path)
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing was raised"
        try:
            storage.read(path)
        except DeltaError as error:
            said = str(error).encode()
        finally:
            os.write(mouth, said)
            os._exit(0)
    os.close(mouth)
    told = os.read(ear, 10_000).decode()
    os.waitpid(child, 0)
    assert "'spawn' or 'forkserver'" in told
    assert storage.read(path), "the parent goes on"


SOURCES: dict[str, Credential] = {}


def by_reference() -> Credential:
    return SOURCES["one"]


def test_storages_pickle_without_keys(ministack: Ministack, bucket: str) -> None:
    SOURCES["one"] = Keys(ministack, f"s3://{bucket}/t/a")()
    snapshot = Table(f"s3://{bucket}/t/a", by_reference).snapshot()
    data = pickle.dumps(snapshot)
    keys = SOURCES["one"].keys
    assert isinstance(keys, AwsKeys)
    for secret in (keys.access_key_id, keys.secret_access_key, keys.session_token):
        assert secret is not None
        assert secret.encode() not in data
    assert len(paths_of(pickle.loads(data))) == len(live(Table(TABLE)))


def test_a_credential_of_another_cloud(ministack: Ministack, bucket: str) -> None:
    wrong = Credential(
        "x", AzureSas("sig=local-secret"), None, StoreSettings(ministack.endpoint, "us-east-1", True)
    )
    with pytest.raises(DeltaError) as told:
        Table(f"s3://{bucket}/t/a", lambda: wrong).snapshot()
    assert "another cloud" in str(told.value)


def test_requests_to_open_and_list_a_table(
    ministack: Ministack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for the hint, one listing, the checkpoint's footer and its columns, the commits: nothing is fetched
    twice.
    """
    folder = LogFolder(tmp_path / "table")
    from tests.reader.log_folder import add, metadata, protocol

    folder.create(add("a"))
    for version in range(1, 5):
        folder.commit(version, add(f"f{version}"))
    folder.checkpoint(2, protocol(), metadata(), add("a"), add("f1"), add("f2"))
    folder.hint(2)
    bucket = ministack.create_bucket()
    ministack.seed(folder.path, f"s3://{bucket}/t")
    asked: list[str] = []
    call = ObjectStorage._call

    def counted(self: ObjectStorage, operation: str, path: str, request: Any) -> Any:
        asked.append(f"{operation} {path.rsplit('/', 1)[-1]}")
        return call(self, operation, path, request)

    monkeypatch.setattr(ObjectStorage, "_call", counted)
    table = Table(f"s3://{bucket}/t", root_credential(ministack))
    snapshot = table.snapshot()
    assert paths_of(snapshot) == ["a", "f1", "f2", "f3", "f4"]
    reads = [each for each in asked if each.startswith("read")]
    assert sorted(set(reads)) == sorted(
        [
            "read _last_checkpoint",
            f"read {3:020d}.json",
            f"read {4:020d}.json",
            f"read {2:020d}.checkpoint.parquet",
        ]
    )
    assert len(reads) == 4, "nothing is fetched twice"
    asked.clear()
    assert snapshot.update() is snapshot
    assert 1 <= len(asked) <= 2
    assert all(each.startswith("list") for each in asked)


@pytest.fixture(scope="module")
def azure(azurite: Azurite) -> Iterator[tuple[Azurite, str, Any]]:
    container = azurite.create_container()
    azurite.seed(TABLE, azurite.location(container, "t/a"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in azurite.identity.items():
            patch.setenv(name, value)
        yield azurite, container, azurite.delegation_key()


@pytest.mark.node
def test_a_table_on_azure(azure: tuple[Azurite, str, Any]) -> None:
    store, container, key = azure
    given = []

    def keys() -> Credential:
        end = datetime.now(UTC) + timedelta(minutes=15)
        sas = generate_directory_sas(store.account, container, "t/a", key, "rl", expiry=end)
        given.append(sas)
        return Credential("x", AzureSas("?" + sas), end, StoreSettings(store.plain_endpoint))

    table = Table(store.location(container, "t/a"), keys)
    assert live(table) == live(Table(TABLE))
    assert rows(table) == local_rows()
    with pytest.raises(AccessRefusedError) as told:
        Table(store.location(container, "t/ab"), keys).snapshot()
    assert all(sas[-20:] not in str(told.value) for sas in given)
    assert "sig=" not in str(told.value)


def test_a_table_on_cloud_storage(gcs: Gcs) -> None:
    bucket = gcs.create_bucket()
    gcs.seed(TABLE, f"gs://{bucket}/t/a")
    token = gcs.access_token()

    def keys() -> Credential:
        return Credential(
            "x", GcpToken(token), datetime.now(UTC) + timedelta(minutes=50), StoreSettings(gcs.endpoint)
        )

    table = Table(f"gs://{bucket}/t/a", keys)
    assert live(table) == live(Table(TABLE))
    assert rows(table) == local_rows()
    with pytest.raises(AccessRefusedError) as told:
        wrong = Credential("x", GcpToken("local-wrong-token"), None, StoreSettings(gcs.endpoint))
        Table(f"gs://{bucket}/t/a", lambda: wrong).snapshot()
    assert "local-wrong-token" not in str(told.value)
