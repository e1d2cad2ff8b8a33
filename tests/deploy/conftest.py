"""Fixtures of the deployment's tests: Terraform with recorded schemas, and with the real AWS provider."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.clouds.run import Unavailable
from tests.deploy.terraform import Terraform, program, real_mirror, schema_mirror

ResultT = TypeVar("ResultT")


def _or_skip(make: Callable[[], ResultT]) -> ResultT:
    try:
        return make()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def terraform() -> Terraform:
    """Terraform whose providers know the recorded schemas and nothing else."""
    return _or_skip(lambda: Terraform(program(), schema_mirror()))


@pytest.fixture(scope="session")
def real_terraform() -> Terraform:
    """Terraform with the real AWS provider."""
    return _or_skip(lambda: Terraform(program(), real_mirror()))


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where modules are copied to: runs leave nothing in the repository."""
    return tmp_path_factory.mktemp("modules")
