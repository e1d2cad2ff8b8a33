"""`lakepass demo`: the whole product on this machine, on embedded parts, with no cloud account."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
