"""The commands of recipients, run as a shell runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from lakepass.cli import failures
from lakepass.reader import Table
from tests.reader.sharing.folder import FolderShare
from tests.reader.sharing.server import TOKEN, Server, as_json, serving
from tests.tables import fixtures

PLAIN = fixtures.fixture("schema_evolution").path


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        share = FolderShare(running)
        share.add("t", PLAIN)
        running.on("GET", "/shares", as_json({"items": [{"name": "s"}]}))
        entry = {"name": "t", "schema": "d", "share": "s", "accessModes": ["url"]}
        running.on("GET", "/shares/s/all-tables", as_json({"items": [entry]}))
        running.on("GET", "/shares/s/schemas/d/tables", as_json({"items": [entry]}))
        yield running


@pytest.fixture
def profile(server: Server, tmp_path: Path) -> Path:
    path = tmp_path / "me.share"
    path.write_text(json.dumps(server.profile))
    path.chmod(0o600)
    return path


def lakepass(*words: str, profile: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "LAKEPASS_PROFILE"}
    if profile is not None:
        environment["LAKEPASS_PROFILE"] = str(profile)
    command = [sys.executable, "-m", "lakepass.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**environment, "COLUMNS": "200"})


def row_count() -> int:
    return Table(PLAIN).snapshot().scan().count()


def test_ls_with_the_profile_from_each_place(profile: Path) -> None:
    by_variable = lakepass("ls", profile=profile)
    by_option = lakepass("ls", "s", "--profile", str(profile))
    by_name = lakepass("ls", f"{profile}#s.d", "--json")
    assert by_variable.stdout.split() == by_option.stdout.split() == ["s.d.t", "url"]
    assert json.loads(by_name.stdout)["name"] == "s.d.t"


def test_show_tells_version_access_and_columns(profile: Path) -> None:
    shown = lakepass("show", "s.d.t", profile=profile).stdout
    snapshot = Table(PLAIN).snapshot()
    assert f"version      {snapshot.version}" in shown
    assert "access       url (offered: url)" in shown
    for name in snapshot.schema.names:
        assert name in shown


def test_head_prints_so_many_rows(profile: Path) -> None:
    shown = lakepass("head", "s.d.t", "-n", "2", profile=profile).stdout
    assert sum(line.startswith("│") for line in shown.splitlines()) == 2


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_read_into_a_file(profile: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out.{suffix}"
    done = lakepass("read", "s.d.t", "-o", str(target), profile=profile)
    assert done.returncode == 0, done.stderr
    if suffix == "parquet":
        count = pq.read_table(target).num_rows
    elif suffix == "csv":
        count = csv.read_csv(target).num_rows
    else:
        count = len([json.loads(line) for line in target.read_text().splitlines()])
    assert count == row_count()
    assert f"{count:,} rows" in done.stderr
    assert sorted(one.name for one in tmp_path.iterdir()) == ["me.share", target.name]


def test_read_part_to_standard_output(profile: Path) -> None:
    column = Table(PLAIN).snapshot().schema.names[0]
    done = lakepass("read", f"{profile}#s.d.t", "--columns", column, "--limit", "2", "-f", "jsonl")
    assert [list(json.loads(line)) for line in done.stdout.splitlines()] == [[column], [column]]


def test_a_failed_read_leaves_no_file(server: Server, profile: Path, tmp_path: Path) -> None:
    refused = as_json({"errorCode": "X", "message": "gone"}, 404)
    server.on("POST", "/shares/s/schemas/d/tables/t/query", refused)
    target = tmp_path / "out.parquet"
    done = lakepass("read", "s.d.t", "-o", str(target), profile=profile)
    assert done.returncode == 3
    assert sorted(one.name for one in tmp_path.iterdir()) == ["me.share"]


@pytest.mark.parametrize("words", [["read", "#s.d.t"], ["ls", "#s"], ["show", "#s.d.t"], ["--help"]])
def test_a_closed_pipe_is_not_an_error(profile: Path, words: list[str]) -> None:
    named = [f"{profile}{word}" if word.startswith("#") else word for word in words]
    command = [sys.executable, "-m", "lakepass.cli.main", *named]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None
    assert reader.stderr is not None
    reader.stdout.close()
    assert reader.wait(60) == 0
    assert reader.stderr.read() == b""
    reader.stderr.close()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["head", "s.d.nothing"], 3, "lakepass ls"),
        (["head", "nonsense"], 1, "share.schema.table"),
        (["ls", "nothing"], 3, "lakepass ls"),
        (["read", "s.d.t", "-o", "out.doc"], 2, "--format"),
        (["read", "s.d.t", "-f", "xml"], 2, "'xml' is not parquet, csv or jsonl"),
        (["read", "s.d.t", "-o", "no/such/folder.csv"], 2, "there is no folder no/such"),
        (["read", "s.d.t", "-o", ".", "-f", "csv"], 2, "is a folder"),
        (["read", "s.d.t", "--timestamp", "yesterday"], 1, "ISO 8601"),
        (["changes", "s.d.t", "--since", "yesterday"], 1, "ISO 8601"),
        (["read", "s.d.t", "--where", "no_such > 1"], 1, "no_such"),
        (["head", "s.d.t", "--access", "dir"], 1, "the server offers"),
        (["credentials", "s.d.t", "--env"], 1, "the server offers"),
    ],
)
def test_errors_are_told_with_the_next_step(profile: Path, words: list[str], code: int, said: str) -> None:
    done = lakepass(*words, profile=profile)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert TOKEN not in done.stdout + done.stderr
    assert done.stdout == ""


def test_no_profile_and_no_server(tmp_path: Path) -> None:
    assert "LAKEPASS_PROFILE" in lakepass("ls").stderr
    gone = {"shareCredentialsVersion": 1, "endpoint": "https://no-such-host.invalid/", "bearerToken": "t"}
    path = tmp_path / "gone.share"
    path.write_text(json.dumps(gone))
    path.chmod(0o644)
    done = lakepass("ls", profile=path)
    assert done.returncode == 4
    assert "warning:" in done.stderr
    assert "chmod 600" in done.stderr


def test_what_the_server_refuses_has_the_exit_code_of_its_cause(server: Server, profile: Path) -> None:
    query = "/shares/s/schemas/d/tables/t/query"
    codes = {}
    for status in (400, 401, 404):
        server.on("POST", query, as_json({"errorCode": "X", "message": "no"}, status))
        done = lakepass("read", "s.d.t", profile=profile)
        codes[status] = done.returncode
        assert done.stdout == "", "a read that fails at once prints no header"
    assert codes == {400: 1, 401: 3, 404: 3}


def test_an_expired_profile_is_a_refusal(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "old.share"
    path.write_text(json.dumps({**server.profile, "expirationTime": "2020-01-01T00:00:00Z"}))
    path.chmod(0o600)
    done = lakepass("ls", profile=path)
    assert done.returncode == 3
    assert "Ask the provider for a new profile" in done.stderr


def test_a_warning_shows_the_path_as_it_is(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "my[work].share"
    path.write_text(json.dumps(server.profile))
    path.chmod(0o644)
    assert f"chmod 600 {path}" in lakepass("ls", profile=path).stderr


@pytest.mark.parametrize("words", [["--debug", "head", "nonsense"], ["head", "nonsense", "--debug"]])
def test_debug_shows_the_trace(profile: Path, words: list[str]) -> None:
    assert "Traceback" in lakepass(*words, profile=profile).stderr


def test_help_tells_the_exit_codes() -> None:
    shown = " ".join(lakepass("--help").stdout.split())
    for code in (failures.FAILED, failures.REFUSED, failures.UNREACHABLE, failures.NOT_INSTALLED):
        assert f"; {code} " in shown
