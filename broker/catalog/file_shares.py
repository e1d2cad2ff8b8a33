"""Shares of the configuration file, laid into the catalog at each start and read-only there.

Their ids come from their names, so that they stay the same over restarts and replicas, and so do grants on
them. What has left the file leaves the catalog.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import Engine, delete, select
from sqlalchemy.orm import Session

from lakepass.broker.catalog.models import Grant, Recipient, Schema, Share, SharedTable, Token
from lakepass.broker.catalog.names import name_key
from lakepass.broker.catalog.reference_file import FileShare, FileTable
from lakepass.broker.catalog.shares import TableDefinition
from lakepass.broker.config import ConfigurationError
from lakepass.broker.errors import InvalidParameter

FILE_RECIPIENT = "configuration-file"
_NAMESPACE = uuid.UUID("8f0c3a52-6f2c-5c53-9d5a-6b2f0c1de001")


def _id(*names: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "/".join(name_key(name) for name in names)))


def lay_file_shares(engine: Engine, shares: Sequence[FileShare], token_sha256: str | None) -> None:
    """Make the catalog hold exactly these shares from the file, and the token that opens them all."""
    with Session(engine) as session, session.begin():
        wanted = {_id("share", share.name): share for share in shares}
        session.execute(delete(Share).where(Share.from_file.is_(True), Share.id.not_in(list(wanted))))
        for share_id, share in wanted.items():
            taken = session.scalar(
                select(Share).where(Share.name_key == name_key(share.name), Share.id != share_id)
            )
            if taken is not None:
                raise ConfigurationError(
                    f"shares: the catalog has a share named {taken.name!r} already. Remove one of the two."
                )
            session.merge(Share(id=share_id, name=share.name, name_key=name_key(share.name), from_file=True))
            session.flush()
            _lay_tables(session, share_id, share)
        _lay_recipient(session, list(wanted), token_sha256)


def _lay_tables(session: Session, share_id: str, share: FileShare) -> None:
    schemas, tables = set(), set()
    for schema in share.schemas:
        schema_id = _id("schema", share.name, schema.name)
        schemas.add(schema_id)
        session.merge(
            Schema(id=schema_id, share_id=share_id, name=schema.name, name_key=name_key(schema.name))
        )
        session.flush()
        for table in schema.tables:
            row = _table_row(share, schema.name, table)
            row.share_id, row.schema_id = share_id, schema_id
            tables.add(row.id)
            # The id may have changed under the same name, which is unique in its schema.
            session.execute(
                delete(SharedTable).where(
                    SharedTable.schema_id == schema_id,
                    SharedTable.name_key == row.name_key,
                    SharedTable.id != row.id,
                )
            )
            session.merge(row)
    session.execute(
        delete(SharedTable).where(SharedTable.share_id == share_id, SharedTable.id.not_in(list(tables)))
    )
    session.execute(delete(Schema).where(Schema.share_id == share_id, Schema.id.not_in(list(schemas))))


def _table_row(share: FileShare, schema: str, table: FileTable) -> SharedTable:
    try:
        definition = TableDefinition(
            name=table.name,
            location=table.location,
            auxiliary_locations=table.auxiliary_locations,
            access_modes=table.access_modes,
            history_shared=table.history_shared,
            start_version=table.start_version if table.history_shared else None,
        ).checked()
    except InvalidParameter as error:
        raise ConfigurationError(f"shares: {share.name}.{schema}.{table.name}: {error.message}") from None
    return SharedTable(
        id=table.id or _id("table", share.name, schema, table.name),
        name=definition.name,
        name_key=name_key(definition.name),
        location=definition.location,
        auxiliary_locations=list(definition.auxiliary_locations),
        access_modes=list(definition.access_modes),
        history_shared=definition.history_shared,
        start_version=definition.start_version,
    )


def _lay_recipient(session: Session, share_ids: list[str], token_sha256: str | None) -> None:
    recipient_id = _id("recipient", FILE_RECIPIENT)
    if token_sha256 is None:
        session.execute(delete(Recipient).where(Recipient.id == recipient_id))
        return
    session.merge(
        Recipient(
            id=recipient_id,
            name=FILE_RECIPIENT,
            name_key=name_key(FILE_RECIPIENT),
            comment="The bearer token of the configuration file",
            source_ranges=[],
            from_file=True,
        )
    )
    session.flush()
    session.execute(delete(Token).where(Token.recipient_id == recipient_id, Token.digest != token_sha256))
    session.merge(
        Token(
            id=_id("token", token_sha256),
            recipient_id=recipient_id,
            selector=token_sha256[:16],
            digest=token_sha256,
        )
    )
    for share_id in share_ids:
        session.merge(Grant(recipient_id=recipient_id, share_id=share_id))
