"""Protocol, metadata, features, transactions, domains, history, single commits, commits of a catalog."""

from __future__ import annotations

import pickle
from datetime import UTC
from pathlib import Path

import pytest

from lakepass.reader import RatifiedCommit, Table
from lakepass.reader.errors import (
    CorruptTableError,
    FileMissingError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakepass.reader.features import FEATURES, check_readable, required
from lakepass.reader.log.actions import Protocol
from lakepass.reader.log.files import FILE_SCHEMA
from tests.reader.log_folder import Action, LogFolder, add, lines, metadata, paths_of, protocol, remove

UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "table")


def test_the_newest_metadata_and_protocol_win(folder: LogFolder) -> None:
    folder.create().commit(1, metadata(comment="one")).commit(2, add("x")).commit(
        3, protocol("deletionVectors")
    )
    snapshot = folder.table().snapshot()
    assert snapshot.metadata.configuration == {"comment": "one"}
    assert snapshot.protocol.reader_features == ("deletionVectors",)
    earlier = folder.table().snapshot(0)
    assert (dict(earlier.metadata.configuration), earlier.protocol.reader_features) == ({}, None)


def test_what_metadata_says(folder: LogFolder) -> None:
    folder.commit(
        0,
        protocol(),
        {
            "metaData": {
                "id": "i",
                "name": "n",
                "description": "d",
                "format": {"provider": "parquet", "options": {"a": "b"}},
                "schemaString": (
                    '{"type":"struct","fields":[{"name":"P","type":"date","nullable":true,"metadata":{}}]}'
                ),
                "partitionColumns": ["P"],
                "configuration": {"a": True, "b": 5, "c": None},
                "createdTime": 12,
                "later": {"field": 1},
            }
        },
    )
    snapshot = folder.table().snapshot()
    told = snapshot.metadata
    assert (told.id, told.name, told.description, told.created_time) == ("i", "n", "d", 12)
    assert told.configuration == {"a": "true", "b": "5"}
    assert told.format.options == {"a": "b"}
    assert (snapshot.partition_columns, snapshot.schema.names) == (["P"], ["P"])


def test_a_checkpoint_gives_the_same_state(folder: LogFolder) -> None:
    configuration = {"delta.appendOnly": "true"}
    folder.commit(0, protocol("timestampNtz"), metadata(["id"], **configuration))
    before = folder.table().snapshot()
    folder.checkpoint(0, protocol("timestampNtz"), metadata(["id"], **configuration))
    (folder.log / f"{0:020d}.json").unlink()
    after = folder.table().snapshot()
    assert after.protocol == before.protocol
    assert after.metadata == before.metadata


def txn(app: str, version: int) -> Action:
    return {"txn": {"appId": app, "version": version}}


def domain(name: str, configuration: str = "{}", removed: bool = False) -> Action:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


def test_transactions_and_domains(folder: LogFolder) -> None:
    folder.create(txn("a", 1), txn("b", 1), domain("x", "old"), domain("y"), domain("z"))
    folder.checkpoint(
        0, protocol(), metadata(), txn("a", 1), txn("b", 1), domain("x", "old"), domain("y"), domain("z")
    )
    folder.commit(1, txn("a", 5), domain("x", "new"), domain("y", removed=True))
    folder.commit(2, txn("a", 3))
    snapshot = folder.table().snapshot()
    assert {name: each.version for name, each in snapshot.transactions.items()} == {"a": 3, "b": 1}
    assert {name: each.configuration for name, each in snapshot.domain_metadata.items()} == {
        "x": "new",
        "z": "{}",
    }


def test_history(folder: LogFolder) -> None:
    info = {
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "operationMetrics": {"numFiles": "1"},
        "userName": "ann",
        "engineInfo": "engine",
        "other": [1],
    }
    folder.create().commit(1, {"commitInfo": info}, add("x")).commit(2, add("y"))
    entries = folder.table().history()
    assert [entry.version for entry in entries] == [2, 1, 0]
    one = entries[1]
    assert (one.operation, one.user, one.engine) == ("WRITE", "ann", "engine")
    assert (dict(one.parameters), dict(one.metrics)) == ({"mode": "Append"}, {"numFiles": "1"})
    assert one.timestamp.tzinfo is UTC
    assert one.as_dict()["other"] == [1]
    assert entries[0].operation is None
    assert [entry.version for entry in folder.table().history(limit=1)] == [2]
    assert folder.table().history(limit=0) == []


def test_single_commits(folder: LogFolder) -> None:
    folder.create(add("a", partitionValues={"p": "1"}))
    folder.commit(
        1,
        {"commitInfo": {"operation": "MERGE"}},
        remove("a", partitionValues={"p": "1"}, size=10, dataChange=False),
        add("b", stats="{}", tags={"t": "u"}),
        {"cdc": {"path": "_change_data/c", "partitionValues": {"p": None}, "size": 3, "dataChange": False}},
        metadata(comment="changed"),
        txn("app", 4),
        domain("d"),
    )
    folder.commit(2, protocol("deletionVectors"))
    zero, one, two = folder.table().commit_actions(0, 2)
    assert (zero.version, one.version, two.version) == (0, 1, 2)
    assert zero.protocol == Protocol(1, 2)
    assert one.commit_info == {"operation": "MERGE"}
    assert one.metadata is not None
    assert one.metadata.configuration == {"comment": "changed"}
    assert one.adds.schema.names == [*FILE_SCHEMA.names, "data_change"]
    assert one.adds.column("data_change").to_pylist() == [True]
    assert one.removes.select(["path", "size", "data_change"]).to_pylist() == [
        {"path": "a", "size": 10, "data_change": False}
    ]
    assert dict(one.removes.column("partition_values")[0].as_py()) == {"p": "1"}
    assert one.cdc.column("path").to_pylist() == ["_change_data/c"]
    assert ([each.app_id for each in one.transactions], [each.domain for each in one.domain_metadata]) == (
        ["app"],
        ["d"],
    )
    assert (two.adds.num_rows, two.protocol) == (
        0,
        Protocol(3, 7, ("deletionVectors",), ("deletionVectors",)),
    )
    ((more,),) = [list(folder.table().commit_actions(1, 1, stats="json", tags=True))]
    assert more.adds.column("stats").to_pylist() == ["{}"]
    assert dict(more.adds.column("tags")[0].as_py()) == {"t": "u"}


