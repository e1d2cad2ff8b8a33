"""What a user installs: a small base, extras that import, errors that name what is missing, and no
stowaways.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.clouds.tools import ROOT
from tests.environments import Environment, Wheel, build_wheel, declared, empty_environment, view

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

PACKAGES = ("reader", "broker", "spark_conf", "cli")
TABLE = ROOT / "tests" / "tables" / "plain" / "delta"
BASE = {
    *("pyarrow", "numpy", "obstore", "orjson", "sqlglot"),
    *(
        "httpx",
        "httpcore",
        "h11",
        "h2",
        "hpack",
        "hyperframe",
        "anyio",
        "idna",
        "certifi",
        "typing-extensions",
    ),
    *("typer", "rich", "shellingham", "markdown-it-py", "mdurl", "pygments", "annotated-doc"),
    *("pydantic", "pydantic-core", "annotated-types", "typing-inspection"),  # typer's
}
"""All that a reader's install brings. A new name here is a cost for every user: think twice."""

EVERY_MODULE = """
import importlib, pkgutil, lakepass.{package} as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if module.name.rpartition(".")[2] not in ("__main__", "env"):
        importlib.import_module(module.name)
"""
VENDOR = """
from lakepass.broker.config import StorageEntry
from lakepass.broker.vending import vendor_for
vendor_for(StorageEntry.model_validate({entry}))
"""
READ = f"from lakepass.reader import Table; table = Table({str(TABLE)!r}); "

# What each extra is for, done once: code, and what must be printed.
USES: dict[str, str] = {
    "pandas": READ + "assert len(table.to_pandas()) == table.to_arrow().num_rows",
    "polars": READ + "assert table.to_polars().height == table.to_arrow().num_rows",
    "duckdb": READ
    + "assert len(table.snapshot().scan().to_duckdb().fetchall()) == table.to_arrow().num_rows",
    "deltalake": READ + "assert table.deltalake().version() == table.snapshot().version",
    "spark": EVERY_MODULE.format(package="spark_conf"),
    "broker": EVERY_MODULE.format(package="broker") + EVERY_MODULE.format(package="cli"),
    "aws": VENDOR.format(
        entry={
            "location": "s3://lake/",
            "aws": {"role_arn": "arn:aws:iam::123456789012:role/data", "region": "us-east-1"},
        }
    ),
    "azure": VENDOR.format(entry={"location": "abfss://data@account.dfs.core.windows.net/", "azure": {}}),
    "gcp": VENDOR.format(entry={"location": "gs://lake/", "gcp": {}}),
    "demo": "import boto3, deltalake; " + EVERY_MODULE.format(package="cli.demo"),
}
WITH_BROKER = {"aws", "azure", "gcp"}
"""Extras for the broker's side of a cloud, used together with it."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def base(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """What `pip install lakepass` gives, by pip itself, in an empty environment."""
    environment = empty_environment(tmp_path_factory.mktemp("base") / "venv")
    environment.install("--constraint", str(ROOT / "constraints.txt"), str(wheel.file))
    return environment


@pytest.fixture(scope="module")
def broker_alone(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return view(wheel, {"broker"}, tmp_path_factory.mktemp("broker") / "venv")


def test_holds_every_module_and_nothing_else(wheel: Wheel) -> None:
    sources = {
        f"lakepass/{file.relative_to(ROOT).as_posix()}"
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".md"
    }
    inside = {name for name in wheel.names() if ".dist-info/" not in name}
    assert inside - {name for name in inside if name.endswith(".md")} == sources


def test_the_base_is_small(base: Environment, wheel: Wheel) -> None:
    listed = base.python(
        "from importlib.metadata import distributions; print(*(d.name for d in distributions()), sep='\\n')"
    )
    names = {name.lower().replace("_", "-") for name in listed.split()} - {"pip", "setuptools", "lakepass"}
    assert names == BASE
    assert declared(wheel, set()) == BASE


def test_the_command_runs(base: Environment) -> None:
    version = base.run("lakepass", "--version")
    assert version.returncode == 0
    assert metadata.version("lakepass") in version.stdout
    helped = base.run("lakepass", "--help")
    assert helped.returncode == 0
    assert "lakepass demo" in helped.stdout


def test_the_base_reads_a_table(base: Environment) -> None:
    assert int(base.python(READ + "print(table.to_arrow().num_rows)")) > 0
    base.python(EVERY_MODULE.format(package="reader"))


@pytest.mark.parametrize("extra", ["pandas", "polars", "duckdb", "deltalake"])
def test_a_missing_extra_is_named(base: Environment, extra: str) -> None:
    done = base.run("python", "-c", USES[extra])
    assert done.returncode != 0
    assert f"pip install 'lakepass[{extra}]'" in done.stderr


def test_spark_missing_is_named(base: Environment) -> None:
    done = base.run("python", "-c", "from lakepass.spark_conf import lakepass_session; lakepass_session()")
    assert "pip install 'lakepass[spark]'" in done.stderr


@pytest.mark.parametrize(("command", "extra"), [("serve", "broker"), ("demo", "demo")])
def test_a_command_without_its_extra_names_it(base: Environment, command: str, extra: str) -> None:
    done = base.run("lakepass", command)
    assert done.returncode != 0
    assert f"lakepass[{extra}]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("cloud", sorted(WITH_BROKER))
def test_a_broker_without_a_cloud_names_it(broker_alone: Environment, cloud: str) -> None:
    done = broker_alone.run("python", "-c", USES[cloud])
    assert done.returncode != 0
    assert f"pip install 'lakepass[{cloud}]'" in done.stderr


def test_every_extra_is_tried(wheel: Wheel) -> None:
    assert wheel.extras() - {"dev", "docs"} == set(USES)


@pytest.mark.parametrize("extra", sorted(USES))
def test_an_extra_brings_what_it_needs(wheel: Wheel, tmp_path: Path, extra: str) -> None:
    extras = {extra, "broker"} if extra in WITH_BROKER else {extra}
    view(wheel, extras, tmp_path / "venv").python(USES[extra])


def test_a_users_type_checker_sees_the_types(base: Environment, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("from lakepass.reader import Table\n\nreveal_type(Table('/data').history(limit=1))\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--python-executable",
            str(base.bin / "python"),
            "--config-file=",
            str(script),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Revealed type is" in done.stdout
    assert '"Any"' not in done.stdout
    assert "import-untyped" not in done.stdout


def test_a_strict_editable_install_maps_the_folders(tmp_path: Path) -> None:
    """For editors that follow files and not import hooks: each folder is a package below one name."""
    sources = tmp_path / "sources"
    patterns = shutil.ignore_patterns("__pycache__")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, sources / package, ignore=patterns)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    environment = empty_environment(tmp_path / "venv")
    environment.install("--no-deps", "--config-settings", "editable_mode=strict", "--editable", str(sources))
    (links,) = sources.glob("build/__editable__.lakepass-*")
    mapped = {folder.name for folder in (links / "lakepass").iterdir()}
    assert mapped == set(PACKAGES)
    assert (links / "lakepass" / "reader" / "table.py").resolve() == sources / "reader" / "table.py"
