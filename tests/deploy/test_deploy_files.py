"""The files in deploy/: each is read by its own validator, and says nothing that the broker does not do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakepass.broker.metrics import Metrics
from tests.clouds.run import Unavailable
from tests.clouds.tools import ROOT, python_environment
from tests.deploy.containerfile import parse

DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
DASHBOARD = DEPLOY / "grafana-dashboard.json"
ALERTS = DEPLOY / "prometheus-alerts.yaml"


def _validator(requirement: str) -> Path:
    """The python of an environment that holds one validator."""
    constraints = Path(__file__).with_name("validators-constraints.txt")
    try:
        return python_environment(requirement.partition("=")[0], requirement, constraints)
    except Unavailable as reason:
        pytest.skip(str(reason))


def _validated(python: Path, program: str, given: str) -> None:
    done = subprocess.run(
        [str(python), "-c", program], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _expressions() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$job", "lakepass")
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


def test_compose_file_follows_the_specification() -> None:
    # The validator knows no variables.
    text = COMPOSE.read_text().replace(
        "${LAKEPASS_CONFIG_FILE:?the path of lakepass.yaml}", "./lakepass.yaml"
    )

    program = "import sys, compose_spec; compose_spec.PyCompose.from_yaml(sys.stdin.read())"
    _validated(_validator("compose-spec==0.2.1"), program, text)


def test_compose_runs_the_image_unprivileged() -> None:
    broker = yaml.safe_load(COMPOSE.read_text())["services"]["broker"]
    final = parse(ROOT / "Containerfile")[-1]

    assert broker["user"] == final.last("USER").rest
    assert broker["read_only"] is True
    assert broker["cap_drop"] == ["ALL"]
    assert broker["image"].endswith(f":{final.last('LABEL').pairs['org.opencontainers.image.version']}")


def test_compose_hands_both_secrets_to_the_broker(tmp_path: Path) -> None:
    """The command as written, with a stand-in for `lakepass` that shows what it was given."""
    broker: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]["broker"]
    (tmp_path / "database-password").write_text("local-password")
    (tmp_path / "admin-token-sha256").write_text("0" * 64 + "\n")
    shown = tmp_path / "lakepass"
    shown.write_text('#!/bin/sh\necho "$LAKEPASS_DATABASE $LAKEPASS_ADMIN__TOKEN_SHA256 $*"\n')
    shown.chmod(0o755)
    command = broker["command"][0].replace("$$", "$").replace("/run/secrets", str(tmp_path))

    done = subprocess.run(
        [*broker["entrypoint"], command],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True, check=True,
    )  # fmt: skip

    address = "postgresql://lakepass:local-password@database:5432/lakepass"
    assert done.stdout.strip() == f"{address} {'0' * 64} serve --config /etc/lakepass/lakepass.yaml"


def test_systemd_takes_the_unit_and_finds_it_confined(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on this machine")
    unit = tmp_path / "lakepass.service"
    text = (DEPLOY / "lakepass.service").read_text()
    # `verify` wants the program to be there.
    unit.write_text(text.replace("/opt/lakepass/bin/lakepass serve", "/bin/true serve"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stderr
    assert "lakepass.service" not in verified.stderr, verified.stderr

    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize("expression", sorted(set(_expressions())))
def test_expressions_ask_for_metrics_that_exist(expression: str) -> None:
    metrics = Metrics()
    metrics.observe("GET", "/shares", 200, 0.01)
    exposed = {line.split("{")[0] for line in metrics.render().decode().splitlines() if line[:1] != "#"}

    named = set(re.findall(r"\b(lakepass_\w+)\b", expression))

    assert named <= exposed
    assert named or "up{" in expression


def test_expressions_are_promql() -> None:
    program = "import sys, json, promql_parser; [promql_parser.parse(e) for e in json.load(sys.stdin)]"

    _validated(_validator("promql-parser==0.11.0"), program, json.dumps(list(_expressions())))


def test_dashboard_has_no_panel_twice_and_no_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    cells = [
        (x, y)
        for panel in panels
        for place in (panel["gridPos"],)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert max(x for x, _ in cells) < 24
