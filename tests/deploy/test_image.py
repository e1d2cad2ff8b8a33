"""The image: built as the Containerfile says, run as another user on a read-only root, asked, stopped."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from lakepass.cli.demo.keeper import free_port
from tests.clouds.postgres import Postgres
from tests.clouds.run import Unavailable
from tests.clouds.tools import ROOT, TOOLS
from tests.deploy.containerfile import parse
from tests.deploy.image import Root, build

# One worker: the image is built once.
pytestmark = pytest.mark.xdist_group("image")

STAGES = parse(ROOT / "Containerfile")
FINAL = STAGES[-1]
USER = FINAL.last("USER").rest
TOKEN = "local-admin-token"


def test_is_versioned_and_unprivileged() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    user, _, group = USER.partition(":")

    assert FINAL.last("LABEL").pairs["org.opencontainers.image.version"] == version
    assert user.isdecimal() and group.isdecimal() and int(user) > 0 and int(group) > 0
    assert FINAL.last("STOPSIGNAL").rest == "SIGTERM"
    assert FINAL.last("ENTRYPOINT").words + FINAL.last("CMD").words == ["lakepass", "serve"]


def test_base_is_pinned_to_the_python_the_suite_runs_on() -> None:
    for stage in STAGES:
        name, _, version = stage.base.partition(":")
        assert name == "python"
        assert version.split("-")[0].count(".") == 2, "a patch release, not a moving tag"
        assert version.startswith("3.11.")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Root:
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the image has Python 3.11, this is another")
    try:
        return build(STAGES, ROOT, tmp_path_factory.mktemp("image"), TOOLS / "pip-cache")
    except Unavailable as reason:
        pytest.skip(str(reason))


@contextmanager
def _served(image: Root, environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], str, Root]]:
    port = free_port()
    inside = Root(
        image.folder,
        {**image.environment, "LAKEPASS_SERVER__PORT": str(port), **environment},
        image.directory,
    )
    command = inside.command(
        [*FINAL.last("ENTRYPOINT").words, *FINAL.last("CMD").words], user=USER, read_only=True
    )
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process, f"http://127.0.0.1:{port}", inside
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _until_ready(process: subprocess.Popen[str], url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        try:
            if httpx.get(f"{url}/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail("the server was not ready within a minute")


@pytest.mark.slow
def test_serves_as_another_user_on_a_read_only_root(image: Root, postgres: Postgres) -> None:
    settings = {
        "LAKEPASS_DATABASE": postgres.create_database(),
        "LAKEPASS_ADMIN__TOKEN_SHA256": hashlib.sha256(TOKEN.encode()).hexdigest(),
        "LAKEPASS_STORAGE": json.dumps(
            [{"location": "gs://lake/", "gcp": {"service_account": "reader@example"}}]
        ),
    }
    with _served(image, settings) as (process, url, inside):
        _until_ready(process, url)

        assert Path(f"/proc/{process.pid}").stat().st_uid == int(USER.partition(":")[0])
        health = FINAL.last("HEALTHCHECK").rest.removeprefix("CMD ")
        checked = inside.command(json.loads(health), user=USER, read_only=True)
        assert subprocess.run(checked, check=False).returncode == 0
        for place in ("/tmp/file", "/opt/lakepass/file", "/usr/local/file"):
            written = inside.command(["/bin/sh", "-c", f": > {place}"], read_only=True)
            refused = subprocess.run(written, capture_output=True, text=True, check=False)
            assert "Read-only file system" in refused.stderr, place

        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


@pytest.mark.slow
def test_health_check_fails_where_nothing_serves(image: Root) -> None:
    health = FINAL.last("HEALTHCHECK").rest.removeprefix("CMD ")
    inside = Root(image.folder, {**image.environment, "LAKEPASS_SERVER__PORT": str(free_port())})

    done = subprocess.run(inside.command(json.loads(health), user=USER), capture_output=True, check=False)

    assert done.returncode != 0


@pytest.mark.slow
def test_holds_no_build_tools(image: Root) -> None:
    installed = image.tree / "opt" / "lakepass"
    program = (
        "import importlib.util as u; print([m for m in ('pip', 'setuptools', 'ensurepip') if u.find_spec(m)])"
    )

    found = subprocess.run(
        image.command([str(Path("/opt/lakepass/bin/python")), "-c", program]),
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert found.stdout.strip() == "[]"
    assert not list(installed.glob("bin/pip*"))
