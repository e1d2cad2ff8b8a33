"""Changes to what is shared: shares, schemas and tables.

Every method is one transaction. What comes from the configuration file is read-only here: it follows the
file at each start (`file_shares.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from lakepass.broker.catalog.models import Schema, Share, SharedTable
from lakepass.broker.catalog.names import check_name, name_key
from lakepass.broker.errors import Conflict, InvalidParameter, NotFound
from lakepass.reader.location import Location, LocationError

MODES = ("url", "dir")


@dataclass(frozen=True)
class TableDefinition:
    """A table to share, as asked for; checked and brought into its stored form by `checked`."""

    name: str
    location: str
    auxiliary_locations: Sequence[str] = ()
    access_modes: Sequence[str] = ("url",)
    history_shared: bool = True
    start_version: int | None = None
    comment: str | None = None
    id: str | None = None

    def checked(self) -> TableDefinition:
        """The same definition with every value valid; raises `InvalidParameter` saying what is not."""
        try:
            check_name(self.name)
            root = Location.parse(self.location)
            auxiliary = list(dict.fromkeys(str(Location.parse(text)) for text in self.auxiliary_locations))
        except (LocationError, ValueError) as error:
            raise InvalidParameter(str(error)) from None
        if str(root) in auxiliary:
            raise InvalidParameter(f"{root} is the table's root; an auxiliary location is another place.")
        for other in (Location.parse(text) for text in auxiliary):
            if root.contains(other):
                raise InvalidParameter(f"{other} lies below the table's root, which covers it: leave it out.")
        unknown = [mode for mode in self.access_modes if mode not in MODES]
        if unknown or not self.access_modes:
            raise InvalidParameter(f"Access modes are url, dir or both; not {', '.join(unknown) or 'none'}.")
        if self.start_version is not None and self.start_version < 0:
            raise InvalidParameter("A start version is 0 or more.")
        if "dir" in self.access_modes and not self.history_shared:
            raise InvalidParameter(
                "dir access shows the table's whole log, so it cannot be given where history is not shared. "
                "Use url."
            )
        if "dir" in self.access_modes and self.start_version:
            raise InvalidParameter(
                f"dir access shows the table's whole log, so it cannot be limited to start at version "
                f"{self.start_version}. Use url, or share from the first version."
            )
        if self.start_version and not self.history_shared:
            raise InvalidParameter("A start version means something only where history is shared.")
        if self.id is not None:
            try:
                uuid.UUID(self.id)
            except ValueError:
                raise InvalidParameter(f"The id {self.id!r} is not a UUID.") from None
        modes = [mode for mode in MODES if mode in self.access_modes]
        return TableDefinition(
            self.name,
            str(root),
            auxiliary,
            modes,
            self.history_shared,
            self.start_version,
            self.comment,
            self.id,
        )


def split_name(text: str, parts: int) -> tuple[str, ...]:
    """`share.schema.table` in its parts; a share's name may hold periods, the others may not."""
    names = text.rsplit(".", parts - 1)
    if len(names) != parts or not all(names):
        form = {2: "share.schema", 3: "share.schema.table"}[parts]
        raise InvalidParameter(f"{text!r} is not of the form {form}.")
    return tuple(names)


