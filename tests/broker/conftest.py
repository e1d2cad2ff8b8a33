"""Fixtures of the broker's tests: a broker on each kind of database, and one with tables in S3."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.lake import Lake, running_lake
from tests.broker.server import RunningBroker, running_broker
from tests.clouds.ministack import Ministack


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def catalog_broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    """A broker with an empty catalog, once on SQLite and once on PostgreSQL."""
    database = None
    if request.param == "postgresql":
        database = request.getfixturevalue("postgres").create_database()
    with running_broker(database=database) as broker:
        yield broker


@pytest.fixture(scope="session")
def lake(ministack: Ministack) -> Iterator[Lake]:
    """A broker that shares fixture tables in S3, and a recipient who reads them."""
    with running_lake(ministack) as lake:
        yield lake
