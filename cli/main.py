"""The `lakepass` command: one typer application put together from a module per concern.

Each module imports what it needs inside its commands, so that `lakepass --help` is quick and works with the
base install; a command that needs an extra says which.
"""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import typer

from lakepass.cli import audit, catalog, demo, recipient, serve, spark, verify
from lakepass.cli.failures import report_failure

app = typer.Typer(
    name="lakepass",
    help=(
        "Share Delta Lake tables in place, and read what is shared with you.\n\n"
        "[bold]Recipients[/bold] have a profile file: [cyan]lakepass ls --profile me.share[/cyan], then "
        "[cyan]lakepass head share.schema.table[/cyan]. LAKEPASS_PROFILE stands in for --profile.\n\n"
        "[bold]Providers[/bold] run a broker: [cyan]lakepass serve --config lakepass.yaml[/cyan], then "
        "[cyan]lakepass table add[/cyan], [cyan]lakepass recipient add[/cyan], "
        "[cyan]lakepass token issue[/cyan], and prove it with [cyan]lakepass verify --all[/cyan].\n\n"
        "New here? [cyan]lakepass demo[/cyan] shows the whole of it on this machine, with no cloud account."
    ),
    epilog=(
        "Exit codes: 0 done; 1 the table or the request is wrong; 2 the command was typed wrong; 3 refused: "
        "not there, not granted, or the token has ended; 4 the server or store cannot be reached; 5 an extra "
        "has to be installed; 130 interrupted."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lakepass {metadata.version('lakepass')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole trace of an error.")] = False,
) -> None:
    """The options of every command; what they do happens in their callbacks and in `main`."""


for _module in (recipient, serve, catalog, verify, audit, spark, demo):
    _module.register(app)


def main() -> None:
    """Run the command; an error is one line with the next step, and the trace only with `--debug`.

    `--debug` may stand anywhere: it is added to a command that has just failed.
    """
    arguments = sys.argv[1:]
    try:
        app([word for word in arguments if word != "--debug"])
    except SystemExit as end:
        # typer has an exit code of its own for a closed pipe, which is not an error here.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(report_failure(end.__context__))
        raise
    except Exception as error:
        if "--debug" in arguments:
            raise
        sys.exit(report_failure(error))


if __name__ == "__main__":
    main()
