"""What recipients type: `lakepass ls | show | head | read | changes | credentials`.

The profile comes from `--profile`, from `profile#share.schema.table`, or from LAKEPASS_PROFILE. Rows go to
standard output or a file, everything else to standard error, so that output can be piped. Exit codes are in
`lakepass.cli.failures`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from lakepass.reader import SharingClient
    from lakepass.reader.sharing.table import SharedTable

_PANEL = "Recipients"
_UNTOLD = "not told by the server"

ProfileOption = Annotated[
    str | None,
    typer.Option("--profile", "-p", help="The profile file or its https address.", show_default=False),
]
TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="share.schema.table, or profile#share.schema.table.")
]
AccessOption = Annotated[str, typer.Option(help="auto, dir or url.")]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", "-c", help="Columns, separated by commas.", show_default=False)
]
WhereOption = Annotated[
    str | None, typer.Option("--where", "-w", help="SQL condition, such as \"day >= '2024-01-01'\".")
]
OutputOption = Annotated[
    str, typer.Option("--output", "-o", help="A .parquet, .csv or .jsonl file, or - for standard output.")
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", "-f", help="parquet, csv or jsonl; told by the file's name if left out."),
]
VersionOption = Annotated[int | None, typer.Option("--version", "-v", help="The version to read.")]
TimestampOption = Annotated[str | None, typer.Option(help="Read the table as it was then, ISO 8601.")]


def _client(profile: str | None, reference: str) -> tuple[SharingClient, str]:
    """A client, and the name without its profile; a warning about the profile is one line."""
    from rich.console import Console
    from rich.markup import escape

    from lakepass.reader import SharingClient
    from lakepass.reader.sharing.names import split_reference

    named, name = split_reference(reference)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client = SharingClient(profile or named)
    for warning in caught:
        Console(stderr=True, soft_wrap=True, highlight=False).print(
            f"[yellow]warning:[/yellow] {escape(str(warning.message))}"
        )
    return client, name


def _table(profile: str | None, reference: str, access: str) -> SharedTable:
    client, name = _client(profile, reference)
    if access not in ("auto", "dir", "url"):
        raise typer.BadParameter(f"{access!r} is not auto, dir or url.", param_hint="--access")
    mode: Literal["auto", "dir", "url"] = access  # type: ignore[assignment]  # checked above
    return client.table(name, mode)


def _split(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]


def _ls(
    name: Annotated[
        str, typer.Argument(metavar="SHARE[.SCHEMA]", help="Only what is in it.", show_default=False)
    ] = "",
    profile: ProfileOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per table.")] = False,
) -> None:
    """List the tables that were shared with you."""
    import orjson

    client, name = _client(profile, name)
    # A share's own name may have periods in it.
    if not name:
        tables = client.all_tables()
    elif "." not in name or name.casefold() in {share.name.casefold() for share in client.shares()}:
        tables = client.all_tables(name)
    else:
        tables = client.tables(name)
    for table in tables:
        modes = table.access_modes or ("url",)
        if as_json:
            fields = {"name": str(table), "accessModes": modes, "location": table.location, "id": table.id}
            typer.echo(orjson.dumps(fields).decode())
        else:
            typer.echo(f"{table!s:<40}  {','.join(modes):<8}  {table.location or ''}".rstrip())


def _show(
    table: TableArgument,
    profile: ProfileOption = None,
    access: AccessOption = "auto",
    version: VersionOption = None,
    timestamp: TimestampOption = None,
) -> None:
    """Show a table's schema, version, access, features and size."""
    from rich.console import Console
    from rich.filesize import decimal
    from rich.markup import escape

    shared = _table(profile, table, access)
    snapshot = shared.snapshot(version, timestamp)
    size, files = _extent(snapshot)
    protocol = snapshot.protocol
    features = sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
    offered = shared.offered_modes
    console = Console(highlight=False, soft_wrap=True)
    facts = {
        "table": shared.name,
        "version": str(snapshot.version),
        "access": f"{shared.access} (offered: {', '.join(offered)})",
        "location": str(shared.location or "not shown by url access"),
        "description": snapshot.metadata.description or "",
        "partitions": ", ".join(snapshot.partition_columns),
        "protocol": f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}",
        "features": ", ".join(features),
        "size": _UNTOLD if size is None else decimal(size),
        "files": _UNTOLD if files is None else f"{files:,}",
    }
    for label, text in facts.items():
        if text:
            console.print(f"[bold]{label:<12}[/bold] {escape(text)}")
    console.print("[bold]columns[/bold]")
    for field in snapshot.schema:
        null = "" if field.nullable else "  not null"
        console.print(f"  {escape(field.name):<30} {escape(str(field.type))}{null}")


