"""The provider's commands: what they print, what they ask, what they write."""

from __future__ import annotations

import json
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lakepass.broker.catalog.store import Catalog
from lakepass.broker.config import Settings
from lakepass.broker.errors import NotFound
from lakepass.cli.main import app

runner = CliRunner()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "lakepass.yaml"
    path.write_text(
        f"database: sqlite:///{tmp_path / 'catalog.db'}\nserver: {{public_url: 'https://share.example.com'}}\n"
    )
    return path


def _run(config: Path, *arguments: str, answers: str | None = None) -> Result:
    return runner.invoke(app, [*arguments, "--config", str(config)], input=answers)


def _json(config: Path, *arguments: str) -> Any:
    result = _run(config, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_from_an_empty_catalog_to_a_profile(config: Path, tmp_path: Path) -> None:
    assert _json(config, "share", "list") == []
    assert _run(config, "share", "add", "sales", "--comment", "All of it").exit_code == 0
    added = _run(
        config, "table", "add", "sales.eu.orders", "s3a://lake/orders/", "--access", "url,dir", "--no-check"
    )
    assert added.exit_code == 0, added.output
    (table,) = _json(config, "table", "list")
    assert (table["location"], table["accessModes"]) == ("s3://lake/orders", ["url", "dir"])
    link = _json(config, "recipient", "add", "ann", "--share", "sales")
    assert link["url"].startswith("https://share.example.com/activate/")
    profile = tmp_path / "ann.share"
    assert _run(config, "token", "issue", "ann", "--lifetime", "90d", "--output", str(profile)).exit_code == 0
    assert stat.S_IMODE(profile.stat().st_mode) == 0o600
    content = json.loads(profile.read_text())
    assert content["endpoint"] == "https://share.example.com/delta-sharing/"
    assert content["expirationTime"].endswith("Z")
    tokens = _run(config, "token", "list", "ann", "--json")
    assert content["bearerToken"] not in tokens.stdout
    assert _json(config, "grant", "list")[0]["share"] == "sales"


def test_lists_for_people_show_what_is_there(config: Path) -> None:
    _run(config, "share", "add", "sales", "--comment", "[bold]not markup[/bold]")
    shown = _run(config, "share", "list")
    assert "sales" in shown.output
    assert "[bold]not markup[/bold]" in shown.output
    assert "none" in _run(config, "table", "list").output


def test_nothing_is_lost_without_a_word(config: Path) -> None:
    _run(config, "share", "add", "sales")
    _run(config, "recipient", "add", "ann", "--share", "sales")
    refused = _run(config, "share", "remove", "sales")
    assert refused.exit_code != 0
    assert "--yes" in refused.output
    assert _run(config, "share", "list", "--json").stdout.count("sales")
    assert _run(config, "grant", "remove", "ann", "sales", "--yes").exit_code == 0
    assert _run(config, "share", "remove", "sales", "--yes").exit_code == 0
    assert _json(config, "share", "list") == []


def test_a_deployment_may_run_twice(config: Path) -> None:
    for _ in range(2):
        assert _run(config, "share", "add", "sales", "--if-absent").exit_code == 0
        table = ("table", "add", "sales.eu.orders", "s3://lake/orders", "--no-check", "--if-absent")
        assert _run(config, *table).exit_code == 0
        assert _run(config, "recipient", "add", "ann", "--if-absent").exit_code == 0
        assert _run(config, "grant", "add", "ann", "sales", "--if-absent").exit_code == 0
    assert _run(config, "share", "add", "sales").exit_code != 0


def test_a_deployment_that_stopped_half_way_goes_on(config: Path) -> None:
    """A recipient without the link that was to go with it gets it; a used link is not given again."""
    code = "local-activation-code"
    add = ("recipient", "add", "ann", "--activation-sha256", sha256(code.encode()).hexdigest(), "--if-absent")
    assert _run(config, "recipient", "add", "ann").exit_code == 0

    assert _run(config, *add).exit_code == 0
    catalog = Catalog(Settings.load(config))
    assert catalog.recipients.activate(code).recipient == "ann"
    assert _run(config, *add).exit_code == 0
    with pytest.raises(NotFound):
        catalog.recipients.activate(code)
    catalog.close()


def test_a_rotation_and_a_revocation(config: Path) -> None:
    _run(config, "recipient", "add", "ann")
    _run(config, "token", "issue", "ann")
    rotated = _run(config, "token", "rotate", "ann", "--grace", "0s")
    assert rotated.exit_code == 0, rotated.output
    tokens = _json(config, "token", "list", "ann")
    assert sorted(token["status"] for token in tokens) == ["expired", "live"]
    assert _run(config, "token", "revoke", "--all-of", "ann", "--yes").exit_code == 0
    tokens = _json(config, "token", "list", "ann")
    assert {token["status"] for token in tokens} == {"revoked"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("table", "add", "orders", "s3://lake/orders"), "share.schema.table"),
        (("table", "add", "a.b.c", "s3://lake"), "whole bucket"),
        (("table", "add", "a.b.c", "s3://lake/orders"), "No storage is configured"),
        (("token", "issue", "nobody"), "no recipient"),
        (("grant", "add", "nobody", "nothing"), "no recipient"),
        (("share", "add", "with space"), "space"),
    ],
)
def test_what_cannot_be_says_why(config: Path, arguments: tuple[str, ...], reason: str) -> None:
    result = _run(config, *arguments)
    assert result.exit_code != 0
    assert reason in str(result.exception)


def test_an_import(config: Path, tmp_path: Path) -> None:
    source = tmp_path / "reference.yaml"
    source.write_text(
        "version: 1\nshares:\n- name: one\n  schemas:\n  - name: d\n    tables:\n"
        "    - {name: t, location: 's3a://lake/t'}\nauthorization: {bearerToken: local-token}\n"
    )
    result = _run(config, "import", str(source), "--recipient", "everyone")
    assert result.exit_code == 0, result.output
    assert "s3://lake" in result.output
    assert _json(config, "grant", "list")[0]["recipient"] == "everyone"
