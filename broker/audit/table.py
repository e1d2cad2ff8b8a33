"""The audit trail's table in SQL: beside the catalog, in the same database, so that every replica writes to
one."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text

from lakepass.broker.catalog.models import Base

audit_events = Table(
    "audit_events",
    Base.metadata,
    Column("id", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("request_id", String(128), nullable=False),
    Column("interface", String(32), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("reason", Text),
    Column("recipient", String(255)),
    Column("token_id", String(36)),
    Column("table", Text),
    Column("location", Text),
    Column("cloud", String(16)),
    Column("scope", String(16)),
    Column("expires_at", BigInteger),
    Column("source_address", String(64)),
    Index("ix_audit_events_at", "at"),
    Index("ix_audit_events_recipient_at", "recipient", "at"),
    Index("ix_audit_events_table_at", "table", "at"),
)
