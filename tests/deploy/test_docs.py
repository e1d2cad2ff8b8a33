"""The site says what is so: its samples are read by what they are for, its commands and settings exist."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from pydantic import BaseModel

from lakepass.broker import config
from lakepass.broker.app import create_app
from lakepass.broker.config import Settings
from lakepass.cli.main import app
from lakepass.reader.features import FEATURES
from tests.broker.server import running_broker
from tests.clouds.tools import ROOT
from tests.deploy.terraform import MODULES

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> Iterator[Any]:
    for page in PAGES:
        for number, (indent, found, text) in enumerate(_BLOCK.findall(page.read_text())):
            if found == language:
                plain = re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
                yield pytest.param(plain, id=f"{page.relative_to(DOCS)}-{number}")


def _commands() -> Iterator[Any]:
    for param in _blocks("bash"):
        for line in str(param.values[0]).splitlines():
            for words in re.findall(r"\blakepass [^)&|]*", line.partition(" #")[0]):
                if not re.search(r"'lakepass|-t lakepass|install", line):
                    yield pytest.param(words.rstrip("\"' "), id=f"{param.id}: {words[:40]}")


@pytest.mark.parametrize("command", list(_commands()))
def test_commands_are_understood(command: str) -> None:
    """Every command of a page parses: the command exists, and so do its options and arguments."""
    words = shlex.split(command)[1:]
    found: Any = typer.main.get_command(app)  # typer carries a click of its own
    context: Any = None
    while hasattr(found, "resolve_command"):
        context = found.make_context(found.name, list(words), parent=context)
        name, found, words = found.resolve_command(context, words)
        assert found is not None, f"no command {name}"

    found.make_context(found.name, list(words), parent=context)


@pytest.mark.parametrize("text", list(_blocks("yaml")))
def test_configuration_samples_are_valid(text: str) -> None:
    content = yaml.safe_load(text)

    assert Settings(**content).storage


@pytest.mark.parametrize("text", list(_blocks("python")))
def test_python_samples_name_what_exists(text: str) -> None:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lakepass"):
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"


@pytest.mark.parametrize("text", list(_blocks("hcl")))
def test_module_samples_name_variables_that_exist(text: str) -> None:
    source = re.search(r'source\s+= "…/terraform/([\w/-]+)"', text)
    assert source is not None
    known = set(
        re.findall(r'^variable "(\w+)"', (MODULES / source[1] / "variables.tf").read_text(), re.MULTILINE)
    )
    required = {
        name
        for name, body in re.findall(
            r'^variable "(\w+)" \{\n(.*?)^\}',
            (MODULES / source[1] / "variables.tf").read_text(),
            re.MULTILINE | re.DOTALL,
        )
        if "\n  default " not in f"\n{body}"
    }
    given = set(re.findall(r"^  (\w+)\s+= ", text, re.MULTILINE)) - {"source"}

    assert given <= known
    assert required <= given


@pytest.mark.parametrize("page", ["aws", "azure", "gcp"])
def test_the_example_is_told_all_it_asks_for(page: str) -> None:
    """What its variables need and the page's `terraform.tfvars` does not give is a secret, exported there."""
    blocks = [
        text
        for _, language, text in _BLOCK.findall((DOCS / "deploy" / f"{page}.md").read_text())
        if language == "terraform"
    ]
    given = {name for text in blocks for name in re.findall(r"^(\w+)\s+= ", text, re.MULTILINE)}
    exported = set(re.findall(r"TF_VAR_(\w+)=", (DOCS / "deploy" / "aws.md").read_text()))
    variables = re.findall(
        r'^variable "(\w+)" \{\n(.*?)^\}',
        (MODULES / page / "fullstack" / "variables.tf").read_text(),
        re.MULTILINE | re.DOTALL,
    )

    assert given <= {name for name, _ in variables}
    assert {name for name, body in variables if "\n  default " not in f"\n{body}"} == given | exported


def test_admin_requests_do_what_the_page_says() -> None:
    """The lines of the page, from an empty catalog to an activation link."""
    page = (DOCS / "deploy" / "index.md").read_text()
    statuses, answers = [], []

    with running_broker() as broker, broker.admin() as client:
        for line in re.findall(r"^admin .*", page, re.MULTILINE):
            words = shlex.split(line)
            body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
            if body and "location" in body:
                body["check"] = False  # there is no such bucket here
            address = next(word for word in words if word.startswith("https://share.example.com/admin/"))
            answer = client.request(
                words[words.index("-X") + 1] if "-X" in words else "GET",
                address.removeprefix("https://share.example.com/admin"),
                json=body,
            )
            statuses.append(answer.status_code)
            answers.append(answer.text)

    assert statuses == [201, 201, 201, 204, 201, 200], answers
    assert "/activate/" in json.loads(answers[4])["url"]


def test_changelog_tells_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$",
        (ROOT / "CHANGELOG.md").read_text(),
        re.MULTILINE,
    )


def test_every_setting_is_on_the_configuration_page() -> None:
    page = (DOCS / "deploy" / "configuration.md").read_text()

    for name in dir(config):
        section = getattr(config, name)
        if (
            isinstance(section, type)
            and issubclass(section, BaseModel)
            and section.__module__ == config.__name__
        ):
            for key in section.model_fields:
                assert re.search(rf"\b{key}\b", page), f"{name}.{key} is not described"


def test_every_supported_feature_is_on_the_conformance_page() -> None:
    page = (DOCS / "conformance.md").read_text()

    for feature in FEATURES.values():
        if feature.supported and not feature.name.endswith("-preview"):
            row = f"| `{feature.name}` | {feature.asks} |"
            assert row in page or ("binds writers" in feature.asks and f"`{feature.name}`" in page), row


def test_addresses_are_those_of_the_server(tmp_path: Path) -> None:
    paths = create_app(Settings(database=f"sqlite:///{tmp_path / 'catalog.db'}")).openapi()["paths"]
    served = {path.partition("{")[0].rstrip("/") for path in paths} | set(paths) | {"/openapi.json", "/docs"}

    for page in PAGES:
        for named in re.findall(
            r"`(/(?:health|metrics|openapi|docs|admin|activate)[\w./]*)`", page.read_text()
        ):
            assert named in served or named == "/admin", f"{page.name} names {named}"


@pytest.mark.slow
def test_site_builds_with_every_link_right(tmp_path: Path) -> None:
    build = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        [sys.executable, "-m", *build],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        fetched = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?://[^"]+)"', page.read_text())
        assert fetched == [], f"{page.name} fetches from elsewhere"
