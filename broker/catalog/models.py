"""The catalog's tables in SQL: what is shared, with whom, and the tokens that prove it.

Times are epoch milliseconds and lists are JSON text, so that SQLite and PostgreSQL hold the same values.
Names are kept as they were written, and once more as a key for look-ups without regard to case; on
PostgreSQL the key compares byte by byte, as SQLite does, so that pages of a list come in the same order on
both.
"""

from __future__ import annotations

import time
import uuid
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Boolean,
    Dialect,
    ForeignKey,
    Index,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

NameKey = String(1024).with_variant(postgresql.VARCHAR(1024, collation="C"), "postgresql")


class JsonText(TypeDecorator[Any]):
    """A JSON value kept as text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """To text."""
        return None if value is None else orjson.dumps(value).decode()

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        """From text."""
        return None if value is None else orjson.loads(value)


def new_id() -> str:
    """A random UUID."""
    return str(uuid.uuid4())


def now_ms() -> int:
    """The time now, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


class Base(DeclarativeBase):
    """Base of the models; constraints have names of their own, so that migrations can change them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Share(Base):
    """A group of schemas that is granted as a whole."""

    __tablename__ = "shares"
    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(String(255))
    name_key: Mapped[str] = mapped_column(NameKey, unique=True)
    display_name: Mapped[str | None] = mapped_column(String(255))
    comment: Mapped[str | None] = mapped_column(Text)
    properties: Mapped[dict[str, str] | None] = mapped_column(JsonText)
    from_file: Mapped[bool] = mapped_column(Boolean, default=False)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now_ms)


class Schema(Base):
    """A group of tables in a share."""

    __tablename__ = "schemas"
    __table_args__ = (UniqueConstraint("share_id", "name_key"),)
    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    share_id: Mapped[str] = mapped_column(ForeignKey("shares.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(255))
    name_key: Mapped[str] = mapped_column(NameKey)


class SharedTable(Base):
    """A Delta table in a schema: where it lies and how it may be read."""

    __tablename__ = "tables"
    __table_args__ = (UniqueConstraint("schema_id", "name_key"), Index(None, "share_id"))
    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    share_id: Mapped[str] = mapped_column(ForeignKey("shares.id", ondelete="CASCADE"))
    schema_id: Mapped[str] = mapped_column(ForeignKey("schemas.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(255))
    name_key: Mapped[str] = mapped_column(NameKey)
    location: Mapped[str] = mapped_column(Text)
    auxiliary_locations: Mapped[list[str]] = mapped_column(JsonText, default=list)
    access_modes: Mapped[list[str]] = mapped_column(JsonText)
    history_shared: Mapped[bool] = mapped_column(Boolean, default=True)
    start_version: Mapped[int | None] = mapped_column(BigInteger)
    comment: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now_ms)


class Recipient(Base):
    """Someone who reads what is shared."""

    __tablename__ = "recipients"
    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(String(255))
    name_key: Mapped[str] = mapped_column(NameKey, unique=True)
    comment: Mapped[str | None] = mapped_column(Text)
    source_ranges: Mapped[list[str]] = mapped_column(JsonText, default=list)
    from_file: Mapped[bool] = mapped_column(Boolean, default=False)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now_ms)


class Token(Base):
    """A bearer token of a recipient: only its hash is kept.

    `selector` is the start of the hash and finds the row; then the whole `digest` is compared.
    """

    __tablename__ = "tokens"
    __table_args__ = (Index(None, "recipient_id"),)
    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    recipient_id: Mapped[str] = mapped_column(ForeignKey("recipients.id", ondelete="CASCADE"))
    selector: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[int] = mapped_column(BigInteger, default=now_ms)
    expires_at: Mapped[int | None] = mapped_column(BigInteger)
    revoked_at: Mapped[int | None] = mapped_column(BigInteger)


class Activation(Base):
    """A link that gives a recipient the profile file, once."""

    __tablename__ = "activations"
    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    recipient_id: Mapped[str] = mapped_column(ForeignKey("recipients.id", ondelete="CASCADE"))
    selector: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[str] = mapped_column(String(64))
    token_lifetime_ms: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now_ms)
    expires_at: Mapped[int] = mapped_column(BigInteger)
    used_at: Mapped[int | None] = mapped_column(BigInteger)


class Grant(Base):
    """A share that a recipient may read."""

    __tablename__ = "grants"
    recipient_id: Mapped[str] = mapped_column(
        ForeignKey("recipients.id", ondelete="CASCADE"), primary_key=True
    )
    share_id: Mapped[str] = mapped_column(
        ForeignKey("shares.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    created_at: Mapped[int] = mapped_column(BigInteger, default=now_ms)


class AsyncQuery(Base):
    """A query that a client asked for asynchronously, to be fetched by its id."""

    __tablename__ = "async_queries"
    __table_args__ = (UniqueConstraint("recipient_id", "table_id", "idempotency_key"),)
    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    recipient_id: Mapped[str] = mapped_column(ForeignKey("recipients.id", ondelete="CASCADE"))
    table_id: Mapped[str] = mapped_column(ForeignKey("tables.id", ondelete="CASCADE"))
    idempotency_key: Mapped[str] = mapped_column(String(255))
    request: Mapped[str] = mapped_column(Text)
    expires_at: Mapped[int] = mapped_column(BigInteger, index=True)


class ServerSecret(Base):
    """A random value that all replicas share, such as the key that signs page tokens."""

    __tablename__ = "server_secrets"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(Text)
