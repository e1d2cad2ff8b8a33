"""Fixtures every folder of tests may ask for: the stores of `tests/clouds`, the public tables, the toolchain.

Each store is started at most once per run, whichever worker asks first, and ends with the run. Their modules
are imported when asked for: the clouds' SDKs take seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import toolchain
from tests.clouds.run import OwnedRun, Run, StoreT, Unavailable
from tests.skip_policy import SkipPolicy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.clouds.azurite import Azurite
    from tests.clouds.gcs import Gcs
    from tests.clouds.ministack import Ministack
    from tests.clouds.postgres import Postgres
    from tests.clouds.seaweedfs import SeaweedFS

ROOT = Path(__file__).resolve().parents[1]
_RUN = pytest.StashKey[Run]()


def pytest_configure(config: pytest.Config) -> None:
    """The process started by hand owns the run; a worker is told where it is."""
    workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
    if workerinput is None:
        config.stash[_RUN] = OwnedRun()
        config.pluginmanager.register(SkipPolicy.of_this_run())
    else:
        config.stash[_RUN] = Run(Path(workerinput["lakepass_run"]))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called by xdist in the controller for each worker."""
    node.workerinput["lakepass_run"] = str(node.config.stash[_RUN].folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the run started."""
    run = config.stash.get(_RUN, None)
    if isinstance(run, OwnedRun):
        run.end()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they ask for, and keep those that need Spark on one worker: one session per run."""
    for item in items:
        names: tuple[str, ...] = getattr(item, "fixturenames", ())
        if "spark" in names:
            item.add_marker("spark")
        if "azurite" in names:
            item.add_marker("node")
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


def _store(request: pytest.FixtureRequest, name: str, start: Callable[[Run], StoreT]) -> StoreT:
    try:
        return request.config.stash[_RUN].once(name, start)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def ministack(request: pytest.FixtureRequest) -> Ministack:
    """S3 + STS + IAM that enforce session policies."""
    from tests.clouds.ministack import start

    return _store(request, "ministack", start)


@pytest.fixture(scope="session")
def seaweedfs(request: pytest.FixtureRequest) -> SeaweedFS:
    """A second, independent S3 + STS that enforces session policies; the one the demo runs on."""
    from tests.clouds.seaweedfs import start

    return _store(request, "seaweedfs", start)


@pytest.fixture(scope="session")
def azurite(request: pytest.FixtureRequest) -> Azurite:
    """An Azure storage account with directory SAS, Data Lake shapes and a managed identity."""
    from tests.clouds.azurite import start

    return _store(request, "azurite", start)


@pytest.fixture(scope="session")
def gcs(request: pytest.FixtureRequest) -> Gcs:
    """Cloud Storage with service accounts, downscoped tokens and signed URLs."""
    from tests.clouds.gcs import start

    return _store(request, "gcs", start)


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Postgres:
    """A PostgreSQL server; `create_database()` gives a test a database of its own."""
    from tests.clouds.postgres import start

    return _store(request, "postgres", start)


@pytest.fixture(scope="session")
def shared_tables() -> Path:
    """The folder of public Delta tables that lies beside the repository."""
    folder = ROOT.parent / "shared" / "tables"
    if not folder.is_dir():
        pytest.skip("the public tables (../shared/tables) are not beside this repository")
    return folder


@pytest.fixture(scope="session")
def java_home() -> Path:
    """A Java that Spark runs on, also put into this process's environment."""
    try:
        home = toolchain.java_home()
    except Unavailable as reason:
        pytest.skip(str(reason))
    os.environ["JAVA_HOME"] = str(home)
    return home


@pytest.fixture(scope="session")
def spark(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The run's one SparkSession: Delta and the connectors of all three clouds, on two local threads."""
    from lakepass.spark_conf import lakepass_session

    folder = tmp_path_factory.mktemp("spark")
    session = lakepass_session(
        "lakepass tests",
        master="local[2]",
        clouds=("aws", "azure", "gcp"),
        conf={
            "spark.driver.memory": "2g",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        },
    )
    yield session
    session.stop()
