"""`lakepass audit`: the trail as a table, as JSON, filtered, and followed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from lakepass.broker.audit import AuditLog, Outcome, VendEvent
from lakepass.broker.catalog.store import Catalog
from lakepass.broker.config import Settings
from lakepass.cli.main import app


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "lakepass.yaml"
    made.write_text(yaml.safe_dump({"database": f"sqlite:///{tmp_path / 'catalog.db'}"}))
    record(
        made,
        VendEvent(
            request_id="req-1",
            interface="delta-sharing",
            outcome=Outcome.VENDED,
            recipient="ann",
            token_id="token-1",
            table="sales.eu.orders",
            location="s3://lake/orders",
            cloud="aws",
            scope="directory",
            expires_at=1_893_459_600_000,
            source_address="192.0.2.7",
            at=1_893_456_000_000,
        ),
        VendEvent(
            request_id="req-2",
            interface="unity-catalog",
            outcome=Outcome.REFUSED,
            reason="[red]not shared[/red] with you",
            recipient="bob",
            table="sales.eu.items",
        ),
        VendEvent(
            request_id="req-3",
            interface="delta-sharing",
            outcome=Outcome.VENDED,
            recipient="bob",
            table="sales.eu.flat",
            location="abfss://data@account.dfs.core.windows.net/flat",
            cloud="azure",
            scope="container",
        ),
    )
    return made


def record(file: Path, *events: VendEvent) -> None:
    catalog = Catalog(Settings.load(file))
    log = AuditLog(catalog.engine)
    for event in events:
        log.record(event)
    log.close()
    catalog.close()


def run(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments, "--config", str(file)], env={"COLUMNS": "240"})


def test_a_table_for_people(file: Path) -> None:
    shown = run(file).output
    assert "2030-01-01T00:00:00Z" in shown
    assert "s3://lake/orders" in shown
    assert "[red]not shared[/red] with you" in shown, "markup in a reason is text"
    assert "whole container" in shown
    assert shown.index("req-1") < shown.index("req-2") < shown.index("req-3")


def test_json_for_scripts(file: Path) -> None:
    rows = json.loads(run(file, "--json").stdout)
    assert [row["request_id"] for row in rows] == ["req-1", "req-2", "req-3"]
    assert rows[0] == {
        "time": "2030-01-01T00:00:00.000Z",
        "request_id": "req-1",
        "interface": "delta-sharing",
        "outcome": "vended",
        "recipient": "ann",
        "token_id": "token-1",
        "table": "sales.eu.orders",
        "location": "s3://lake/orders",
        "cloud": "aws",
        "scope": "directory",
        "expires_at": "2030-01-01T01:00:00.000Z",
        "source_address": "192.0.2.7",
    }


def test_json_lines_for_export(file: Path) -> None:
    lines = run(file, "--jsonl").stdout.splitlines()
    assert [json.loads(line)["request_id"] for line in lines] == ["req-1", "req-2", "req-3"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--recipient", "bob"], ["req-2", "req-3"]),
        (["--table", "sales.eu.orders"], ["req-1"]),
        (["--outcome", "refused"], ["req-2"]),
        (["--request-id", "req-3"], ["req-3"]),
        (["--since", "2029-12-31"], ["req-1"]),
        (["--until", "2029-12-31T12:00:00+00:00"], ["req-2", "req-3"]),
        (["--since", "1h", "--until", "2029-01-01"], ["req-2", "req-3"]),
        (["--limit", "1"], ["req-3"]),
        (["--recipient", "nobody"], []),
    ],
)
def test_filters(file: Path, arguments: list[str], expected: list[str]) -> None:
    assert [row["request_id"] for row in json.loads(run(file, *arguments, "--json").stdout)] == expected


@pytest.mark.parametrize("arguments", [["--since", "yesterday"], ["--outcome", "stolen"], ["--limit", "0"]])
def test_what_is_typed_wrong(file: Path, arguments: list[str]) -> None:
    result = run(file, *arguments)
    assert result.exit_code == 2
    assert arguments[0] in re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def test_nothing_matches(file: Path) -> None:
    assert "Nothing in the audit trail matches" in run(file, "--recipient", "nobody").output


def test_follow(file: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "lakepass.cli.main",
        "audit",
        "--follow",
        "--json",
        "--config",
        str(file),
    ]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        seen = [json.loads(process.stdout.readline())["request_id"] for _ in range(3)]
        record(file, VendEvent(request_id="req-4", interface="delta-sharing", outcome=Outcome.VENDED))
        seen.append(json.loads(process.stdout.readline())["request_id"])
    finally:
        process.terminate()
        process.wait()
    assert seen == ["req-1", "req-2", "req-3", "req-4"]
