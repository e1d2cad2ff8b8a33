"""`lakepass import`: shares of a reference server's YAML file, taken into the catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakepass.cli.broker_setup import ConfigOption, load_settings, open_catalog
from lakepass.cli.catalog_output import done


def _import(
    file: Annotated[Path, typer.Argument(help="A configuration file of the Delta Sharing reference server.")],
    config: ConfigOption = None,
    recipient: Annotated[
        str | None,
        typer.Option(help="Also make this recipient, with the file's token and a grant on each share."),
    ] = None,
) -> None:
    """Take the shares of a reference server's file into the catalog, beside what is there already."""
    settings = load_settings(config)
    from lakepass.broker.catalog.importing import import_shares
    from lakepass.broker.config import Settings

    source = Settings.load(file)
    outcome = import_shares(open_catalog(settings), source, recipient)
    done(
        f"{outcome.tables} tables in {outcome.shares} shares imported; {outcome.present} were there already."
    )
    missing = sorted(
        {str(entry.location) for entry in source.storage if settings.storage_for(entry.location) is None}
    )
    for location in missing:
        typer.secho(f"No storage is configured for {location}: add it before serving.", fg="yellow", err=True)


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    app.command("import", rich_help_panel="Providers")(_import)
