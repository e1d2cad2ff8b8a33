"""The catalog as one thing: its engine, and the two faces that change it."""

from __future__ import annotations

import secrets

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from lakepass.broker.catalog.database import migrate, open_engine
from lakepass.broker.catalog.file_shares import lay_file_shares
from lakepass.broker.catalog.models import ServerSecret
from lakepass.broker.catalog.recipients import Recipients
from lakepass.broker.catalog.shares import Shares
from lakepass.broker.config import Settings


class Catalog:
    """Everything that is shared, in a database brought up to date."""

    def __init__(self, settings: Settings) -> None:
        self.url = settings.database
        self.engine = open_engine(settings.database)
        migrate(self.engine)
        self.shares = Shares(self.engine)
        self.recipients = Recipients(self.engine)

    def lay_file_shares(self, settings: Settings) -> None:
        """Bring the shares that the configuration file names into the catalog."""
        lay_file_shares(self.engine, settings.shares, settings.bearer_token_sha256)

    def secret(self, name: str) -> bytes:
        """A random key that all replicas share, made by whoever asks first."""
        for _ in range(2):
            with Session(self.engine) as session:
                found = session.scalar(select(ServerSecret.value).where(ServerSecret.name == name))
            if found is not None:
                return bytes.fromhex(found)
            try:
                with Session(self.engine) as session, session.begin():
                    session.add(ServerSecret(name=name, value=secrets.token_hex(32)))
            except IntegrityError:
                continue  # another replica was first: its value is read in the next round
        return self.secret(name)

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()
