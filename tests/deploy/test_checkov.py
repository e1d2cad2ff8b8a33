"""checkov finds nothing in the modules but what an exception in place explains."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.clouds.run import Unavailable
from tests.clouds.tools import python_environment
from tests.deploy.terraform import MODULES

pytestmark = [pytest.mark.terraform, pytest.mark.slow]


def test_modules_have_no_finding_that_is_not_explained(tmp_path: Path) -> None:
    try:
        constraints = Path(__file__).with_name("checkov-constraints.txt")
        python = python_environment("checkov", "checkov==3.3.30", constraints)
    except Unavailable as reason:
        pytest.skip(str(reason))

    done = subprocess.run(
        [str(python.with_name("checkov")), "--directory", str(MODULES), "--framework", "terraform",
         "--output", "json", "--quiet", "--download-external-modules", "false"],
        cwd=tmp_path, env=os.environ | {"HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    report = json.loads(done.stdout)

    found = [f"{check['check_id']} {check['resource']}" for check in report["results"]["failed_checks"]]
    assert found == []
    assert report["summary"]["passed"] > 150
    assert report["summary"]["parsing_errors"] == 0


def test_every_exception_gives_a_reason() -> None:
    for file in sorted(MODULES.rglob("*.tf")):
        for check, reason in re.findall(r"checkov:skip=(\w+)(.*)", file.read_text()):
            assert re.match(r": \w.{3,}", reason), f"{file.name}: {check}"
