"""What never changes is kept: within bounds, and never mistaken for something else."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pytest

from lakepass.reader import Table
from lakepass.reader.location import Location
from lakepass.reader.log.cache import DirectoryCache, LogCache, MemoryCache
from lakepass.reader.storage import FileStatus, Storages
from tests.reader.log_folder import LogFolder, add, metadata, paths_of, protocol, remove
from tests.reader.test_segment import Requests


@pytest.fixture(params=["memory", "directory"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> LogCache:
    return MemoryCache(1000) if request.param == "memory" else DirectoryCache(tmp_path / "cache", 1000)


def status(name: str, size: int, modified: int = 0) -> FileStatus:
    return FileStatus(name, size, modified)


def test_a_file_is_its_path_size_and_time(cache: LogCache) -> None:
    cache.put(status("a", 3, 1), b"one")
    assert cache.get(status("a", 3, 1)) == b"one"
    assert cache.get(status("a", 3, 2)) is None
    assert cache.get(status("a", 4, 1)) is None
    assert cache.get(status("b", 3, 1)) is None


def test_it_stays_within_its_bound(cache: LogCache, tmp_path: Path) -> None:
    for number in range(50):
        cache.put(status(f"f{number}", 100), bytes(100))
    kept = [number for number in range(50) if cache.get(status(f"f{number}", 100))]
    assert 1 <= len(kept) <= 10
    assert kept[-1] == 49
    if isinstance(cache, DirectoryCache):
        assert sum(file.stat().st_size for file in (tmp_path / "cache").iterdir()) <= 1000


def test_what_does_not_fit_is_not_kept(cache: LogCache) -> None:
    cache.put(status("big", 2000), bytes(2000))
    cache.put(status("other size", 10), bytes(9))
    assert cache.get(status("big", 2000)) is None
    assert cache.get(status("other size", 10)) is None
    assert not cache.keeps(2000)


def test_where_a_log_was_listed(cache: LogCache) -> None:
    assert cache.start("s3://b/t") is None
    cache.started("s3://b/t", 7)
    assert (cache.start("s3://b/t"), cache.start("s3://b/u")) == (7, None)


def test_pickles_as_a_description(cache: LogCache, tmp_path: Path) -> None:
    cache.put(status("a", 6), b"secret")
    data = pickle.dumps(cache)
    assert b"secret" not in data
    again: LogCache = pickle.loads(data)
    assert again.get(status("a", 6)) == (b"secret" if isinstance(cache, DirectoryCache) else None)


def test_a_damaged_directory_is_no_reason_to_fail(tmp_path: Path) -> None:
    cache = DirectoryCache(tmp_path / "cache")
    cache.put(status("a", 3), b"one")
    cache.started("root", 5)
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(b"\xff damaged")
    assert cache.get(status("a", 3)) is None
    assert cache.start("root") is None
    shutil.rmtree(tmp_path / "cache")
    cache.put(status("a", 3), b"one")
    assert cache.get(status("a", 3)) is None


def test_what_others_put_there_counts_and_what_they_left_half_done_goes(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    caches = [DirectoryCache(folder, 1000) for _ in range(4)]
    for old, name in ((True, "new-abandoned"), (False, "new-in-use")):
        (folder / name).write_bytes(bytes(400))
        if old:
            os.utime(folder / name, (1, 1))
    for number in range(80):
        caches[number % 4].put(status(f"f{number}", 50), bytes(50))
    # Each looks at what there is when it has put a sixteenth of the room itself.
    assert sum(file.stat().st_size for file in folder.glob("file-*")) <= 1000 + 4 * 1000 // 16
    assert [file.name for file in folder.glob("new-*")] == ["new-in-use"]


def test_a_home_directory_is_meant_as_in_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    DirectoryCache("~/kept")
    assert (tmp_path / "kept").is_dir()


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    cache = DirectoryCache(tmp_path / "cache")
    cache.put(status("a", 3), b"one")
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(file.read_bytes().replace(b"one", b"onf"))
    assert cache.get(status("a", 3)) is None


def test_the_directory_is_its_owners_alone(tmp_path: Path) -> None:
    DirectoryCache(tmp_path / "cache").put(status("a", 3), b"one")
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "cache").iterdir())


def build(folder: LogFolder) -> None:
    folder.create(add("a")).commit(1, add("b"))
    folder.checkpoint(1, protocol(), metadata(), add("a"), add("b"))
    folder.commit(2, remove("a")).hint(1)


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_a_second_opening_is_one_listing(tmp_path: Path, with_checkpoint: bool) -> None:
    folder = LogFolder(tmp_path / "table")
    build(folder)
    if not with_checkpoint:
        (folder.log / f"{1:020d}.checkpoint.parquet").unlink()
    requests = Requests(folder, DirectoryCache(tmp_path / "cache"), remote=True)
    assert paths_of(requests.table.snapshot()) == ["b"]
    requests.seen.clear()
    again = Requests(folder, DirectoryCache(tmp_path / "cache"), remote=True)
    assert paths_of(again.table.snapshot()) == ["b"]
    assert again.seen == [("list", f"{1:020d}." if with_checkpoint else "")]


def test_a_newer_checkpoint_is_found_from_an_old_start(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path / "table")
    build(folder)
    cache = MemoryCache()
    assert paths_of(Table(folder.path, cache=cache).snapshot()) == ["b"]
    folder.commit(3, add("c"))
    folder.checkpoint(3, protocol(), metadata(), add("b"), add("c"))
    for version in (0, 1, 2):
        (folder.log / f"{version:020d}.json").unlink()
    (folder.log / f"{1:020d}.checkpoint.parquet").unlink()
    assert paths_of(Table(folder.path, cache=cache).snapshot()) == ["b", "c"]
    assert cache.start(str(Location.parse(str(folder.path)))) == 3


def test_a_table_in_the_place_of_another(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path / "table")
    build(folder)
    cache = MemoryCache()
    assert paths_of(Table(folder.path, cache=cache).snapshot()) == ["b"]
    size = (folder.log / f"{2:020d}.json").stat().st_size
    shutil.rmtree(folder.path)
    folder = LogFolder(tmp_path / "table").create(add("x")).commit(1).commit(2, remove("b"))
    assert (folder.log / f"{2:020d}.json").stat().st_size == size
    os.utime(folder.log / f"{2:020d}.json", (1, 1))
    assert paths_of(Table(folder.path, cache=cache).snapshot()) == ["x"]


def test_the_cache_is_shared_by_tables(tmp_path: Path) -> None:
    one, two = LogFolder(tmp_path / "one").create(add("1")), LogFolder(tmp_path / "two").create(add("2"))
    cache = MemoryCache()
    for folder, files in ((one, ["1"]), (two, ["2"]), (one, ["1"])):
        location = Location.parse(str(folder.path))
        assert paths_of(Table(location, storages=Storages.open(location), cache=cache).snapshot()) == files
