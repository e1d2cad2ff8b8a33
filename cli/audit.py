"""`lakepass audit`: who was given which credential, and who was refused."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from lakepass.cli.broker_setup import ConfigOption, load_settings, open_catalog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from lakepass.broker.audit import VendEvent

_SPAN = re.compile(r"(\d+)\s*(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_COLOURS = {"vended": "green", "refused": "yellow", "failed": "red"}


def _audit(  # noqa: PLR0917 - typer passes them by name
    recipient: Annotated[str | None, typer.Option(help="Only this recipient.")] = None,
    table: Annotated[str | None, typer.Option(help="Only this table, share.schema.table.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Only vended, refused or failed.")] = None,
    request_id: Annotated[str | None, typer.Option("--request-id", help="Only this request.")] = None,
    since: Annotated[
        str | None, typer.Option(help="From then on: 2h, 7d, 2030-01-31, 2030-01-31T12:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Before then, written alike.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many, the newest.")] = 100,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on printing events as they happen.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON array; with --follow, a line for each event.")
    ] = False,
    as_lines: Annotated[bool, typer.Option("--jsonl", help="JSON lines, for export.")] = False,
    config: ConfigOption = None,
) -> None:
    """Read the audit trail: every credential that was vended, and every request that was refused."""
    settings = load_settings(config)
    from lakepass.broker.audit import Outcome, trail

    if outcome is not None and outcome not in set(Outcome):
        raise typer.BadParameter(f"{outcome!r} is not vended, refused or failed.", param_hint="--outcome")
    wanted = trail.Filter(
        recipient=recipient,
        table=table,
        outcome=None if outcome is None else Outcome(outcome),
        request_id=request_id,
        since=None if since is None else _moment(since, "--since"),
        until=None if until is None else _moment(until, "--until"),
    )
    catalog = open_catalog(settings)
    try:
        position = trail.last_position(catalog.engine)
        events = trail.latest(catalog.engine, wanted, limit, position)
        if as_lines or (as_json and follow):
            _print_lines(events)
        elif as_json:
            typer.echo(json.dumps([event.as_json() for event in events], indent=2, ensure_ascii=False))
        else:
            _print_table(events, follow=follow)
        if follow:
            for event in trail.follow(catalog.engine, wanted, position):
                if as_json or as_lines:
                    _print_lines([event])
                else:
                    typer.echo(_line(event))
    finally:
        catalog.close()


def _print_lines(events: Iterable[VendEvent]) -> None:
    for event in events:
        typer.echo(json.dumps(event.as_json(), ensure_ascii=False))


def _print_table(events: list[VendEvent], *, follow: bool) -> None:
    if follow:
        for event in events:
            typer.echo(_line(event))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not events:
        console.print("Nothing in the audit trail matches.")
        return
    console.print(_table_of(events))


def _table_of(events: list[VendEvent]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    shown = Table()
    for heading in (
        "time",
        "outcome",
        "recipient",
        "table",
        "location",
        "until",
        "from",
        "reason",
        "request",
    ):
        shown.add_column(heading, overflow="fold")
    for event in events:
        told = event.as_json()
        colour = _COLOURS[event.outcome]
        location = event.location or ""
        if event.scope == "container":
            location += " (whole container)"
        cells = [event.recipient or "", event.table or "", location, _short(told.get("expires_at", ""))]
        cells += [event.source_address or "", event.reason or "", event.request_id]
        shown.add_row(
            _short(told["time"]), f"[{colour}]{event.outcome}[/]", *(escape(cell) for cell in cells)
        )
    return shown


def _line(event: VendEvent) -> str:
    told = event.as_json()
    parts = [
        told["time"],
        f"{event.outcome:7}",
        event.recipient or "-",
        event.table or "-",
        event.location or "-",
    ]
    if event.reason:
        parts.append(f"({event.reason})")
    return "  ".join(parts)


def _short(moment: str) -> str:
    """Without the fraction of a second."""
    return re.sub(r"\.\d+Z$", "Z", moment)


def _moment(text: str, option: str) -> datetime:
    """A time, or how long ago."""
    span = _SPAN.fullmatch(text.strip())
    if span is not None:
        return datetime.now(UTC) - timedelta(**{_UNITS[span[2]]: int(span[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2h, 7d, 2030-01-31 or 2030-01-31T12:00:00Z.", param_hint=option
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    app.command("audit", rich_help_panel="Providers")(_audit)