def test_commits_that_are_gone_are_named(folder: LogFolder) -> None:
    folder.create().commit(1).commit(2)
    folder.checkpoint(2, protocol(), metadata())
    (folder.log / f"{0:020d}.json").unlink()
    for start, end in ((0, 2), (1, 7), (-1, 1)):
        with pytest.raises(VersionNotFoundError, match="the log holds commits 1 to 2"):
            folder.table().commit_actions(start, end)


@pytest.mark.parametrize("name", [name for name, feature in FEATURES.items() if feature.kind == "writer"])
def test_features_of_writers_ask_nothing_of_readers(name: str) -> None:
    check_readable(Protocol(1, 7, None, (name,)), "table")
    check_readable(Protocol(3, 7, (), (name,)), "table")


def test_reader_versions_and_what_they_ask() -> None:
    assert required(Protocol(1, 2)) == ()
    assert required(Protocol(2, 5)) == ("columnMapping",)
    assert required(Protocol(3, 7, ("a", "b"), ("a", "b", "c"))) == ("a", "b")
    with pytest.raises(UnsupportedTableError) as told:
        check_readable(Protocol(3, 7, ("zeta", "deletionVectors", "alpha"), ()), "table")
    assert told.value.features == ("alpha", "zeta")


def managed(folder: LogFolder) -> LogFolder:
    """The example of the protocol: 0 and 1 published, 2 staged, 3 inline; another 2 was rejected."""
    folder.create(add("a"), features=["catalogManaged"]).commit(1, add("b"))
    folder.raw(f"_staged_commits/{2:020d}.{UUID}.json", lines([add("c")]))
    folder.raw(f"_staged_commits/{2:020d}.{UUID[::-1]}.json", lines([add("rejected")]))
    return folder


def test_a_catalog_managed_table_needs_its_catalog(folder: LogFolder) -> None:
    with pytest.raises(UnsupportedTableError, match="ratified commits") as told:
        managed(folder).table().snapshot()
    assert told.value.features == ("catalogManaged",)


def test_ratified_commits_complete_the_log(folder: LogFolder) -> None:
    managed(folder)
    commits = [f"{2:020d}.{UUID}.json", RatifiedCommit(3, content=lines([remove("a"), add("d")]).encode())]
    table = folder.table(commits=commits)
    snapshot = table.snapshot()
    assert (snapshot.version, paths_of(snapshot)) == (3, ["b", "c", "d"])
    assert paths_of(table.snapshot(2)) == ["a", "b", "c"]
    assert [commit.version for commit in table.commit_actions(1)] == [1, 2, 3]
    assert folder.files(commits=[]) == ["a", "b"], "the catalog says that all of its commits are published"


def test_the_catalog_goes_before_what_is_published(folder: LogFolder) -> None:
    managed(folder).commit(2, add("published")).commit(3, add("beyond"))
    assert folder.files(commits=[f"{2:020d}.{UUID}.json"]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "commits", [["nonsense.json"], [f"{2:020d}.json"], [RatifiedCommit(2, "../../x.json")]]
)
def test_what_a_catalog_cannot_have_said(folder: LogFolder, commits: list[RatifiedCommit | str]) -> None:
    with pytest.raises(CorruptTableError):
        managed(folder).table(commits=commits).snapshot()


def test_a_list_with_a_gap_or_a_missing_file(folder: LogFolder) -> None:
    managed(folder)
    with pytest.raises(CorruptTableError, match="gap"):
        folder.table(commits=[RatifiedCommit(2, content=b""), RatifiedCommit(4, content=b"")])
    with pytest.raises(FileMissingError):
        folder.table(commits=[f"{2:020d}.{'0' * 8}{UUID[8:]}.json"]).snapshot()


def test_snapshots_pickle(folder: LogFolder) -> None:
    folder.create(add("a")).commit(1, add("b"))
    snapshot = pickle.loads(pickle.dumps(folder.table().snapshot()))
    assert (snapshot.version, paths_of(snapshot)) == (1, ["a", "b"])


def test_locations_as_users_write_them(folder: LogFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.create(add("a"))
    monkeypatch.chdir(folder.path.parent)
    for form in (
        "table",
        "./table",
        "table/",
        str(folder.path),
        folder.path,
        folder.path.as_uri(),
        f"file:{folder.path}",
    ):
        assert paths_of(Table(form).snapshot()) == ["a"]


def test_the_readme_lists_every_feature() -> None:
    readme = Path(__file__).parents[2] / "reader" / "README.md"
    text = readme.read_text()
    for feature in FEATURES.values():
        said = "yes" if feature.supported else "no"
        assert f"| `{feature.name}` | {feature.kind} | {feature.asks} | {said} |" in text
