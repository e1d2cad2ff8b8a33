"""`dir` mode: one renewing credential per location, asked for when needed, and when `auto` goes over to
`url`."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakepass.reader import SharingClient, Table
from lakepass.reader.credentials import AwsKeys
from lakepass.reader.errors import (
    AccessRefusedError,
    CorruptTableError,
    DeltaError,
    NotATableError,
    SharingError,
)
from lakepass.reader.location import Location
from lakepass.reader.log.cache import DirectoryCache
from lakepass.reader.sharing import vended
from lakepass.reader.sharing.access import AccessModeError
from lakepass.reader.sharing.table import SharedTable
from tests.clouds.ministack import Ministack, statement
from tests.reader.sharing.conftest import QUICK
from tests.reader.sharing.folder import FolderShare
from tests.reader.sharing.gate import Gate
from tests.reader.sharing.server import Asked, Reply, Server, as_json
from tests.tables import fixtures

CREDENTIALS = "/shares/s/schemas/d/tables/t/temporary-table-credentials"


@dataclass
class Vending:
    """Vends real keys of ministack for any location in a bucket, scoped to it, living as long as a test
    says."""

    store: Ministack
    bucket: str
    role: str
    keys: AwsKeys
    life: float = 3600.0
    endpoint: str | None = None
    """Where the store is said to be, if not where it is."""
    asked: list[str | None] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    def __call__(self, asked: Asked) -> Reply:
        wanted = asked.fields.get("location")
        self.asked.append(wanted)
        location = Location.parse(wanted or f"s3://{self.bucket}/t")
        if str(location) in self.refused:
            return as_json({"errorCode": "PERMISSION_DENIED", "message": "not this one"}, 403)
        policy = statement(["s3:GetObject"], [f"arn:aws:s3:::{self.bucket}/{location.prefix}*"])
        policy["Statement"].append(
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [f"arn:aws:s3:::{self.bucket}"],
                "Condition": {"StringLike": {"s3:prefix": [location.prefix, f"{location.prefix}*"]}},
            }
        )
        answer = self.store.sts(self.keys).assume_role(
            RoleArn=self.role,
            RoleSessionName="test",
            Policy=json.dumps(policy),
            DurationSeconds=max(int(self.life), 1),
        )["Credentials"]
        return as_json(
            {
                "credentials": {
                    "location": str(location),
                    "awsTempCredentials": {
                        "accessKeyId": answer["AccessKeyId"],
                        "secretAccessKey": answer["SecretAccessKey"],
                        "sessionToken": answer["SessionToken"],
                    },
                    "expirationTime": int(answer["Expiration"].timestamp() * 1000),
                },
                "lakepass": {
                    "storage": {
                        "endpoint": self.endpoint or self.store.endpoint,
                        "region": "us-east-1",
                        "pathStyle": True,
                    }
                },
            }
        )


@pytest.fixture
def vending(server: Server, ministack: Ministack) -> Iterator[Vending]:
    bucket = ministack.create_bucket()
    arn, keys = ministack.create_user()
    made = Vending(ministack, bucket, ministack.create_role(arn, [bucket]), keys)
    server.on("POST", CREDENTIALS, made)
    yield made
    vended._providers.clear()


@pytest.fixture
def gate(vending: Vending) -> Iterator[Gate]:
    made = Gate(vending.store.endpoint)
    vending.endpoint = made.endpoint
    yield made
    made.stop()


def offer(
    share: FolderShare, vending: Vending, folder: Path, modes: tuple[str, ...] = ("url", "dir"), **extra: Any
) -> None:
    vending.store.seed(folder, f"s3://{vending.bucket}/t")
    share.add("t", folder, accessModes=list(modes), location=f"s3://{vending.bucket}/t", **extra)


def opened(server: Server, **options: Any) -> SharedTable:
    return SharingClient(server.profile, patience=QUICK).table("s.d.t", **options)


def in_order(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


PLAIN = fixtures.fixture("checkpoint_classic").path


@pytest.mark.parametrize(
    ("modes", "access", "became"),
    [
        (("dir",), "auto", "dir"),
        (("dir",), "dir", "dir"),
        (("dir",), "url", None),
        (("url",), "auto", "url"),
        (("url",), "url", "url"),
        (("url",), "dir", None),
        (("url", "dir"), "auto", "dir"),
        (("url", "dir"), "url", "url"),
        (("url", "dir", "beam"), "dir", "dir"),
    ],
)
def test_the_compatibility_table_for_real(
    server: Server,
    share: FolderShare,
    vending: Vending,
    modes: tuple[str, ...],
    access: Any,
    became: str | None,
) -> None:
    offer(share, vending, PLAIN, modes)
    if became is None:
        with pytest.raises(AccessModeError):
            opened(server, access=access)
        return
    table = opened(server, access=access)
    assert in_order(table.to_arrow()) == in_order(Table(PLAIN).to_arrow())
    assert table.access == became
    assert bool(vending.asked) == (became == "dir")
    assert bool(server.requests("/query")) == (became == "url")


def test_a_server_that_says_nothing_is_read_by_url_or_at_a_given_location(
    server: Server, share: FolderShare, vending: Vending
) -> None:
    vending.store.seed(PLAIN, f"s3://{vending.bucket}/t")
    share.add("t", PLAIN)
    assert opened(server).access == "url"
    with pytest.raises(AccessModeError, match="vends credentials without announcing"):
        opened(server, access="dir")
    table = opened(server, access="dir", location=f"s3a://{vending.bucket}/t/")
    assert in_order(table.to_arrow()) == in_order(Table(PLAIN).to_arrow())
    assert table.access == "dir"


def test_a_credential_for_another_place_is_not_used(
    server: Server, share: FolderShare, vending: Vending
) -> None:
    offer(share, vending, PLAIN, ("dir",))
    with pytest.raises(SharingError, match="vended a credential for"):
        opened(server, access="dir", location=f"s3://{vending.bucket}/other").snapshot()


@pytest.mark.parametrize("place", ["file:///etc", "/etc"])
def test_a_server_cannot_point_at_this_machine(server: Server, share: FolderShare, place: str) -> None:
    share.add("t", PLAIN, accessModes=["dir"], location=place)
    with pytest.raises(DeltaError, match="on this machine"):
        opened(server)
    share.add("t", PLAIN, accessModes=["dir"], location="s3://lake/t", auxiliaryLocations=[place])
    with pytest.raises(DeltaError, match="on this machine"):
        opened(server)


def fell_back(caplog: pytest.LogCaptureFixture, table: SharedTable, reason: str) -> bool:
    return table.access == "url" and "instead of by directory" in caplog.text and reason in caplog.text


def test_auto_falls_back_when_the_cloud_is_not_known(
    server: Server, share: FolderShare, caplog: pytest.LogCaptureFixture
) -> None:
    share.add("t", PLAIN, accessModes=["url", "dir"], location="oss://bucket/t")
    table = opened(server)
    assert in_order(table.to_arrow()) == in_order(Table(PLAIN).to_arrow())
    assert fell_back(caplog, table, "not one this reader can reach")


def test_auto_falls_back_when_the_credential_opens_nothing(
    server: Server, share: FolderShare, vending: Vending, caplog: pytest.LogCaptureFixture
) -> None:
    offer(share, vending, PLAIN)
    vending.role = vending.store.create_role("arn:aws:iam::123456789012:root", ["another-bucket"])
    arn, vending.keys = vending.store.create_user()
    vending.role = vending.store.create_role(arn, ["another-bucket"])
    table = opened(server)
    assert in_order(table.to_arrow()) == in_order(Table(PLAIN).to_arrow())
    assert fell_back(caplog, table, "does not open the location")
    with pytest.raises(AccessRefusedError):
        opened(server, access="dir").snapshot()


def test_auto_falls_back_when_the_log_needs_what_we_lack(
    server: Server, share: FolderShare, vending: Vending, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offer(share, vending, PLAIN)
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["catalogManaged"]}
    protocol["writerFeatures"] = ["catalogManaged"]
    latest = Table(PLAIN).snapshot().version
    vending.store.s3().put_object(
        Bucket=vending.bucket,
        Key=f"t/_delta_log/{latest + 1:020}.json",
        Body=json.dumps({"protocol": protocol}).encode(),
    )
    table = opened(server)
    assert in_order(table.to_arrow()) == in_order(Table(PLAIN).to_arrow())
    assert fell_back(caplog, table, "does not support")


@pytest.mark.parametrize("damage", ["no log", "garbage"])
def test_auto_does_not_hide_a_table_that_is_wrong(
    server: Server, share: FolderShare, vending: Vending, damage: str
) -> None:
    share.add("t", PLAIN, accessModes=["url", "dir"], location=f"s3://{vending.bucket}/t")
    if damage == "garbage":
        key = "t/_delta_log/00000000000000000000.json"
        vending.store.s3().put_object(Bucket=vending.bucket, Key=key, Body=b"{")
    table = opened(server)
    with pytest.raises((NotATableError, CorruptTableError)):
        table.snapshot()
    assert table.access == "dir"


def auxiliary(vending: Vending, share: FolderShare, tmp_path: Path) -> tuple[str, Path]:
    """The fixture whose log names files in a second location, moved to the bucket."""
    fixture = fixtures.place("auxiliary", tmp_path / "placed")
    other = f"s3://{vending.bucket}/other"
    assert fixture.auxiliary is not None
    vending.store.seed(fixture.auxiliary, other)
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in sorted(fixture.path.rglob("*")):
        target = moved / file.relative_to(fixture.path)
        if file.is_dir():
            target.mkdir(exist_ok=True)
        elif file.suffix == ".json":
            text = file.read_text()
            for written in (f"file://{fixture.auxiliary}", f"file:{fixture.auxiliary}"):
                text = text.replace(written, other)
            target.write_text(text)
        elif file.suffix != ".crc":
            target.write_bytes(file.read_bytes())
    vending.store.seed(moved, f"s3://{vending.bucket}/t")
    location = f"s3://{vending.bucket}/t"
    share.add("t", fixture.path, accessModes=["url", "dir"], location=location, auxiliaryLocations=[other])
    return other, fixture.path


def test_an_auxiliary_location_has_its_own_credential_asked_for_when_needed(
    server: Server, share: FolderShare, vending: Vending, tmp_path: Path
) -> None:
    other, _ = auxiliary(vending, share, tmp_path)
    table = opened(server)
    snapshot = table.snapshot()
    assert vending.asked == [None]
    rows = snapshot.scan().to_arrow()
    assert vending.asked == [None, other]
    assert rows.num_rows == fixtures.fixture("auxiliary").rows().num_rows
    assert table.access == "dir"


def test_auto_falls_back_when_an_auxiliary_credential_is_refused(
    server: Server, share: FolderShare, vending: Vending, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other, _ = auxiliary(vending, share, tmp_path)
    vending.refused.add(other)
    table = opened(server)
    snapshot = table.snapshot()
    assert table.access == "dir"
    # By URL the server lists the files; only that it is asked, and that dir is given up, counts here.
    scan = snapshot.scan()
    assert fell_back(caplog, table, "refused a credential")
    assert "Signed" in repr(scan.plan.storages)
    with pytest.raises(DeltaError):
        opened(server, access="dir").to_arrow()


@pytest.mark.slow
def test_a_read_longer_than_the_tokens_life(server: Server, share: FolderShare, vending: Vending) -> None:
    offer(share, vending, PLAIN, ("dir",))
    vending.life = 2.0
    table = opened(server)
    for _ in range(4):
        assert in_order(table.to_arrow()) == in_order(Table(PLAIN).to_arrow())
        time.sleep(1.2)
    assert len(vending.asked) >= 3


def test_one_request_however_many_threads_wait(server: Server, share: FolderShare, vending: Vending) -> None:
    offer(share, vending, PLAIN, ("dir",))
    expected = in_order(Table(PLAIN).to_arrow())
    wrong: list[BaseException] = []

    def read() -> None:
        try:
            assert in_order(opened(server).to_arrow()) == expected
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert vending.asked == [None]


@pytest.mark.slow
def test_a_failed_renewal_goes_on_with_the_old_keys_while_they_live(
    server: Server, share: FolderShare, vending: Vending
) -> None:
    offer(share, vending, PLAIN, ("dir",))
    vending.life = 20.0
    table = opened(server)
    table.snapshot()
    end = table.credential().expires_at
    assert end is not None
    server.on("POST", CREDENTIALS, as_json({"errorCode": "X", "message": "down"}, 403))
    # Within the last fifth of the keys' life, when a renewal is due, and well before their end.
    time.sleep((end - datetime.now(UTC)).total_seconds() - 3.5)
    table.snapshot()
    time.sleep((end - datetime.now(UTC)).total_seconds() + 0.5)
    with pytest.raises(SharingError, match="403"):
        table.snapshot()
    server.on("POST", CREDENTIALS, vending)
    assert in_order(table.to_arrow()) == in_order(Table(PLAIN).to_arrow())


def test_keys_the_store_refuses_are_renewed_once(
    server: Server, share: FolderShare, vending: Vending
) -> None:
    """Keys that end before they say so, as with a clock that is wrong."""
    offer(share, vending, PLAIN, ("dir",))

    def early(asked: Asked) -> Reply:
        life, vending.life = vending.life, 1.0
        reply = vending(asked)
        vending.life = life
        fields = json.loads(reply.body)
        fields["credentials"]["expirationTime"] += 3_600_000
        return as_json(fields)

    server.on("POST", CREDENTIALS, early, vending)
    table = opened(server)
    table.snapshot()
    time.sleep(1.5)
    assert in_order(table.to_arrow()) == in_order(Table(PLAIN).to_arrow())
    assert len(vending.asked) == 2


def test_the_servers_clock_counts(server: Server, share: FolderShare, vending: Vending) -> None:
    """A server an hour ahead: its keys' end looks an hour further away than it is."""
    import email.utils
    from datetime import UTC, datetime, timedelta

    offer(share, vending, PLAIN, ("dir",))
    vending.life = 900.0

    def ahead(asked: Asked) -> Reply:
        reply = vending(asked)
        fields = json.loads(reply.body)
        fields["credentials"]["expirationTime"] += 3_600_000
        date = email.utils.format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        return as_json(fields, Date=date)

    server.on("POST", CREDENTIALS, ahead)
    credential = opened(server).credential()
    assert credential.expires_at is not None
    assert credential.remaining() < timedelta(minutes=16)


