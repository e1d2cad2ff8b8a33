"""Time travel: which version a time means."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from numpy import int64

from lakepass.reader.errors import CorruptTableError, DeltaError, VersionNotFoundError
from tests.reader.log_folder import Action, LogFolder, add, metadata, protocol

START = 1_700_000_000


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(START + seconds, UTC).isoformat()


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "table")


def stamped(milliseconds: int) -> Action:
    return {"commitInfo": {"inCommitTimestamp": milliseconds, "operation": "WRITE"}}


def by_files(folder: LogFolder, *seconds: float) -> LogFolder:
    for version, second in enumerate(seconds):
        actions = (protocol(), metadata()) if version == 0 else ()
        folder.commit(version, *actions, add(f"f{version}"), modified=START + second)
    return folder


@pytest.mark.parametrize(("at", "version"), [(0, 0), (5, 0), (10, 1), (19.999, 1), (20, 2)])
def test_file_times(folder: LogFolder, at: float, version: int) -> None:
    table = by_files(folder, 0, 10, 20).table()
    assert table.snapshot(timestamp=iso(at)).version == version
    assert table.version_at(iso(at)) == version


def test_forms_of_a_timestamp(folder: LogFolder) -> None:
    table = by_files(folder, 0, 3600).table()
    moment = datetime.fromtimestamp(START + 10, UTC)
    east = moment.astimezone(timezone(timedelta(hours=9)))
    for form in (
        moment,
        moment.replace(tzinfo=None),
        east,
        east.isoformat(),
        moment.isoformat().replace("+00:00", "Z"),
    ):
        assert table.snapshot(timestamp=form).version == 0
    with pytest.raises(DeltaError, match="is not a timestamp"):
        table.snapshot(timestamp="yesterday")
    with pytest.raises(DeltaError, match="not both"):
        table.snapshot(version=0, timestamp=moment)


@pytest.mark.parametrize("at", [-1, 20.001, 10_000])
def test_outside_the_range_names_it(folder: LogFolder, at: float) -> None:
    table = by_files(folder, 0, 10, 20).table()
    with pytest.raises(VersionNotFoundError) as told:
        table.snapshot(timestamp=iso(at))
    for part in ("versions 0 to 2", "2023-11-14T22:13:20.000+00:00", "2023-11-14T22:13:40.000+00:00"):
        assert part in str(told.value)


@pytest.mark.parametrize("at", [5, date(2024, 1, 1), "yesterday"])
def test_what_is_no_timestamp_is_refused(folder: LogFolder, at: object) -> None:
    with pytest.raises(DeltaError, match="is not a timestamp"):
        by_files(folder, 0).table().snapshot(timestamp=at)  # type: ignore[arg-type]  # what a caller may do by mistake


def test_a_version_may_be_a_number_of_numpy(folder: LogFolder) -> None:
    number: Any = int64(1)
    assert by_files(folder, 0, 10).table().snapshot(number).version == 1


def test_file_times_out_of_order_are_made_monotonic(folder: LogFolder) -> None:
    table = by_files(folder, 0, 30, 10, 30).table()
    assert table.version_at(iso(30)) == 1
    assert table.version_at(iso(30.001)) == 2
    assert table.version_at(iso(30.002)) == 3
    assert table.snapshot(2).timestamp_ms == (START + 30) * 1000 + 1
    assert [entry.version for entry in table.history()] == [3, 2, 1, 0]


def test_the_first_version_from_a_time_on(folder: LogFolder) -> None:
    table = by_files(folder, 0, 10, 20).table()
    assert [table.version_from(iso(at)) for at in (-100, 0, 0.001, 10, 20)] == [0, 0, 1, 1, 2]
    with pytest.raises(VersionNotFoundError, match="versions 0 to 2"):
        table.version_from(iso(20.5))


def test_versions_that_cannot_be_built_are_no_answer(folder: LogFolder) -> None:
    by_files(folder, 0, 10, 20, 30)
    folder.checkpoint(2, protocol(), metadata())
    (folder.log / f"{0:020d}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="versions 2 to 3"):
        folder.table().snapshot(timestamp=iso(12))


def test_in_commit_timestamps_from_the_start(folder: LogFolder) -> None:
    on = {"delta.enableInCommitTimestamps": "true"}
    state = (protocol(), metadata(**on))
    for version, time in enumerate((1000, 2000, 3000)):
        folder.commit(version, stamped(time), *(state if version == 0 else ()), modified=START)
    table = folder.table()
    assert table.snapshot().timestamp_ms == 3000
    assert [table.version_at(datetime.fromtimestamp(each, UTC)) for each in (1, 1.5, 2, 3)] == [0, 0, 1, 2]
    assert [entry.timestamp.timestamp() for entry in table.history()] == [3, 2, 1]
    assert [commit.timestamp_ms for commit in table.commit_actions(0)] == [1000, 2000, 3000]


def enabled_later(folder: LogFolder) -> LogFolder:
    """Versions 0 and 1 by file time, from 2 on by the commit's own, which is before the file's."""
    by_files(folder, 0, 10)
    since = (START + 20) * 1000
    on = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(since),
    }
    folder.commit(2, stamped(since), metadata(**on), modified=START + 500)
    folder.commit(3, stamped(since + 10_000), modified=START + 600)
    return folder


@pytest.mark.parametrize(("at", "version"), [(0, 0), (15, 1), (19.999, 1), (20, 2), (29, 2), (30, 3)])
def test_in_commit_timestamps_enabled_later(folder: LogFolder, at: float, version: int) -> None:
    table = enabled_later(folder).table()
    assert table.snapshot(timestamp=iso(at)).version == version
    assert table.version_from(iso(at)) == version + (at not in (0, 20, 30))


def test_a_copied_log_has_later_file_times_than_its_commits_say(folder: LogFolder) -> None:
    copied = START + 1_000_000
    by_files(folder, *range(1_000_000, 1_000_005))
    since = (START + 20) * 1000
    on = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "5",
        "delta.inCommitTimestampEnablementTimestamp": str(since),
    }
    folder.commit(5, stamped(since), metadata(**on), modified=copied)
    folder.commit(6, stamped(since + 10_000), modified=copied)
    table = folder.table()
    assert [table.version_from(iso(at)) for at in (0, 20, 25, 30)] == [0, 5, 6, 6]
    assert [table.version_at(iso(at)) for at in (20, 25, 30)] == [5, 5, 6]
    with pytest.raises(VersionNotFoundError, match="versions 0 to 6"):
        table.version_from(iso(31))


def test_times_in_the_history_of_both_kinds(folder: LogFolder) -> None:
    table = enabled_later(folder).table()
    assert [entry.timestamp.timestamp() - START for entry in table.history()] == [30, 20, 10, 0]
    assert table.snapshot(1).timestamp_ms == (START + 10) * 1000
    assert [commit.timestamp_ms // 1000 - START for commit in table.commit_actions(0)] == [0, 10, 20, 30]


def test_a_commit_that_lacks_its_timestamp(folder: LogFolder) -> None:
    enabled_later(folder).commit(4, add("x"))
    with pytest.raises(CorruptTableError, match=r"00000000000000000004.json has no inCommitTimestamp"):
        _ = folder.table().snapshot().timestamp_ms


def test_time_travel_reads_few_commits(folder: LogFolder) -> None:
    from tests.reader.test_segment import Requests

    on = {"delta.enableInCommitTimestamps": "true"}
    folder.commit(0, stamped(0), protocol(), metadata(**on))
    for version in range(1, 500):
        folder.commit(version, stamped(version * 1000))
    folder.checkpoint(499, protocol(), metadata(**on))
    folder.hint(499)
    requests = Requests(folder)
    assert requests.table.version_at(datetime.fromtimestamp(123.5, UTC)) == 123
    commits = [name for kind, name in requests.seen if kind == "read" and name.endswith(".json")]
    assert len(set(commits)) <= 12