def _extent(snapshot: Any) -> tuple[int | None, int | None]:
    """Bytes and files: as the server tells in url mode, else from the log."""
    from lakepass.reader.sharing.urls import UrlSnapshot

    if isinstance(snapshot, UrlSnapshot):
        return snapshot.size, snapshot.file_count
    import pyarrow.compute as pc

    size = files = 0
    for batch in snapshot.file_batches():
        size += pc.sum(batch.column("size")).as_py() or 0
        files += batch.num_rows
    return size, files


def _head(  # noqa: PLR0917 - each is an option
    table: TableArgument,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="How many rows.")] = 10,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    profile: ProfileOption = None,
    access: AccessOption = "auto",
) -> None:
    """Print the first rows of a table."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Grid

    shared = _table(profile, table, access)
    found = shared.to_arrow(columns=_split(columns), filter=where, limit=rows)
    grid = Grid(*(escape(name) for name in found.schema.names), header_style="bold")
    for row in found.to_pylist():
        grid.add_row(*(escape("" if value is None else str(value)) for value in row.values()))
    Console().print(grid)


def _read(  # noqa: PLR0917 - each is an option
    table: TableArgument,
    output: OutputOption = "-",
    where: WhereOption = None,
    columns: ColumnsOption = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="How many rows at most.")] = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    format: FormatOption = None,
    profile: ProfileOption = None,
    access: AccessOption = "auto",
) -> None:
    """Read a table, whole or in part, into a file or to standard output (csv)."""
    from lakepass.cli.rows_out import write_rows

    snapshot = _table(profile, table, access).snapshot(version, timestamp)
    scan = snapshot.scan(columns=_split(columns), filter=where, limit=limit)
    write_rows(scan, output, format)


def _changes(  # noqa: PLR0917 - each is an option
    table: TableArgument,
    starting_version: Annotated[int | None, typer.Option("--from", help="The first version.")] = None,
    ending_version: Annotated[int | None, typer.Option("--to", help="The last version.")] = None,
    since: Annotated[str | None, typer.Option(help="From this time on, ISO 8601.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this time, ISO 8601.")] = None,
    output: OutputOption = "-",
    where: WhereOption = None,
    columns: ColumnsOption = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="How many rows at most.")] = None,
    format: FormatOption = None,
    profile: ProfileOption = None,
    access: AccessOption = "auto",
) -> None:
    """Read the rows that were inserted, updated or deleted."""
    from lakepass.cli.rows_out import write_rows

    changes = _table(profile, table, access).changes(
        starting_version, ending_version, since, until, columns=_split(columns), filter=where, limit=limit
    )
    write_rows(changes, output, format)


def _credentials(
    table: TableArgument,
    env: Annotated[bool, typer.Option("--env", help="Print the keys, as exports for a shell.")] = False,
    location: Annotated[
        str | None, typer.Option(help="An auxiliary location of the table.", show_default=False)
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Get a temporary credential for a table's directory, for other tools."""
    import shlex

    from rich.console import Console
    from rich.markup import escape

    shared = _table(profile, table, "dir")
    credential = shared.credential(location)
    end = credential.expires_at.isoformat(timespec="seconds") if credential.expires_at else "never"
    if not env:
        typer.echo(
            f"location  {credential.location}\nkind      {type(credential.keys).__name__}\nends      {end}"
        )
        typer.echo("--env prints the keys.", err=True)
        return
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    place = escape(credential.location)
    console.print(f"[yellow]warning:[/yellow] these are secrets; they open {place} until {end}")
    for name, value in _exports(credential).items():
        typer.echo(f"export {name}={shlex.quote(value)}")


def _exports(credential: Any) -> dict[str, str]:
    """The variables that the clouds' own tools look at."""
    from lakepass.reader.credentials import AwsKeys, AzureSas
    from lakepass.reader.location import Location

    keys, store = credential.keys, credential.store
    if isinstance(keys, AwsKeys):
        found = {
            "AWS_ACCESS_KEY_ID": keys.access_key_id,
            "AWS_SECRET_ACCESS_KEY": keys.secret_access_key,
            "AWS_SESSION_TOKEN": keys.session_token,
            "AWS_REGION": store.region,
            "AWS_ENDPOINT_URL": store.endpoint,
        }
    elif isinstance(keys, AzureSas):
        account = Location.parse(credential.location).account
        found = {"AZURE_STORAGE_ACCOUNT": account, "AZURE_STORAGE_SAS_TOKEN": keys.sas_token}
    else:
        found = {
            "CLOUDSDK_AUTH_ACCESS_TOKEN": keys.oauth_token,
            "GOOGLE_OAUTH_ACCESS_TOKEN": keys.oauth_token,
        }
    return {name: value for name, value in found.items() if value}


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    for name, command in (
        ("ls", _ls),
        ("show", _show),
        ("head", _head),
        ("read", _read),
        ("changes", _changes),
        ("credentials", _credentials),
    ):
        app.command(name, rich_help_panel=_PANEL)(command)