def test_a_pickled_task_holds_no_keys(
    server: Server, share: FolderShare, vending: Vending, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    offer(share, vending, PLAIN, ("dir",))
    table = opened(server)
    tasks = table.snapshot().scan().tasks()
    keys = table.credential().keys
    assert isinstance(keys, AwsKeys)
    assert keys.session_token is not None
    held = pickle.dumps(tasks)
    # The test's own vending talks to the store with botocore, which logs what it gets.
    ours = "\n".join(
        str(record.msg) + str(record.args) for record in caplog.records if "boto" not in record.name
    )
    for secret in (keys.secret_access_key, keys.session_token, server.profile["bearerToken"]):
        assert secret.encode() not in held
        assert secret not in ours
        assert secret not in repr(table) + repr(tasks) + repr(table.storage_options())
    rows = pa.concat_tables([task.to_arrow() for task in pickle.loads(held)])
    assert in_order(rows) == in_order(Table(PLAIN).to_arrow())
    assert vending.asked == [None]


@pytest.mark.slow
def test_many_readers_while_tokens_last_three_seconds(
    server: Server, share: FolderShare, vending: Vending, tmp_path: Path
) -> None:
    """Ten threads in each of four processes: no failed read, one request per process and renewal."""
    folder = fixtures.fixture("schema_evolution").path
    offer(share, vending, folder, ("dir",))
    vending.life = 3.0
    profile = tmp_path / "me.share"
    profile.write_text(json.dumps(server.profile))
    profile.chmod(0o600)
    rows = Table(folder).snapshot().scan().count()
    words = [
        sys.executable,
        "-m",
        "tests.reader.sharing.reading_process",
        str(profile),
        "s.d.t",
        "8",
        str(rows),
    ]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    reports = [json.loads(process.communicate()[0]) for process in processes]
    assert [report["wrong"] for report in reports] == [[]] * 4
    assert all(report["right"] > 0 for report in reports)
    # A token is renewed a fifth of its life before its end and up to a quarter of that earlier: 2.25 s at the
    # least. STS counts whole seconds, which may take one more off.
    most = sum(report["seconds"] / 1.25 + 2 for report in reports)
    assert 4 * 2 <= len(vending.asked) <= most


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_second_open_reads_no_commit_again(
    server: Server, share: FolderShare, vending: Vending, gate: Gate, tmp_path: Path, on_disk: bool
) -> None:
    """The log is listed once; what it lists is kept."""
    folder = fixtures.fixture("schema_evolution").path
    offer(share, vending, folder, ("dir",))
    cache = tmp_path / "cache" if on_disk else None
    client = SharingClient(server.profile, patience=QUICK, cache=cache)
    expected = in_order(client.table("s.d.t").to_arrow())
    assert any("_delta_log/0" in path for path in gate.seen)
    gate.seen.clear()
    if on_disk:
        client = SharingClient(server.profile, patience=QUICK, cache=cache)
    assert in_order(client.table("s.d.t").to_arrow()) == expected
    assert [path for path in gate.seen if "_delta_log/0" in path] == []
    assert [path for path in gate.seen if path.endswith(vending.bucket)] == [f"/{vending.bucket}"]


@pytest.mark.parametrize("keep_data", [True, False])
def test_data_is_kept_only_where_that_was_asked_for(
    server: Server, share: FolderShare, vending: Vending, gate: Gate, tmp_path: Path, keep_data: bool
) -> None:
    folder = fixtures.fixture("partitioned").path
    offer(share, vending, folder, ("dir",))
    for again in (False, True):
        gate.seen.clear()
        cache = DirectoryCache(tmp_path / "cache", data=keep_data)
        table = SharingClient(server.profile, patience=QUICK, cache=cache).table("s.d.t")
        assert in_order(table.to_arrow()) == in_order(Table(folder).to_arrow())
        read = [path for path in gate.seen if path.endswith(".parquet")]
        assert bool(read) == (not again or not keep_data)


@pytest.mark.parametrize(
    "trouble", [["503", "503"], ["drop"], ["403"], ["503", "drop", "403"]], ids=lambda each: "+".join(each)
)
def test_a_store_that_throttles_drops_and_refuses(
    server: Server, share: FolderShare, vending: Vending, gate: Gate, trouble: list[str]
) -> None:
    offer(share, vending, PLAIN, ("dir",))
    gate.trouble = list(trouble)
    assert in_order(opened(server).to_arrow()) == in_order(Table(PLAIN).to_arrow())
    assert gate.met == len(trouble)
