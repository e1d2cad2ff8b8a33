"""The audit trail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "audit_events",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(length=128), nullable=False),
        sa.Column("interface", sa.String(length=32), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("recipient", sa.String(length=255), nullable=True),
        sa.Column("token_id", sa.String(length=36), nullable=True),
        sa.Column("table", sa.Text(), nullable=True),
        sa.Column("location", sa.Text(), nullable=True),
        sa.Column("cloud", sa.String(length=16), nullable=True),
        sa.Column("scope", sa.String(length=16), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("source_address", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_events")),
    )
    op.create_index("ix_audit_events_at", "audit_events", ["at"])
    op.create_index("ix_audit_events_recipient_at", "audit_events", ["recipient", "at"])
    op.create_index("ix_audit_events_table_at", "audit_events", ["table", "at"])
