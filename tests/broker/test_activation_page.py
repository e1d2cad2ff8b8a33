"""The page of an activation link in a real browser: it gives the file once, and says so afterwards."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from tests import toolchain
from tests.broker.server import running_broker
from tests.clouds.run import Unavailable

BROWSER = Path(__file__).parents[1] / "browser"


@pytest.mark.node
@pytest.mark.slow
def test_a_recipient_presses_the_button(tmp_path: Path) -> None:
    try:
        program, browser = toolchain.node().node, toolchain.npm_package("browser", BROWSER)
    except Unavailable as error:
        pytest.skip(str(error))
    with running_broker() as broker:
        broker.catalog.recipients.add("presser")
        made = broker.catalog.recipients.add_activation("presser", timedelta(hours=1))
        link = f"{broker.origin}/activate/{made.code}"
        pressed = subprocess.run(
            [program, str(browser / "press.mjs"), link, str(tmp_path)],
            # Where Chromium is unpacked to, once.
            env={**os.environ, "TMPDIR": str(browser)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert pressed.returncode == 0, pressed.stderr
        seen = json.loads(pressed.stdout)
        with broker.client(json.loads((tmp_path / seen["file"]).read_text())) as client:
            assert client.get("/shares").status_code == 200
    assert seen["title"] == "Data shared with you"
    assert "It can be downloaded once." in seen["text"]
    assert seen["file"] == "config.share"
    assert seen["complaintsAtFirst"] == 0, seen["complaints"]
    assert "No longer valid" in seen["again"]
    assert (tmp_path / "page.png").stat().st_size > 0
