"""Every module is formatted, has the structure its provider asks for, and does what its own tests say.

Terraform core itself checks them against the recorded schemas and the values known of some arguments. What
that cannot see (arguments that exclude each other, values not known here) is left to the real providers; for
AWS it runs here where the machine has it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.clouds.run import Unavailable
from tests.deploy.schemas.slice import VERSIONS, slice_path, used_types
from tests.deploy.terraform import MODULES, Terraform, copied, real_mirror

pytestmark = pytest.mark.terraform

CLOUDS = ("aws", "azure", "gcp")
ALL = [f"{cloud}/{name}" for cloud in CLOUDS for name in ("data-access", "broker", "fullstack")]
# Needs the real provider: its policy documents are rendered by it.
REAL = "tests/policies.tftest.hcl"


def _has_real_aws() -> bool:
    """Whether the real provider runs AWS's tests, which need not run with its recorded schema then."""
    try:
        return bool(real_mirror())
    except Unavailable:
        return False


@pytest.mark.parametrize("module", ALL)
def test_has_the_structure_its_provider_asks_for(module: str, terraform: Terraform, workspace: Path) -> None:
    folder = copied(module, workspace)
    terraform.init(folder)

    report = json.loads(terraform.run(folder, "validate", "-json").output)

    assert report["valid"], report["diagnostics"]
    assert report["warning_count"] == 0, report["diagnostics"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", [module for module in ALL if not (_has_real_aws() and module[:4] == "aws/")]
)
def test_does_what_its_own_tests_say(module: str, terraform: Terraform, workspace: Path) -> None:
    folder = copied(module, workspace)
    terraform.init(folder)
    files = sorted(f"tests/{file.name}" for file in (folder / "tests").glob("*.tftest.hcl"))
    mocked = [f"-filter={file}" for file in files if file != REAL]

    output = terraform.must(folder, "test", "-no-color", *mocked)

    assert re.search(r"Success! [1-9]\d* passed, 0 failed\.", output), output


@pytest.mark.slow
@pytest.mark.parametrize("module", [module for module in ALL if module.startswith("aws/")])
def test_passes_with_the_real_aws_provider(module: str, real_terraform: Terraform, tmp_path: Path) -> None:
    """The mocked tests once more, whose every value it checks, and the policies statement by statement."""
    folder = copied(module, tmp_path)
    real_terraform.init(folder)

    report = json.loads(real_terraform.run(folder, "validate", "-json").output)
    output = real_terraform.must(folder, "test", "-no-color")

    assert report["valid"], report["diagnostics"]
    assert report["warning_count"] == 0, report["diagnostics"]
    assert re.search(r"Success! [1-9]\d* passed, 0 failed\.", output), output
    assert (folder / REAL).exists() == (f"{REAL}... pass" in output)


def test_is_formatted(terraform: Terraform) -> None:
    assert terraform.must(MODULES, "fmt", "-check", "-recursive", "-no-color") == ""


def test_every_variable_and_output_is_described() -> None:
    for file in sorted(MODULES.rglob("*.tf")):
        for kind, name, body in re.findall(
            r'^(variable|output) "(\w+)" \{\n(.*?)^\}', file.read_text(), re.MULTILINE | re.DOTALL
        ):
            assert re.search(r"^  description = (\"\S|<<-)", body, re.MULTILINE), f"{kind} {name} in {file}"


def test_wildcards_give_their_reason() -> None:
    """An action or resource that is a bare wildcard has a comment on its line."""
    for file in sorted(MODULES.rglob("*.tf")):
        for line in file.read_text().splitlines():
            if re.search(r'^\s*(actions|resources|identifiers)\s*=\s*\[.*"(\*|\w+:\*)".*\]', line):
                assert "#" in line, f"{file.name}: {line.strip()}"


@pytest.mark.parametrize("provider", sorted(VERSIONS))
def test_slices_hold_the_types_in_use(provider: str) -> None:
    recorded = json.loads(slice_path(provider).read_text())

    for kind, names in used_types(provider).items():
        assert set(recorded[kind]) == names, "run python -m tests.deploy.schemas.slice"
