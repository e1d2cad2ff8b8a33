"""What every provider command starts with: the `broker` extra, the configuration file, the catalog."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakepass.reader.errors import MissingExtraError

if TYPE_CHECKING:
    from lakepass.broker.catalog.store import Catalog
    from lakepass.broker.config import Settings

_DEFAULT_FILE = Path("lakepass.yaml")

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="The configuration file; LAKEPASS_CONFIG, or lakepass.yaml here, when left out.",
    ),
]


def need_broker() -> None:
    """Raise, naming the extra, where the broker's dependencies are not installed."""
    for module in ("fastapi", "uvicorn", "sqlalchemy", "alembic", "pydantic_settings", "yaml"):
        if find_spec(module) is None:
            raise MissingExtraError("broker", "Running and administering a sharing server")


def load_settings(config: Path | None) -> Settings:
    """The settings of the file that was named, or the one that stands in for it, and of the environment."""
    need_broker()
    from lakepass.broker.config import Settings

    if config is None and os.environ.get("LAKEPASS_CONFIG"):
        config = Path(os.environ["LAKEPASS_CONFIG"])
    if config is None and _DEFAULT_FILE.is_file():
        config = _DEFAULT_FILE
    return Settings.load(config)


def open_catalog(settings: Settings) -> Catalog:
    """The catalog that the settings name, brought up to date."""
    from lakepass.broker.catalog.store import Catalog

    return Catalog(settings)
