"""Shares of a file in the reference server's format, copied into the catalog to be changed there from
now on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from lakepass.broker.catalog.shares import TableDefinition
from lakepass.broker.catalog.store import Catalog
from lakepass.broker.config import Settings
from lakepass.broker.errors import Conflict


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    shares: int
    tables: int
    present: int


def import_shares(catalog: Catalog, source: Settings, recipient: str | None = None) -> Imported:
    """Copy every share of `source`; with a recipient's name, also the token that opens them."""
    tables = present = 0
    for share in source.shares:
        with suppress(Conflict):
            catalog.shares.add(share.name)
        for schema in share.schemas:
            for table in schema.tables:
                definition = TableDefinition(
                    table.name,
                    table.location,
                    table.auxiliary_locations,
                    table.access_modes,
                    table.history_shared,
                    table.start_version if table.history_shared else None,
                    None,
                    table.id,
                )
                try:
                    catalog.shares.add_table(share.name, schema.name, definition)
                    tables += 1
                except Conflict:
                    present += 1
    if recipient is not None:
        with suppress(Conflict):
            catalog.recipients.add(recipient)
        if source.bearer_token_sha256 is not None:
            catalog.recipients.adopt_token(recipient, source.bearer_token_sha256)
        for share in source.shares:
            catalog.recipients.grant(recipient, share.name)
    return Imported(len(source.shares), tables, present)
