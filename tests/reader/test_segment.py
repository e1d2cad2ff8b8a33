"""Which files make up a version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakepass.reader import Table
from lakepass.reader.errors import CorruptTableError, NotATableError, VersionNotFoundError
from lakepass.reader.location import Location
from lakepass.reader.log.cache import LogCache
from lakepass.reader.storage import FileStatus, Storages
from lakepass.reader.storage.local import LocalStorage
from tests.reader.log_folder import LogFolder, add, lines, metadata, paths_of, protocol, remove

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
STATE = (protocol(), metadata())


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "table")


def with_checkpoint(folder: LogFolder) -> LogFolder:
    folder.create(add("a"))
    folder.commit(1, add("b"))
    folder.commit(2, remove("a"))
    folder.checkpoint(2, *STATE, add("b"))
    folder.commit(3, add("c"))
    return folder


def test_commits_alone(folder: LogFolder) -> None:
    folder.create(add("a")).commit(1, add("b")).commit(2, remove("a"))
    assert folder.files() == ["b"]
    assert folder.files(1) == ["a", "b"]
    assert folder.table().snapshot().version == 2


def test_commits_before_a_checkpoint_are_not_needed(folder: LogFolder) -> None:
    with_checkpoint(folder).hint(2)
    for version in (0, 1, 2):
        (folder.log / f"{version:020d}.json").unlink()
    assert folder.files() == ["b", "c"]


@pytest.mark.parametrize(
    "hint", ["{", "[]", '{"version": "x"}', '{"version": -3}', '{"version": 1e300}', "", "\x00"]
)
def test_a_damaged_hint_is_ignored(folder: LogFolder, hint: str) -> None:
    with_checkpoint(folder).raw("_last_checkpoint", hint)
    assert folder.files() == ["b", "c"]


@pytest.mark.parametrize("version", [1, 3, 1000, 2**62])
def test_a_hint_to_a_checkpoint_that_is_not_there_is_ignored(folder: LogFolder, version: int) -> None:
    with_checkpoint(folder).hint(version)
    assert folder.files() == ["b", "c"]
    assert folder.table().snapshot().version == 3


def test_an_old_hint_does_not_hide_a_newer_checkpoint(folder: LogFolder) -> None:
    with_checkpoint(folder).hint(2)
    folder.checkpoint(3, *STATE, add("b"), add("c"))
    (folder.log / f"{3:020d}.json").write_text("not read")
    assert folder.files() == ["b", "c"]


def test_a_hint_is_believed_as_far_as_saving_a_listing(folder: LogFolder) -> None:
    """What lies before the hinted checkpoint is not even looked at."""
    with_checkpoint(folder).hint(2)
    folder.raw(f"{0:020d}.json", "damaged")
    assert folder.files() == ["b", "c"]


def test_an_incomplete_multi_part_checkpoint_is_ignored(folder: LogFolder) -> None:
    folder.create(add("a")).commit(1, add("b")).hint(1)
    folder.checkpoint(1, *STATE, name="checkpoint.0000000001.0000000002.parquet")
    assert folder.files() == ["a", "b"]
    folder.checkpoint(1, add("b"), name="checkpoint.0000000002.0000000002.parquet")
    assert folder.files() == ["b"], "with its second part it is complete, and it decides"


def test_parts_of_two_different_checkpoints_do_not_make_one(folder: LogFolder) -> None:
    folder.create(add("a")).commit(1, add("b"))
    folder.checkpoint(1, *STATE, name="checkpoint.0000000001.0000000002.parquet")
    folder.checkpoint(1, *STATE, name="checkpoint.0000000002.0000000003.parquet")
    assert folder.files() == ["a", "b"]


def test_an_empty_checkpoint_file_is_no_checkpoint(folder: LogFolder) -> None:
    folder.create(add("a")).commit(1, add("b")).raw(f"{1:020d}.checkpoint.parquet", b"")
    assert folder.files() == ["a", "b"]


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_v2_checkpoint_with_sidecars(folder: LogFolder, form: str) -> None:
    folder.create(add("a"), features=["v2Checkpoint"]).commit(1, add("b")).commit(2, add("c"))
    parts = [folder.sidecar(add("a")), folder.sidecar(add("b"), remove("x"))]
    top = [{"checkpointMetadata": {"version": 1}}, protocol("v2Checkpoint"), metadata(), *parts]
    if form == "json":
        folder.raw(f"{1:020d}.checkpoint.{UUID}.json", lines(top))
    else:
        folder.checkpoint(1, *top, name=f"checkpoint.{UUID}.parquet")
    for version in (0, 1):
        (folder.log / f"{version:020d}.json").unlink()
    assert folder.files() == ["a", "b", "c"]


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_v2_checkpoint_without_sidecars(folder: LogFolder, form: str) -> None:
    folder.create(add("a"), features=["v2Checkpoint"]).commit(1, add("b"))
    top = [{"checkpointMetadata": {"version": 1}}, protocol("v2Checkpoint"), metadata(), add("a"), add("b")]
    if form == "json":
        folder.raw(f"{1:020d}.checkpoint.{UUID}.json", lines(top))
    else:
        folder.checkpoint(1, *top, name=f"checkpoint.{UUID}.parquet")
    (folder.log / f"{0:020d}.json").unlink()
    assert folder.files() == ["a", "b"]


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_a_sidecar_may_be_named_by_its_whole_path(folder: LogFolder, form: str) -> None:
    folder.create(add("a"), features=["v2Checkpoint"])
    part = folder.sidecar(add("a"))
    part["sidecar"]["path"] = form.format(folder.log / "_sidecars" / part["sidecar"]["path"])
    folder.checkpoint(0, {"checkpointMetadata": {"version": 0}}, protocol("v2Checkpoint"), metadata(), part)
    assert folder.files() == ["a"]


def test_a_classic_name_may_hold_a_v2_checkpoint(folder: LogFolder) -> None:
    folder.create(add("a"), features=["v2Checkpoint"])
    part = folder.sidecar(add("a"))
    folder.checkpoint(0, {"checkpointMetadata": {"version": 0}}, protocol("v2Checkpoint"), metadata(), part)
    assert folder.files() == ["a"]


def test_only_a_checkpoint(folder: LogFolder) -> None:
    folder.checkpoint(4, *STATE, add("a"))
    snapshot = folder.table().snapshot()
    assert (snapshot.version, folder.files()) == (4, ["a"])
    assert snapshot.timestamp_ms > 0


def test_compactions_stand_for_their_commits(folder: LogFolder) -> None:
    folder.create(add("a")).commit(1, add("b")).commit(2, remove("a")).commit(3, add("c"))
    folder.raw(f"{1:020d}.{2:020d}.compacted.json", lines([add("b"), remove("a"), add("from-compaction")]))
    assert folder.files() == ["b", "c", "from-compaction"], "the compaction is read, its commits are not"
    assert folder.files(1) == ["a", "b"], "at version 1 it reaches too far"


def test_of_two_compactions_the_longer_is_taken(folder: LogFolder) -> None:
    folder.create(add("a")).commit(1, add("b")).commit(2, add("c")).commit(3, add("d"))
    folder.raw(f"{1:020d}.{2:020d}.compacted.json", lines([add("short")]))
    folder.raw(f"{1:020d}.{3:020d}.compacted.json", lines([add("long")]))
    assert folder.files() == ["a", "long"]


def test_a_compaction_does_not_hide_a_missing_commit(folder: LogFolder) -> None:
    folder.create(add("a")).commit(1, add("b")).commit(3, add("c"))
    folder.raw(f"{1:020d}.{3:020d}.compacted.json", lines([add("b")]))
    with pytest.raises(CorruptTableError, match=r"version 2 .* is missing"):
        folder.files()


def test_a_gap_is_named(folder: LogFolder) -> None:
    folder.create(add("a")).commit(2, add("b"))
    with pytest.raises(CorruptTableError, match=r"gap: version 1 \(00000000000000000001.json\) is missing"):
        folder.table().snapshot()
    assert folder.files(0) == ["a"], "before the gap nothing is wrong"


def test_a_gap_after_the_checkpoint_is_named(folder: LogFolder) -> None:
    with_checkpoint(folder)
    folder.commit(5, add("x"))
    with pytest.raises(CorruptTableError, match="version 4"):
        folder.table().snapshot()


def test_a_log_that_begins_late_without_checkpoint(folder: LogFolder) -> None:
    folder.commit(3, *STATE, add("a"))
    with pytest.raises(CorruptTableError, match=r"version 0 .* is missing, no checkpoint is there"):
        folder.table().snapshot()


@pytest.mark.parametrize("version", [0, 3, 9])
def test_a_version_of_a_log_that_begins_late(folder: LogFolder, version: int) -> None:
    folder.commit(3, *STATE, add("a"))
    with pytest.raises(CorruptTableError, match=r"version 0 .* is missing"):
        folder.table().snapshot(version)


def test_no_log(tmp_path: Path) -> None:
    with pytest.raises(NotATableError, match="not a Delta table"):
        LogFolder(tmp_path / "empty").table().snapshot()


def test_versions_outside_the_log_name_the_range(folder: LogFolder) -> None:
    with_checkpoint(folder)
    with pytest.raises(VersionNotFoundError, match="versions 0 to 3"):
        folder.table().snapshot(4)
    (folder.log / f"{0:020d}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="versions 2 to 3"):
        folder.table().snapshot(1)
    with pytest.raises(VersionNotFoundError, match="whole numbers"):
        folder.table().snapshot(-1)


def test_an_earlier_version_in_a_long_log(folder: LogFolder) -> None:
    folder.create(add("start"))
    for version in range(1, 260):
        folder.commit(version, add(f"f{version}"))
        if version % 50 == 0:
            folder.checkpoint(
                version, *STATE, add("start"), *(add(f"f{each}") for each in range(1, version + 1))
            )
    folder.hint(250)
    for version in (0, 49, 50, 51, 120, 259):
        assert len(folder.files(version)) == version + 1


def test_other_names_in_the_log_are_passed_over(folder: LogFolder) -> None:
    folder.create(add("a"))
    for name in (
        "1.json",
        f"{1:020d}.json.tmp",
        f".{1:020d}.json.crc",
        f"{1:019d}.json",
        f"{1:020d}.checkpoint.x.parquet",
        f"{5:020d}.{4:020d}.compacted.json",
        f"{10**19 * 9:020d}.json",
        "_staged_commits/x.json",
    ):
        folder.raw(name, "nothing")  # fmt: skip
    (folder.log / f"{1:020d}.json").mkdir()
    assert folder.files() == ["a"]


def test_one_listing_and_few_reads(folder: LogFolder) -> None:
    """The latest version costs the hint, one listing and what has to be read."""
    with_checkpoint(folder).hint(2)
    requests = Requests(folder)
    snapshot = requests.table.snapshot()
    assert requests.seen == [
        ("read", "_last_checkpoint"),
        ("list", f"{2:020d}."),
        ("read", f"{3:020d}.json"),
        ("open", f"{2:020d}.checkpoint.parquet"),
    ]
    requests.seen.clear()
    assert snapshot.update() is snapshot
    assert requests.seen == [("list", f"{3:020d}.")]


def test_update_reads_new_commits_only(folder: LogFolder) -> None:
    with_checkpoint(folder).hint(2)
    requests = Requests(folder)
    before = requests.table.snapshot()
    list(before.file_batches())
    folder.commit(4, add("d"), metadata(schema='{"type":"struct","fields":[]}')).commit(5, remove("b"))
    requests.seen.clear()
    after = before.update()
    assert requests.seen == [("list", f"{3:020d}."), ("read", f"{5:020d}.json"), ("read", f"{4:020d}.json")]
    assert (after.version, len(after.schema), before.version, len(before.schema)) == (5, 0, 3, 1)
    requests.seen.clear()
    assert paths_of(after) == ["c", "d"]
    assert requests.seen == [("open", f"{2:020d}.checkpoint.parquet")], "the commits are remembered"


def test_update_moves_on_to_a_newer_checkpoint(folder: LogFolder) -> None:
    with_checkpoint(folder)
    before = folder.table().snapshot()
    folder.commit(4, add("d"))
    folder.checkpoint(4, *STATE, add("b"), add("c"), add("d"))
    folder.commit(5, remove("c"))
    after = before.update()
    assert after.version == 5
    assert paths_of(after) == [
        "b",
        "d",
    ]


def test_update_of_a_gap_is_refused(folder: LogFolder) -> None:
    with_checkpoint(folder)
    before = folder.table().snapshot()
    folder.commit(5, add("d"))
    with pytest.raises(CorruptTableError, match="version 4"):
        before.update()


class Requests:
    """A table whose storage writes down what is asked of it; `remote` makes it look like one far away."""

    def __init__(self, folder: LogFolder, cache: LogCache | None = None, *, remote: bool = False) -> None:
        location = Location.parse(str(folder.path))
        self.seen: list[tuple[str, str]] = []
        storage: Any = Watched(LocalStorage(location), self.seen)
        if not remote:
            storage.__class__ = type("WatchedLocal", (Watched, LocalStorage), {})
        self.table = Table(location, storages=Storages([(location, storage)]), cache=cache)


class Watched:
    """Passes everything on, and writes it down."""

    def __init__(self, inner: LocalStorage, seen: list[tuple[str, str]]) -> None:
        self.inner = inner
        self.seen = seen

    def list(self, directory: str, start_after: str = "") -> Iterator[FileStatus]:
        self.seen.append(("list", start_after))
        return self.inner.list(directory, start_after)

    def read(self, path: str, **options: Any) -> bytes:
        self.seen.append(("read", path.rsplit("/", 1)[-1]))
        return self.inner.read(path, **options)

    def open(self, path: str, size: int | None = None) -> Any:
        self.seen.append(("open", path.rsplit("/", 1)[-1]))
        return self.inner.open(path, size)


def test_checksum_files_open_a_table_without_reading_the_log(folder: LogFolder) -> None:
    with_checkpoint(folder).hint(2)
    checksum = {"numFiles": 2, "protocol": protocol()["protocol"], "metadata": metadata()["metaData"]}
    folder.raw(f"{3:020d}.crc", json.dumps(checksum))
    requests = Requests(folder)
    requests.table.snapshot()
    assert requests.seen == [("read", "_last_checkpoint"), ("list", f"{2:020d}."), ("read", f"{3:020d}.crc")]
    assert folder.files() == ["b", "c"]


def test_a_checksum_that_contradicts_the_log_lists_no_files(folder: LogFolder) -> None:
    with_checkpoint(folder)
    other = metadata(schema='{"type":"struct","fields":[]}')["metaData"]
    folder.raw(f"{3:020d}.crc", json.dumps({"protocol": protocol()["protocol"], "metadata": other}))
    with pytest.raises(CorruptTableError, match=r"contradicts the log \(schemaString\)"):
        folder.files()


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"protocol": 5, "metadata": {}}', "\x00\x01"])
def test_a_damaged_checksum_is_ignored(folder: LogFolder, content: str) -> None:
    with_checkpoint(folder).raw(f"{3:020d}.crc", content)
    assert folder.files() == ["b", "c"]


def test_an_older_checksum_and_the_commits_since(folder: LogFolder) -> None:
    with_checkpoint(folder)
    checksum = {"protocol": protocol()["protocol"], "metadata": metadata()["metaData"]}
    folder.raw(f"{2:020d}.crc", json.dumps(checksum))
    folder.commit(4, metadata(schema='{"type":"struct","fields":[]}'))
    assert folder.table().snapshot().schema.names == []
