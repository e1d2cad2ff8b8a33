"""`lakepass verify`: prove that a shared table opens for its recipients, and that nothing else does."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from lakepass.cli.broker_setup import ConfigOption, load_settings, open_catalog

if TYPE_CHECKING:
    from rich.console import Console

    from lakepass.broker.catalog.store import Catalog
    from lakepass.broker.vending.verification import Subject, TableReport

_COLOURS = {
    "ok": "green",
    "leak": "bold red",
    "unreadable": "bold red",
    "accepted": "yellow",
    "unsure": "yellow",
}


def _verify(
    table: Annotated[str | None, typer.Argument(help="share.schema.table", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every table that is shared by directory.")] = False,
    wait: Annotated[
        int,
        typer.Option(help="Seconds to wait for a credential's end, to see that the store refuses it then."),
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    config: ConfigOption = None,
) -> None:
    """Vend a credential as a recipient gets it, and attack it at the real store.

    Lists and reads what must work; tries siblings, the parent, the bucket's root, other tables, writes,
    deletes and copies. Nothing that exists is touched. Exits with 1 when something leaks or a recipient
    could not read a table.
    """
    if (table is None) is not every:
        raise typer.BadParameter("Name a table (share.schema.table), or say --all.")
    settings = load_settings(config)
    from rich.console import Console

    from lakepass.broker.audit import AuditLog
    from lakepass.broker.vending import Vending
    from lakepass.broker.vending.verification import verify_table

    catalog = open_catalog(settings)
    audit, vending = AuditLog(catalog.engine, settings.audit.export), Vending(settings.credentials.lifetime)
    console = Console(highlight=False)
    reports: list[TableReport] = []
    try:
        known = _shared_by_directory(catalog)
        wanted = _named(catalog, known, table) if table is not None else known
        for subject in wanted:
            others = [other for other in known if other.root != subject.root]
            report = verify_table(settings, vending, audit, subject, others, wait=timedelta(seconds=wait))
            reports.append(report)
            if not as_json:
                _show(console, report)
    finally:
        vending.close()
        audit.close()
        catalog.close()
    unsound = [report.name for report in reports if not report.sound]
    if as_json:
        typer.echo(json.dumps([_told(report) for report in reports], indent=2, ensure_ascii=False))
    elif not reports:
        console.print("No table is shared by directory, so there is nothing to verify.")
    elif unsound:
        console.print(
            f"[bold red]{len(unsound)} of {len(reports)} tables did not pass:[/] {', '.join(unsound)}"
        )
    else:
        console.print(f"[green]{len(reports)} {'table' if len(reports) == 1 else 'tables'} verified.[/]")
    if unsound:
        raise typer.Exit(1)


def _shared_by_directory(catalog: Catalog) -> list[Subject]:
    from lakepass.broker.vending.verification import Subject
    from lakepass.reader.location import Location

    return [
        Subject(
            f"{share.name}.{schema.name}.{row.name}",
            Location.parse(row.location),
            tuple(Location.parse(text) for text in row.auxiliary_locations),
        )
        for share, schema, row in catalog.shares.tables()
        if "dir" in row.access_modes
    ]


def _named(catalog: Catalog, known: list[Subject], name: str) -> list[Subject]:
    from lakepass.broker.catalog.names import name_key
    from lakepass.broker.catalog.shares import split_name
    from lakepass.broker.errors import UnsupportedOperation

    found = [subject for subject in known if name_key(subject.name) == name_key(name)]
    if not found:
        share, schema, table = split_name(name, 3)
        row = catalog.shares.table(share, schema, table)  # raises where there is none
        raise UnsupportedOperation(
            f"The table '{name}' is not shared by directory, so no credential is vended for it. Its "
            f"access modes: {', '.join(row.access_modes)}."
        )
    return found


def _show(console: Console, report: TableReport) -> None:
    from rich.markup import escape
    from rich.table import Table

    verdict = "[green]sound[/]" if report.sound else "[bold red]NOT SOUND[/]"
    shown = Table(title=f"{escape(report.name)}: {verdict}", title_justify="left", expand=False)
    for heading in ("attempt", "must be", "was", "verdict"):
        shown.add_column(heading, overflow="fold")
    location = None
    for place, check in report.checks:
        if place != location:
            location = place
            shown.add_row(f"[bold]{escape(place)}[/]", "", "", "")
        colour = _COLOURS[check.verdict]
        shown.add_row(escape(check.what), check.expected, escape(check.got), f"[{colour}]{check.verdict}[/]")
    console.print(shown)


def _told(report: TableReport) -> dict[str, object]:
    checks = [{"location": place, **asdict(check)} for place, check in report.checks]
    return {"table": report.name, "sound": report.sound, "checks": checks}


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    app.command("verify", rich_help_panel="Providers")(_verify)
