"""How the provider's commands print: a table for people, JSON for scripts; questions before anything is
lost."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
IfAbsentOption = Annotated[bool, typer.Option("--if-absent", help="Do nothing when it is there already.")]


def print_items(
    items: Sequence[dict[str, Any]], columns: Sequence[tuple[str, str]], *, as_json: bool
) -> None:
    """A list of things; `columns` are headings and the fields below them."""
    if as_json:
        print_json(list(items))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading, _ in columns:
        table.add_column(heading, overflow="fold")
    for item in items:
        table.add_row(*(_shown(field, item.get(field)) for _, field in columns))
    Console(highlight=False).print(table if items else "[dim]none[/dim]")


def print_json(content: Any) -> None:
    """JSON on standard output."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def done(message: str) -> None:
    """Say what was done, on standard error, so that a script's output stays clean."""
    typer.secho(message, fg=typer.colors.GREEN, err=True)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is lost; without a terminal to ask at, `--yes` is needed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"{question} Say --yes to do it without being asked.")
    typer.confirm(question, abort=True)


def moment(milliseconds: int | None) -> str:
    """A time for people."""
    if milliseconds is None:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _shown(field: str, value: Any) -> str:
    from rich.markup import escape

    if field.endswith("At"):
        return moment(value)
    if isinstance(value, list):
        return escape(", ".join(str(each) for each in value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else escape(str(value))
