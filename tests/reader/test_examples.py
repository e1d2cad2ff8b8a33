"""The examples in the reader's docstrings run and say the truth."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import lakepass.reader
from tests.tables.fixtures import fixture

MODULES = ["lakepass.reader"] + [
    module.name for module in pkgutil.walk_packages(lakepass.reader.__path__, "lakepass.reader.")
]


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables that examples call `orders` and `feed`."""
    (tmp_path / "orders").symlink_to(fixture("partitioned").path)
    (tmp_path / "feed").symlink_to(fixture("change_feed").path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0
