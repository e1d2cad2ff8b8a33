"""`lakepass spark-conf`: the settings with which any Spark reads a shared table."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Form(StrEnum):
    """How the settings are printed."""

    PROPERTIES = "properties"
    SUBMIT = "submit"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    app.command("spark-conf", rich_help_panel="Recipients")(spark_conf)


def spark_conf(  # noqa: PLR0917 - typer passes them by name
    table: Annotated[
        str | None, typer.Argument(help="PROFILE#share.schema.table", show_default=False)
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="Lines for spark-defaults.conf, --conf arguments, or JSON.")
    ] = Form.PROPERTIES,
    session: Annotated[
        bool, typer.Option("--session", help="A session's settings (jars, extensions) instead of a table's.")
    ] = False,
    cloud: Annotated[
        list[str] | None, typer.Option(help="With --session: aws, azure or gcp; repeat it for several.")
    ] = None,
    static: Annotated[
        bool, typer.Option("--static", help="The credential itself, which ends, instead of renewing.")
    ] = False,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Print tokens and keys, which are hidden otherwise.")
    ] = False,
) -> None:
    """Print the Spark settings for reading one shared table with Delta Lake's own reader.

    A job that can be changed needs none of them: lakepass.spark_conf.read_table passes them to one read.
    """
    from lakepass.spark_conf.printing import session_text, table_text

    if session == (table is not None):
        raise typer.BadParameter("name a table, or give --session for the settings of a session")
    if table is None:
        text = session_text(form.value, cloud or ["aws"])
    else:
        text = table_text(table, form.value, renew=not static, show_secrets=show_secrets)
    typer.echo(text, nl=False)
