"""The examples in the reader's docstrings run and say the truth."""

from __future__ import annotations

import doctest
import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import lakepass.reader
from tests.clouds.ministack import Ministack
from tests.reader.sharing.shared_s3 import sharing_on_s3
from tests.tables.fixtures import fixture

MODULES = ["lakepass.reader"] + [
    module.name for module in pkgutil.walk_packages(lakepass.reader.__path__, "lakepass.reader.")
]

SHARED = ("lakepass.reader.sharing.loading", "lakepass.reader.sharing.client")
"""Their examples need a server."""


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables that examples call `orders` and `feed`."""
    (tmp_path / "orders").symlink_to(fixture("partitioned").path)
    (tmp_path / "feed").symlink_to(fixture("change_feed").path)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def profile(orders: None, ministack: Ministack) -> Iterator[None]:
    """The profile that examples call `me.share`, with both tables shared as `sales.eu.…`."""
    del orders
    with sharing_on_s3(ministack) as shared:
        broker, bucket = shared.broker, shared.bucket
        for name in ("orders", "feed"):
            ministack.seed(Path(name).resolve(), f"s3://{bucket}/{name}")
            broker.share_table(f"sales.eu.{name}", f"s3://{bucket}/{name}", modes=["url", "dir"])
        file = Path("me.share")
        file.touch(mode=0o600)
        file.write_text(json.dumps(broker.recipient("me", shares=["sales"])))
        yield


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("name", [name for name in MODULES if name not in SHARED])
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.usefixtures("profile")
def test_examples_of_shared_tables() -> None:
    for name in SHARED:
        failed, tried = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
        assert tried
        assert failed == 0


def test_every_public_name_has_an_example() -> None:
    for name in lakepass.reader.__all__:
        assert ">>>" in (getattr(lakepass.reader, name).__doc__ or ""), name
