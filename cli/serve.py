"""`lakepass serve`: run the broker. `lakepass config check`: say what is wrong with its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakepass.cli.broker_setup import ConfigOption, load_settings, need_broker


def _serve(
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on.")] = None,
) -> None:
    """Run the sharing server."""
    need_broker()
    from lakepass.broker.serving import serve

    settings = load_settings(config)
    changes = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    if changes:
        settings = settings.model_copy(update={"server": settings.server.model_copy(update=changes)})
    serve(settings)


def _check(
    config: ConfigOption = None,
    path: Annotated[Path | None, typer.Argument(help="The file; the same as --config.")] = None,
) -> None:
    """Read the configuration as the server would, and say what it means."""
    need_broker()
    from rich.console import Console

    settings = load_settings(path or config)
    console = Console(highlight=False)
    server = settings.server
    console.print(f"serves      http://{server.host}:{server.port}{server.prefix}")
    console.print(f"database    {settings.database.partition('://')[0]}")
    console.print(f"admin API   {'on, at ' + settings.admin.prefix if settings.admin else 'off'}")
    for entry in settings.storage:
        vending = entry.aws is None or entry.aws.role_arn is not None
        console.print(
            f"storage     {entry.location}  ({'url and dir' if vending else 'url only: no role_arn'})"
        )
    for share in settings.shares:
        tables = sum(len(schema.tables) for schema in share.schemas)
        console.print(f"share       {share.name}  ({tables} tables, from the file)")
    console.print("[green]The configuration is valid.[/green]")


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    app.command("serve", rich_help_panel="Providers")(_serve)
    config = typer.Typer(help="The broker's configuration.", no_args_is_help=True)
    config.command("check")(_check)
    app.add_typer(config, name="config", rich_help_panel="Providers")
