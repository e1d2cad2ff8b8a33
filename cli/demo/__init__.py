"""`lakepass demo`: the whole product on this machine, on embedded parts, with no cloud account."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Annotated

import typer

from lakepass.reader.errors import MissingExtraError

_FAREWELL = """
Left running until Ctrl-C:
  sharing server  {stage.origin}/delta-sharing
  its API page    {stage.origin}/docs
  object store    {stage.store.endpoint}
  profile         {stage.profile}
  configuration   {stage.config}

Try:  lakepass ls --profile {stage.profile}
      lakepass head --profile {stage.profile} sales.eu.orders"""


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    app.command(rich_help_panel="Start here")(demo)


def demo(
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave it running afterwards, to try things by hand; Ctrl-C ends it."),
    ] = False,
) -> None:
    """Show the whole of lakepass on this machine: an S3 store, a broker, a recipient, and attacks that fail.

    Everything runs on free loopback ports in a temporary folder and is gone afterwards. Exits with 1 if any
    answer is not what it should be.
    """
    if any(find_spec(module) is None for module in ("fastapi", "sqlalchemy", "yaml", "boto3", "deltalake")):
        raise MissingExtraError("demo", "The demo, which runs a broker and a store on this machine,")
    from rich.console import Console

    from lakepass.cli.demo.acts import perform
    from lakepass.cli.demo.stage import set_stage

    console = Console(soft_wrap=True)
    began = time.monotonic()
    console.print("[bold]lakepass demo[/bold]: starting an object store and a broker on this machine …")
    with set_stage() as stage:
        wrong = perform(console, stage)
        elapsed = time.monotonic() - began
        if wrong:
            console.print(f"\n[bold red]{len(wrong)} of the answers were wrong.[/bold red]")
            for text in wrong:
                console.print(f"  {text}", highlight=False)
            raise typer.Exit(1)
        console.print(f"\n[bold green]Everything was as it should be[/bold green], in {elapsed:.0f} seconds.")
        if keep:
            console.print(_FAREWELL.format(stage=stage), highlight=False)
            _wait_for_interrupt()


def _wait_for_interrupt() -> None:
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        pass
