"""Every block of README.md and every script in examples/ runs, against the demo's store and broker."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import yaml
from rich.console import Console

from lakepass.broker.config import Settings
from lakepass.cli.demo.acts import Show, provide
from lakepass.cli.demo.stage import Stage, set_stage
from tests import documents
from tests.clouds.tools import ROOT

README = ROOT / "README.md"
SCRIPTS = sorted(file for file in (ROOT / "examples").iterdir() if file.suffix in (".py", ".sh"))
EXAMPLES = [file for file in SCRIPTS if not file.name.startswith("spark_")]
LONGEST_LIST = 6
"""So many blocks of the README may go without being run."""


@contextmanager
def _provided() -> Iterator[Stage]:
    """The demo's stage, with its tables shared."""
    with set_stage() as stage:
        show = Show(Console(quiet=True))
        provide(show, stage)
        assert not show.wrong
        yield stage


@contextmanager
def _oauth_server(stage: Stage) -> Iterator[dict[str, str]]:
    """A token endpoint that gives the recipient's own token to a client that proves itself; its
    environment.
    """
    profile = json.loads(stage.profile.read_text())
    client_secret = secrets.token_hex(8)

    class TokenEndpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            known = form.get("client_secret") == client_secret or "Authorization" in self.headers
            good = form.get("grant_type") == "client_credentials" and known
            answer = {"access_token": profile["bearerToken"], "token_type": "Bearer", "expires_in": 600}
            content = json.dumps(answer if good else {"error": "invalid_client"}).encode()
            self.send_response(200 if good else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {
            "SHARING_ENDPOINT": profile["endpoint"],
            "OAUTH_TOKEN_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}/token",
            "OAUTH_CLIENT_ID": "local-client",
            "OAUTH_CLIENT_SECRET": client_secret,
        }
        server.shutdown()


def _environment(stage: Stage, folder: Path) -> dict[str, str]:
    """What a reader of the README has: the project's programs, a profile, and a broker to administer."""
    shutil.copy(stage.profile, folder / "profile.share")
    kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LAKEPASS_PROFILE": str(folder / "profile.share"),
        "LAKEPASS_CONFIG": str(stage.config),
        "NO_COLOR": "1",
    }


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with _provided() as stage:
        yield stage


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("java_home")
def test_every_block_runs(stage: Stage, tmp_path: Path) -> None:
    documents.run(README, tmp_path, _environment(stage, tmp_path), seconds=400)


def test_few_blocks_are_not_run() -> None:
    left = [block for block in documents.blocks(README.read_text()) if block.kind and block.not_run]
    assert len(left) <= LONGEST_LIST, [block.not_run for block in left]


def test_configurations_are_valid() -> None:
    written = [block.code for block in documents.blocks(README.read_text()) if block.language == "yaml"]
    for text in written:
        Settings.model_validate(yaml.safe_load(text))


def test_every_script_for_spark_is_run_by_a_test_of_its_own() -> None:
    """By itself, or by another script that is."""
    runners = (ROOT / "tests" / "spark_conf" / "test_scripts.py", *SCRIPTS)
    for script in SCRIPTS:
        run_by = [file for file in runners if file != script and script.name in file.read_text()]
        assert script in EXAMPLES or run_by, script.name


@pytest.mark.slow
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda file: file.name)
def test_an_example_runs(script: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    shell = ["bash", "-euo", "pipefail"]
    if "rotate" in script.name:
        # It ends the token that the others use: a stage of its own.
        with _provided() as own:
            _run_script(script, [*shell, "-c", _job(script.with_suffix(".yml"), tmp_path)], own, tmp_path)
    else:
        command = [*(shell if script.suffix == ".sh" else [sys.executable]), str(script)]
        _run_script(script, command, request.getfixturevalue("stage"), tmp_path)


def _job(workflow: Path, folder: Path) -> str:
    """What a CI job runs, in a folder that has what it checks out; lakepass is installed already."""
    (folder / "examples").symlink_to(workflow.parent)
    (job,) = yaml.safe_load(workflow.read_text())["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert any(workflow.with_suffix(".sh").name in command for command in commands)
    return "\n".join(command for command in commands if not command.startswith("pip install"))


def _run_script(script: Path, command: list[str], stage: Stage, folder: Path) -> None:
    with _oauth_server(stage) as oauth:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**_environment(stage, folder), **oauth},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, f"{script.name}:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    assert (done.stdout + done.stderr).strip(), f"{script.name} shows nothing."
