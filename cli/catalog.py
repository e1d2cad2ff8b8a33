"""The provider's commands: what is shared and with whom.

They work on the catalog's database itself, as the configuration names it, so that they need no running
server and no admin token; a server that runs sees each change with its next request.
"""

from __future__ import annotations

import typer

from lakepass.cli import catalog_import, catalog_recipients, catalog_shares


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    catalog_shares.register(app)
    catalog_recipients.register(app)
    catalog_import.register(app)