class Shares:
    """Shares, schemas and tables, for administration."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _session(self) -> Session:
        return Session(self._engine, expire_on_commit=False)

    def add(
        self,
        name: str,
        *,
        display_name: str | None = None,
        comment: str | None = None,
        properties: dict[str, str] | None = None,
    ) -> Share:
        """Create a share."""
        try:
            check_name(name, dots=True)
        except ValueError as error:
            raise InvalidParameter(str(error)) from None
        _check_properties(display_name, comment, properties)
        share = Share(
            name=name,
            name_key=name_key(name),
            display_name=display_name,
            comment=comment,
            properties=properties,
        )
        try:
            with self._session() as session, session.begin():
                session.add(share)
        except IntegrityError:
            raise Conflict(f"A share named {name!r} exists already.") from None
        return share

    def all(self) -> list[Share]:
        """Every share, by name."""
        with self._session() as session:
            return list(session.scalars(select(Share).order_by(Share.name_key)))

    def find(self, name: str) -> Share:
        """A share by name."""
        with self._session() as session:
            return _share(session, name)

    def remove(self, name: str) -> None:
        """Delete a share with its schemas, tables and grants."""
        with self._session() as session, session.begin():
            share = _share(session, name, writable=True)
            session.execute(delete(Share).where(Share.id == share.id))

    def count_tables(self, name: str) -> int:
        """How many tables a share holds."""
        with self._session() as session:
            share = _share(session, name)
            counted = select(func.count()).select_from(SharedTable).where(SharedTable.share_id == share.id)
            return session.scalar(counted) or 0

    def add_schema(self, share: str, name: str) -> Schema:
        """Create a schema; adding a table does it as well."""
        try:
            with self._session() as session, session.begin():
                return _new_schema(session, _share(session, share, writable=True), name)
        except IntegrityError:
            raise Conflict(f"The share {share!r} has a schema named {name!r} already.") from None

    def schemas(self, share: str) -> list[Schema]:
        """The schemas of a share."""
        with self._session() as session:
            found = _share(session, share)
            return list(
                session.scalars(select(Schema).where(Schema.share_id == found.id).order_by(Schema.name_key))
            )

    def remove_schema(self, share: str, name: str) -> None:
        """Delete a schema with its tables."""
        with self._session() as session, session.begin():
            found = _share(session, share, writable=True)
            schema = _schema(session, found, name)
            if schema is None:
                raise NotFound(f"The share {share!r} has no schema {name!r}.")
            session.execute(delete(Schema).where(Schema.id == schema.id))

    def add_table(self, share: str, schema: str, table: TableDefinition) -> SharedTable:
        """Put a table into a schema, which is created when it is not there. The share must exist."""
        wanted = table.checked()
        row = SharedTable(
            name=wanted.name,
            name_key=name_key(wanted.name),
            location=wanted.location,
            auxiliary_locations=list(wanted.auxiliary_locations),
            access_modes=list(wanted.access_modes),
            history_shared=wanted.history_shared,
            start_version=wanted.start_version,
            comment=wanted.comment,
        )
        if wanted.id is not None:
            row.id = wanted.id
        try:
            with self._session() as session, session.begin():
                found = _share(session, share, writable=True)
                parent = _schema(session, found, schema) or _new_schema(session, found, schema)
                row.share_id, row.schema_id = found.id, parent.id
                session.add(row)
        except IntegrityError:
            raise Conflict(
                f"{share}.{schema} has a table named {wanted.name!r}, or its id, already."
            ) from None
        return row

    def tables(self, share: str | None = None) -> list[tuple[Share, Schema, SharedTable]]:
        """Every table, or those of one share, with where they are."""
        statement = (
            select(Share, Schema, SharedTable)
            .join(Schema, Schema.share_id == Share.id)
            .join(SharedTable, SharedTable.schema_id == Schema.id)
            .order_by(Share.name_key, Schema.name_key, SharedTable.name_key)
        )
        with self._session() as session:
            if share is not None:
                statement = statement.where(Share.id == _share(session, share).id)
            return [(found, schema, table) for found, schema, table in session.execute(statement)]

    def table(self, share: str, schema: str, name: str) -> SharedTable:
        """One table."""
        with self._session() as session:
            return _table(session, share, schema, name)

    def replace_table(self, share: str, schema: str, table: TableDefinition) -> SharedTable:
        """Give a table new settings; it keeps its id."""
        wanted = table.checked()
        with self._session() as session, session.begin():
            row = _table(session, share, schema, wanted.name, writable=True)
            row.location = wanted.location
            row.auxiliary_locations = list(wanted.auxiliary_locations)
            row.access_modes = list(wanted.access_modes)
            row.history_shared = wanted.history_shared
            row.start_version = wanted.start_version
            row.comment = wanted.comment
        return row

    def remove_table(self, share: str, schema: str, name: str) -> None:
        """Stop sharing a table. Its data is not touched."""
        with self._session() as session, session.begin():
            session.delete(_table(session, share, schema, name, writable=True))


def _check_properties(
    display_name: str | None, comment: str | None, properties: dict[str, str] | None
) -> None:
    # The specification's limits: beyond them a client may cut the value off.
    if display_name is not None and len(display_name) > 255:
        raise InvalidParameter("A display name has at most 255 characters.")
    if comment is not None and len(comment) > 65536:
        raise InvalidParameter("A comment has at most 65536 characters.")
    if properties and (
        len(properties) > 50 or any(len(key) > 255 or len(value) > 1000 for key, value in properties.items())
    ):
        raise InvalidParameter(
            "Properties are at most 50, with keys of 255 and values of 1000 characters at most."
        )


def _share(session: Session, name: str, *, writable: bool = False) -> Share:
    share = session.scalar(select(Share).where(Share.name_key == name_key(name)))
    if share is None:
        raise NotFound(f"There is no share {name!r}.")
    if writable and share.from_file:
        raise Conflict(f"The share {share.name!r} is served from the configuration file; change it there.")
    return share


def _schema(session: Session, share: Share, name: str) -> Schema | None:
    return session.scalar(
        select(Schema).where(Schema.share_id == share.id, Schema.name_key == name_key(name))
    )


def _new_schema(session: Session, share: Share, name: str) -> Schema:
    try:
        check_name(name)
    except ValueError as error:
        raise InvalidParameter(str(error)) from None
    schema = Schema(share_id=share.id, name=name, name_key=name_key(name))
    session.add(schema)
    session.flush()
    return schema


def _table(session: Session, share: str, schema: str, name: str, *, writable: bool = False) -> SharedTable:
    found = _schema(session, _share(session, share, writable=writable), schema)
    statement = select(SharedTable).where(SharedTable.name_key == name_key(name))
    row = found and session.scalar(statement.where(SharedTable.schema_id == found.id))
    if not isinstance(row, SharedTable):
        raise NotFound(f"There is no table {share}.{schema}.{name}.")
    return row
