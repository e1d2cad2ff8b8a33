"""What changed: queries from a starting version, and change data feeds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.broker.lake import DELTA, Lake, error, files, lines
from tests.reader.log_folder import LogFolder, add, metadata, protocol, remove
from tests.tables.fixtures import fixture


def _logged(table: str) -> dict[int, list[dict[str, Any]]]:
    """The actions of each commit, as they stand in the log."""
    commits: dict[int, list[dict[str, Any]]] = {}
    for path in sorted((fixture(table).path / "_delta_log").glob("*.json")):
        if path.stem.isdigit():
            commits[int(path.stem)] = [json.loads(line) for line in path.read_text().splitlines()]
    return commits


def _expected(table: str, start: int, end: int) -> list[tuple[int, str]]:
    """Version and kind of every file that changed data."""
    return sorted(
        (version, kind)
        for version, actions in _logged(table).items()
        for action in actions
        for kind in ("add", "remove")
        if start <= version <= end and kind in action and action[kind]["dataChange"]
    )


@pytest.mark.parametrize("table", ["plain", "partitioned", "schema_evolution", "change_feed"])
def test_a_range_gives_what_commits_changed(lake: Lake, table: str) -> None:
    latest = fixture(table).latest
    for start, end in ((0, latest), (1, latest), (1, 2), (latest, latest)):
        body = {"startingVersion": start, "endingVersion": end}
        answer = lake.query(table, body)
        content = lines(answer)
        assert answer.headers["delta-table-version"] == str(start)
        assert content[0] == {"protocol": {"minReaderVersion": 1}}
        assert content[1]["metaData"]["version"] == start
        given = sorted(
            (line[kind]["version"], kind) for line in content for kind in ("add", "remove") if kind in line
        )
        assert given == _expected(table, start, end)
        later = [line["metaData"]["version"] for line in content[2:] if "metaData" in line]
        logged = [
            version
            for version, actions in _logged(table).items()
            if start < version <= end and any("metaData" in action for action in actions)
        ]
        assert later == logged
        for file in files(answer):
            assert {
                "url",
                "id",
                "partitionValues",
                "size",
                "timestamp",
                "version",
                "expirationTimestamp",
            } <= set(file)
            assert httpx.get(file["url"]).status_code == 200


def test_a_range_in_delta_format_wraps_the_actions(lake: Lake) -> None:
    for table in ("deletion_vectors", "mapping_name", "plain"):
        answer = lake.query(table, {"startingVersion": 0}, DELTA)
        content = lines(answer)
        assert content[1]["metaData"]["version"] == 0
        given = sorted(
            (line["file"]["version"], next(iter(line["file"]["deltaSingleAction"])))
            for line in content
            if "file" in line
        )
        assert given == _expected(table, 0, fixture(table).latest)
        assert all("timestamp" in file for file in files(answer))


def test_metadata_travels_in_its_place(lake: Lake) -> None:
    content = lines(lake.query("schema_evolution", {"startingVersion": 0}))[2:]
    versions = [next(iter(line.values()))["version"] for line in content]
    assert versions == sorted(versions)


def test_historical_protocol_when_asked_for(lake: Lake) -> None:
    changed = [
        version
        for version, actions in _logged("mapping_name").items()
        if version > 0 and any("protocol" in action for action in actions)
    ]
    plain = lines(lake.query("mapping_name", {"startingVersion": 0}, DELTA))
    asked = lines(
        lake.query("mapping_name", {"startingVersion": 0, "includeHistoricalProtocol": True}, DELTA)
    )
    assert len([line for line in plain if "protocol" in line]) == 1
    assert len([line for line in asked if "protocol" in line]) == 1 + len(changed)


@pytest.fixture(scope="module")
def dropped(lake: Lake) -> str:
    """A table that had deletion vectors for a while, and other partition columns at the end."""
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 1,
    }
    plain = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}
    features = {
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "changeDataFeed"],
    }
    log: list[list[dict[str, Any]]] = [
        [plain, _described("a")],
        [_added("x.parquet", "a")],
        [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}],
        [{"remove": {**_added("x.parquet", "a")["add"]}}, _added("x.parquet", "a", deletionVector=vector)],
        [{"remove": {"path": "x.parquet", "dataChange": True, "deletionVector": vector}}],
        [plain, _described("b"), _added("y.parquet", "b")],
    ]
    for version, actions in enumerate(log):
        body = "\n".join(json.dumps(action) for action in actions).encode()
        key = f"dropped/_delta_log/{version:020d}.json"
        lake.store.s3().put_object(Bucket=lake.bucket, Key=key, Body=body)
    lake.broker.share_table("share.tables.dropped", f"s3://{lake.bucket}/dropped")
    return "dropped"


def _described(partition: str) -> dict[str, Any]:
    columns: list[dict[str, Any]] = [
        {"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ("a", "b")
    ]
    return {
        "metaData": {
            "id": "00000000-0000-4000-8000-00000000000d",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": columns}),
            "partitionColumns": [partition],
            "configuration": {"delta.enableChangeDataFeed": "true"},
        }
    }


def _added(path: str, partition: str, **more: Any) -> dict[str, Any]:
    action = {"path": path, "partitionValues": {partition: "1"}, "size": 1, "modificationTime": 1}
    return {"add": {**action, "dataChange": True, **more}}


@pytest.mark.parametrize("asked", ["parquet", "delta,parquet"])
def test_deleted_rows_do_not_come_back_in_the_middle_of_a_range(lake: Lake, dropped: str, asked: str) -> None:
    header = {"delta-sharing-capabilities": f"responseformat={asked};readerfeatures=deletionvectors"}
    for answer in (
        lake.query(dropped, {"startingVersion": 0}, header),
        lake.changes(dropped, header, startingVersion=0),
    ):
        *before, end = lines(answer)
        assert "parquet format" in end["endStreamAction"]["errorMessage"]
        assert [line["add"]["version"] for line in before if "add" in line] == [1]
    for later in (0, 5):
        body = {"startingVersion": later, "endingVersion": max(later, 1)}
        assert len(files(lake.query(dropped, body, header))) == 1
    whole = files(lake.query(dropped, {"startingVersion": 0}, DELTA))
    assert [file["version"] for file in whole] == [1, 3, 3, 4, 5]
    assert "deletionVector" in whole[2]["deltaSingleAction"]["add"]


def test_partition_values_are_those_of_their_time(lake: Lake, dropped: str) -> None:
    answer = lake.changes(dropped, startingVersion=0, endingVersion=1)
    assert lines(answer)[1]["metaData"]["partitionColumns"] == ["b"]
    assert [file["partitionValues"] for file in files(answer)] == [{"a": "1"}]


def test_a_range_without_data_gives_two_lines(lake: Lake) -> None:
    assert len(lines(lake.query("empty", {"startingVersion": 0}))) == 2


def test_commits_lost_behind_a_checkpoint(lake: Lake) -> None:
    held = sorted(_logged("checkpoint_truncated"))
    assert held[0] > 0
    assert lake.query("checkpoint_truncated").status_code == 200
    assert lake.query("checkpoint_truncated", {"startingVersion": held[-1]}).status_code == 200
    error(lake.query("checkpoint_truncated", {"startingVersion": 0}), code="INVALID_PARAMETER_VALUE")


@pytest.mark.parametrize("form", [{}, DELTA])
def test_pages_of_a_range(lake: Lake, form: dict[str, str]) -> None:
    body = {"startingVersion": 0}
    whole = lines(lake.query("schema_evolution", body, form))
    gathered: list[Any] = []
    token: str | None = None
    while True:
        page = lines(
            lake.query(
                "schema_evolution", {**body, "maxFiles": 1, **({"pageToken": token} if token else {})}, form
            )
        )
        assert page[:2] == whole[:2]
        gathered += page[2:-1]
        assert len([line for line in page[2:] if "metaData" not in line]) == 2
        token = page[-1]["endStreamAction"].get("nextPageToken")
        if token is None:
            break
    assert [_identity(line) for line in gathered] == [_identity(line) for line in whole[2:]]


def _identity(line: dict[str, Any]) -> Any:
    kind, content = next(iter(line.items()))
    return kind, content["version"], content.get("id")


@pytest.mark.parametrize("table", ["change_feed", "change_feed_deletion_vectors", "change_feed_mapping"])
@pytest.mark.parametrize("form", [{}, DELTA])
def test_changes(lake: Lake, table: str, form: dict[str, str]) -> None:
    latest = fixture(table).latest
    answer = lake.changes(table, form, startingVersion=0)
    if not form and table != "change_feed":
        error(answer, code="UNSUPPORTED_OPERATION")
        return
    content = lines(answer)
    assert answer.headers["delta-table-version"] == "0"
    assert content[1]["metaData"]["version"] == latest
    assert len([line for line in content if "metaData" in line]) == 1
    expected = []
    for version, actions in _logged(table).items():
        kinds = [kind for action in actions for kind in ("cdc",) if kind in action]
        if not kinds:
            kinds = [
                kind
                for action in actions
                for kind in ("add", "remove")
                if kind in action and action[kind]["dataChange"]
            ]
        expected += [(version, kind) for kind in kinds]
    given = []
    for line in content[2:]:
        if form:
            given.append((line["file"]["version"], next(iter(line["file"]["deltaSingleAction"]))))
        else:
            kind, file = next(iter(line.items()))
            given.append((file["version"], "cdc" if kind == "cdf" else kind))
    assert sorted(given) == sorted(expected)
    assert {kind for _, kind in given} & {"cdc", "remove"}


def test_changes_with_historical_metadata(lake: Lake) -> None:
    content = lines(lake.changes("change_feed", startingVersion=0, includeHistoricalMetadata="true"))
    assert content[1]["metaData"]["version"] == 0
    table = "change_feed_mapping"
    content = lines(lake.changes(table, DELTA, startingVersion=0, includeHistoricalMetadata="true"))
    versions = [line["metaData"]["version"] for line in content if "metaData" in line]
    logged = [
        version
        for version, actions in _logged(table).items()
        if any("metaData" in action for action in actions)
    ]
    assert versions == logged


def test_changes_in_pages(lake: Lake) -> None:
    whole = files(lake.changes("change_feed", startingVersion=0))
    gathered: list[str] = []
    token = None
    while True:
        parameters: dict[str, Any] = {"startingVersion": 0, "maxFiles": 2}
        parameters |= {"pageToken": token} if token else {}
        page = lines(lake.changes("change_feed", **parameters))
        gathered += [file["id"] for file in files(lake.changes("change_feed", **parameters))]
        token = page[-1]["endStreamAction"].get("nextPageToken")
        if token is None:
            break
    assert gathered == [file["id"] for file in whole]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"endingVersion": 3},
        {"startingVersion": 0, "startingTimestamp": "2022-01-01T00:00:00Z"},
        {"startingVersion": 0, "endingVersion": 1, "endingTimestamp": "2022-01-01T00:00:00Z"},
        {"startingVersion": 3, "endingVersion": 1},
        {"startingVersion": 999},
        {"startingVersion": -1},
        {"startingVersion": "x"},
        {"startingTimestamp": "2022-01-01"},
        {"startingTimestamp": "2999-01-01T00:00:00Z"},
        {"startingTimestamp": "1999-01-01T00:00:00Z"},
        {"startingVersion": 0, "endingTimestamp": "2999-01-01T00:00:00Z"},
        {"startingVersion": 0, "endingTimestamp": "1999-01-01T00:00:00Z"},
        {"startingVersion": 0, "maxFiles": 0},
        {"startingVersion": 0, "maxFiles": "string"},
        {"startingVersion": 0, "pageToken": "garbage"},
    ],
)
def test_a_range_of_changes_that_means_nothing_is_refused(lake: Lake, parameters: dict[str, Any]) -> None:
    error(lake.changes("change_feed", **parameters))


def test_changes_where_the_feed_was_off(lake: Lake) -> None:
    assert "cdf is not enabled" in error(lake.changes("plain", startingVersion=0))
    table = "change_feed_enabled_later"
    on = min(
        version
        for version, actions in _logged(table).items()
        for action in actions
        if action.get("metaData", {}).get("configuration", {}).get("delta.enableChangeDataFeed") == "true"
    )
    assert f"version {on - 1}" in error(lake.changes(table, startingVersion=on - 1))
    assert lake.changes(table, startingVersion=on).status_code == 200


def test_changes_by_time(lake: Lake) -> None:
    whole = lines(lake.changes("change_feed", startingVersion=0))
    times = sorted({file["timestamp"] for line in whole for file in line.values() if "timestamp" in file})
    first, last = (_iso(each) for each in (times[0], times[-1]))
    by_time = lake.changes("change_feed", startingTimestamp=first, endingTimestamp=last)
    given = {file["timestamp"] for file in files(by_time)}
    assert given == set(times)
    between = _iso(times[0] + 1)
    later = files(lake.changes("change_feed", startingTimestamp=between))
    assert {file["timestamp"] for file in later} == set(times[1:])


def _iso(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_changes_that_end_before_the_feed_was_turned_off(lake: Lake, tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    folder = LogFolder(tmp_path / "table")
    folder.commit(0, protocol(), metadata(**feed), add("one"))
    folder.commit(1, add("two"))
    folder.commit(2, metadata())
    share = _shared(lake, tmp_path / "table", "turned_off")
    assert len(files(lake.changes(share, startingVersion=0, endingVersion=1))) == 2
    for start in (0, 2):
        refused = lake.changes(share, startingVersion=start)
        assert "not recorded for version [2]" in error(refused, code="INVALID_PARAMETER_VALUE")


def test_a_merge_that_changed_nothing_is_no_change(lake: Lake, tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    counts = dict.fromkeys(("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), "0")
    info = {"commitInfo": {"operation": "MERGE", "operationMetrics": counts}}
    other = {"commitInfo": {"operation": "MERGE", "operationMetrics": counts | {"numTargetRowsUpdated": "1"}}}
    folder = LogFolder(tmp_path / "table")
    folder.commit(0, protocol(), metadata(**feed), add("one"))
    folder.commit(1, info, remove("one"), add("two"))
    folder.commit(2, other, remove("two"), add("three"))
    share = _shared(lake, tmp_path / "table", "idle_merge")
    given = [file["version"] for file in files(lake.changes(share, startingVersion=0))]
    assert given == [0, 2, 2]
    # A stream follows the files, and these are new.
    streamed = [file["version"] for file in files(lake.query(share, {"startingVersion": 0}))]
    assert streamed == [0, 1, 1, 2, 2]


def _shared(lake: Lake, folder: Path, name: str) -> str:
    lake.store.seed(folder, f"s3://{lake.bucket}/{name}")
    lake.broker.share_table(f"share.tables.{name}", f"s3://{lake.bucket}/{name}")
    return name
