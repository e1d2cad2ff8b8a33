"""`lakepass share …` and `lakepass table …`."""

from __future__ import annotations

from typing import Annotated

import typer

from lakepass.cli.broker_setup import ConfigOption, load_settings, open_catalog
from lakepass.cli.catalog_output import (
    IfAbsentOption,
    JsonOption,
    YesOption,
    confirm,
    done,
    print_items,
    print_json,
)

_SHARES = typer.Typer(help="Shares: groups of tables that are granted as a whole.", no_args_is_help=True)
_TABLES = typer.Typer(help="Tables: where they lie and how they may be read.", no_args_is_help=True)

TableName = Annotated[str, typer.Argument(help="share.schema.table")]
Auxiliary = Annotated[
    list[str] | None,
    typer.Option("--auxiliary", help="A further location with files of the table; repeatable."),
]
Modes = Annotated[str, typer.Option("--access", help="url, dir or url,dir.")]
History = Annotated[bool, typer.Option("--history/--no-history", help="Share earlier versions and changes.")]
StartVersion = Annotated[int | None, typer.Option(help="The first version of the history that is shared.")]
Check = Annotated[bool, typer.Option("--check/--no-check", help="Open the table and look at its log first.")]


@_SHARES.command("list")
def _list_shares(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """All shares."""
    settings = load_settings(config)
    from lakepass.broker.catalog.descriptions import described_share

    items = [described_share(share) for share in open_catalog(settings).shares.all()]
    columns = [("SHARE", "name"), ("COMMENT", "comment"), ("FROM FILE", "fromFile"), ("CREATED", "createdAt")]
    print_items(items, columns, as_json=as_json)


@_SHARES.command("add")
def _add_share(
    name: str,
    comment: Annotated[str | None, typer.Option(help="What recipients read about it.")] = None,
    display_name: Annotated[str | None, typer.Option(help="The name to show.")] = None,
    config: ConfigOption = None,
    *,
    if_absent: IfAbsentOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create a share."""
    settings = load_settings(config)
    from lakepass.broker.catalog.descriptions import described_share
    from lakepass.broker.errors import Conflict

    shares = open_catalog(settings).shares
    try:
        share = shares.add(name, comment=comment, display_name=display_name)
    except Conflict:
        if not if_absent:
            raise
        share = shares.find(name)
    if as_json:
        print_json(described_share(share))
    else:
        done(f"The share {share.name} is there.")


@_SHARES.command("remove")
def _remove_share(name: str, config: ConfigOption = None, yes: YesOption = False) -> None:
    """Delete a share with its tables and grants; the data itself is not touched."""
    shares = open_catalog(load_settings(config)).shares
    count = shares.count_tables(name)
    confirm(f"Delete the share {name} with {count} tables and all grants on it?", yes=yes)
    shares.remove(name)
    done(f"The share {name} is gone.")


@_TABLES.command("list")
def _list_tables(
    share: Annotated[str | None, typer.Argument(help="Only of this share.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """All tables."""
    settings = load_settings(config)
    from lakepass.broker.catalog.descriptions import described_table

    items = [described_table(*row) for row in open_catalog(settings).shares.tables(share)]
    columns = [
        ("SHARE", "share"), ("SCHEMA", "schema"), ("TABLE", "name"), ("ACCESS", "accessModes"),
        ("HISTORY", "historyShared"), ("LOCATION", "location"),
    ]  # fmt: skip
    print_items(items, columns, as_json=as_json)


@_TABLES.command("add")
def _add_table(
    name: TableName,
    location: Annotated[str, typer.Argument(help="s3://…, abfss://… or gs://…")],
    auxiliary: Auxiliary = None,
    access: Modes = "url",
    config: ConfigOption = None,
    *,
    history: History = True,
    start_version: StartVersion = None,
    comment: Annotated[str | None, typer.Option(help="For the catalog's own use.")] = None,
    check: Check = True,
    if_absent: IfAbsentOption = False,
    as_json: JsonOption = False,
) -> None:
    """Share a table; its share is created when it is not there."""
    settings = load_settings(config)
    from lakepass.broker.catalog.descriptions import described_table
    from lakepass.broker.catalog.shares import TableDefinition, split_name
    from lakepass.broker.errors import Conflict, NotFound

    share, schema, table = split_name(name, 3)
    modes = [mode.strip() for mode in access.split(",")]
    definition = TableDefinition(table, location, auxiliary or (), modes, history, start_version, comment)
    shares = open_catalog(settings).shares
    if if_absent:
        try:
            shares.table(share, schema, table)
        except NotFound:
            pass
        else:
            done(f"The table {name} is there already.")
            return
    if check:
        _examine(settings, definition)
    try:
        shares.find(share)
    except NotFound:
        shares.add(share)
    try:
        added = shares.add_table(share, schema, definition)
    except Conflict:
        if not if_absent:
            raise
        shares.table(share, schema, table)  # another replica was first, unless it was something else
        done(f"The table {name} is there already.")
        return
    if as_json:
        print_json(next(described_table(*row) for row in shares.tables(share) if row[2].id == added.id))
    else:
        done(f"The table {name} is shared, by {' and '.join(definition.checked().access_modes)}.")


@_TABLES.command("check")
def _check_table(name: TableName, config: ConfigOption = None) -> None:
    """Look at a shared table again: does it open, and do its files lie where they are shared?"""
    settings = load_settings(config)
    from lakepass.broker.catalog.shares import TableDefinition, split_name

    row = open_catalog(settings).shares.table(*split_name(name, 3))
    definition = TableDefinition(
        row.name,
        row.location,
        row.auxiliary_locations,
        row.access_modes,
        row.history_shared,
        row.start_version,
    )
    _examine(settings, definition)


@_TABLES.command("remove")
def _remove_table(name: TableName, config: ConfigOption = None, yes: YesOption = False) -> None:
    """Stop sharing a table; its data is not touched."""
    settings = load_settings(config)
    from lakepass.broker.catalog.shares import split_name

    parts = split_name(name, 3)
    shares = open_catalog(settings).shares
    shares.table(*parts)
    confirm(f"Stop sharing {name}?", yes=yes)
    shares.remove_table(*parts)
    done(f"The table {name} is no longer shared.")


def _examine(settings: object, definition: object) -> None:
    from lakepass.broker.catalog.shares import TableDefinition
    from lakepass.broker.config import Settings
    from lakepass.broker.tables import registration
    from lakepass.broker.vending import Vending

    assert isinstance(settings, Settings)
    assert isinstance(definition, TableDefinition)
    vending = Vending(settings.credentials.lifetime)
    try:
        report = registration.checked(settings, vending, definition)
    finally:
        vending.close()
    features = f", features {', '.join(report.features)}" if report.features else ""
    done(f"{definition.location}: version {report.version}, {report.files} files{features}.")


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    app.add_typer(_SHARES, name="share", rich_help_panel="Providers")
    app.add_typer(_TABLES, name="table", rich_help_panel="Providers")
