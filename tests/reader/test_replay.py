"""Which files are live: by example, and against the protocol's rule said as plainly as Python can."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakepass.reader.log.files import FILE_SCHEMA
from lakepass.reader.log.seen import SeenKeys
from tests.reader.log_folder import Action, LogFolder, add, metadata, protocol, remove, vector


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "table")


def test_a_file_may_come_back(folder: LogFolder) -> None:
    folder.create(add("a", size=1)).commit(1, remove("a")).commit(2, add("a", size=3))
    (batch,) = folder.table().snapshot().file_batches()
    assert batch.column("size").to_pylist() == [3]


def test_the_newest_add_gives_the_fields(folder: LogFolder) -> None:
    folder.create(add("a", size=1, stats="old")).commit(1, add("a", size=2, stats="new"))
    (batch,) = folder.table().snapshot().file_batches(stats="json")
    assert batch.select(["size", "stats"]).to_pylist() == [{"size": 2, "stats": "new"}]


def test_a_file_is_its_path_and_its_deletion_vector(folder: LogFolder) -> None:
    folder.create(add("a"), add("b", deletionVector=vector("one")))
    folder.commit(1, remove("a"), add("a", deletionVector=vector("two")))
    folder.commit(2, remove("b", deletionVector=vector("one", offset=2)))
    (batch, *more) = folder.table().snapshot().file_batches()
    rows = [row for each in (batch, *more) for row in each.to_pylist()]
    found = {row["path"]: row["deletion_vector"]["path_or_inline"] for row in rows}
    assert found == {"a": "two", "b": "one"}


def test_an_absent_offset_is_not_offset_zero(folder: LogFolder) -> None:
    folder.create(add("a", deletionVector=vector("v", offset=None)))
    folder.commit(1, remove("a", deletionVector=vector("v", offset=0)))
    assert folder.files() == ["a"]


@pytest.mark.parametrize(
    ("added", "removed"),
    [
        ("a%20b", "a b"),
        ("a b", "a%20b"),
        ("%C3%A9", "é"),
        ("x//y", "x/y"),
        ("/elsewhere/x", "file:/elsewhere/x"),
        ("/elsewhere/x", "file:///elsewhere/x"),
        ("file:/elsewhere/x%20y", "file://localhost/elsewhere/x y"),
        ("{root}/x", "x"),
        ("file:{root}/day=1/x", "day=1/x"),
    ],
)
def test_names_of_one_file(folder: LogFolder, added: str, removed: str) -> None:
    root = str(folder.path)
    folder.create(add(added.format(root=root)), add("other"))
    folder.commit(1, remove(removed.format(root=root)))
    assert folder.files() == ["other"]
    folder.checkpoint(0, protocol(), metadata(), add(added.format(root=root)), add("other"))
    assert folder.files() == ["other"], "the same when the file is in the checkpoint"


@pytest.mark.parametrize(
    ("added", "removed"),
    [("a%2520b", "a%20b"), ("a+b", "a b"), ("A", "a"), ("file%3A/x", "file:/x"), ("/x", "x")],
)
def test_names_of_two_files(folder: LogFolder, added: str, removed: str) -> None:
    folder.create(add(added)).commit(1, remove(removed))
    assert folder.files() == [added]


def test_every_batch_has_the_schema(folder: LogFolder) -> None:
    folder.commit(0, protocol(), metadata(["p"]), add("c", partitionValues={"p": "1"}))
    folder.checkpoint(0, protocol(), metadata(["p"]), add("c", partitionValues={"p": "1"}))
    folder.commit(1, add("j", partitionValues={"p": None}, baseRowId=7, defaultRowCommitVersion=1))
    snapshot = folder.table().snapshot()
    plain = list(snapshot.file_batches())
    assert len(plain) == 2
    assert all(batch.schema == FILE_SCHEMA for batch in plain)
    wanted = pa.schema([("numRecords", pa.int64())])
    for batch in snapshot.file_batches(stats=wanted, tags=True):
        assert batch.schema.names == [*FILE_SCHEMA.names, "stats", "tags"]
        assert batch.schema.field("stats").type == pa.struct(list(wanted))
    rows = {row["path"]: row for batch in plain for row in batch.to_pylist()}
    assert dict(rows["c"]["partition_values"]) == {"p": "1"}
    assert dict(rows["j"]["partition_values"]) == {"p": None}
    assert (rows["j"]["base_row_id"], rows["j"]["default_row_commit_version"]) == (7, 1)


def test_tags_and_json_stats(folder: LogFolder) -> None:
    folder.create(add("a", tags={"k": "v"}, stats='{"numRecords":1}'))
    (batch,) = folder.table().snapshot().file_batches(stats="json", tags=True)
    row = batch.to_pylist()[0]
    assert (row["stats"], dict(row["tags"])) == ('{"numRecords":1}', {"k": "v"})


@pytest.mark.parametrize(
    "odd",
    [
        '{"add":{"path":"x","size":10.0,"partitionValues":{},"modificationTime":1,"dataChange":true}}',
        '{"add":{"path":"x","size":10,"size":11,"partitionValues":{}}}',
        '  {"add":{"path":"x","partitionValues":{"p":5}}}',
        '{"add":{"path":"x"}}\r',
        '\ufeff{"add":{"path":"x"}}',
        '{"future":{"deep":[[[1]]]}}\n\n\n{"add":{"path":"x","unknown":{"a":1}}}',
        '{"add":null}\n{"add":{"path":"x"}}',
        '{"add":{"path":"x","deletionVector":null,"stats":null,"tags":null}}',
        '{"commitInfo":{"note":"}null"}}\n{"add":{"path":"x"}}',
    ],
)
def test_odd_writers_are_understood(folder: LogFolder, odd: str) -> None:
    folder.create().raw(f"{1:020d}.json", odd)
    assert folder.files() == ["x"]


def test_a_commit_without_actions(folder: LogFolder) -> None:
    folder.create(add("a")).raw(f"{1:020d}.json", "").raw(f"{2:020d}.json", "\n")
    assert folder.files() == ["a"]


def test_a_large_commit_is_read_in_pieces(folder: LogFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakepass.reader.log import commits, lines

    monkeypatch.setattr(lines, "PIECE", 1000)
    monkeypatch.setattr(commits, "PIECE", 1000)
    folder.create().commit(1, *(add(f"file-{number}") for number in range(200)), remove("file-7"))
    assert len(folder.files()) == 199


PATHS = st.sampled_from(["a", "b", "c%20d", "c d", "file:/z", "/z", "p=1/e"])
VECTORS = st.sampled_from([None, vector("v1"), vector("v1", 2), vector("v2"), vector("v2", None)])


@st.composite
def histories(draw: st.DrawFn) -> list[list[Action]]:
    """Commits as a correct writer makes them: no two actions on one logical file in a commit."""
    commits: list[list[Action]] = []
    for _ in range(draw(st.integers(1, 6))):
        seen: set[tuple[str, str]] = set()
        actions: list[Action] = []
        for _ in range(draw(st.integers(0, 5))):
            path, dv, is_add = draw(PATHS), draw(VECTORS), draw(st.booleans())
            key = logical_file(path, dv)
            if key not in seen:
                seen.add(key)
                fields: dict[str, Any] = {"deletionVector": dv} if dv else {}
                actions.append(add(path, size=len(commits), **fields) if is_add else remove(path, **fields))
        commits.append(actions)
    return commits


def logical_file(path: str, dv: Action | None) -> tuple[str, str]:
    name = {"c%20d": "c d", "/z": "file:/z"}.get(path, path)
    if dv is None:
        return name, ""
    return name, dv["storageType"] + dv["pathOrInlineDv"] + (f"@{dv['offset']}" if "offset" in dv else "")


def oracle(commits: list[list[Action]]) -> dict[tuple[str, str], tuple[Action, int]]:
    """The rule as the protocol words it: the newest reference to a logical file decides."""
    state: dict[tuple[str, str], tuple[Action, int]] = {}
    for version, actions in enumerate(commits):
        for action in actions:
            ((kind, body),) = action.items()
            key = logical_file(body["path"], body.get("deletionVector"))
            if kind == "add":
                state[key] = action, version
            else:
                state.pop(key, None)
    return state


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.data())
def test_replay_equals_the_rule(commits: list[list[Action]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as home:
        folder = LogFolder(Path(home) / "table")
        for version, actions in enumerate(commits):
            folder.commit(version, *((protocol(), metadata()) if version == 0 else ()), *actions)
        at = data.draw(st.none() | st.integers(0, len(commits) - 1), "checkpoint")
        if at is not None:
            state = [action for action, _ in oracle(commits[: at + 1]).values()]
            folder.checkpoint(at, protocol(), metadata(), *state)
            for version in range(at + 1):
                (folder.log / f"{version:020d}.json").unlink()
        for version in range(at or 0, len(commits)):
            expected = oracle(commits[: version + 1])
            found = {}
            for batch in folder.table().snapshot(version).file_batches():
                for row in batch.to_pylist():
                    dv = row["deletion_vector"]
                    told = dv and {"storageType": dv["storage_type"], "pathOrInlineDv": dv["path_or_inline"]}
                    if dv and dv["offset"] is not None:
                        told = {**told, "offset": dv["offset"]}
                    key = logical_file(row["path"], told)
                    assert key not in found, "a logical file is live once"
                    found[key] = row["size"]
            assert found == {key: action["add"]["size"] for key, (action, _) in expected.items()}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.binary(max_size=40), unique=True, max_size=60), st.lists(st.binary(max_size=40), max_size=60)
)
def test_the_set_of_seen_keys_is_exact(kept: list[bytes], asked: list[bytes]) -> None:
    asked = asked + kept[::3]
    keys = pa.array(asked, pa.binary())
    found = SeenKeys(pa.array(kept, pa.binary())).contains(keys)
    expected = pc.is_in(keys, value_set=pa.array(kept, pa.binary())).to_pylist()
    assert (found.to_pylist() if found is not None else [False] * len(asked)) == expected


def test_the_set_of_seen_keys_on_slices_and_long_names() -> None:
    names = [
        f"day={number % 7}/part-{number:05d}-{number * 7919:036d}.parquet".encode() for number in range(5000)
    ]
    keys = pa.array(names, pa.binary())
    seen = SeenKeys(keys.slice(1000, 500))
    assert len(seen) == 500
    found = seen.contains(keys.slice(900, 700))
    assert found is not None
    assert found.to_pylist() == [100 <= number < 600 for number in range(700)]
    assert seen.contains(keys.slice(0, 1000)) is None
