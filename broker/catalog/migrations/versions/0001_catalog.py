"""The catalog: shares, schemas, tables, recipients, tokens, activations, grants, async queries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_NAME_KEY = sa.String(length=1024).with_variant(sa.VARCHAR(length=1024, collation="C"), "postgresql")


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "recipients",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("name_key", _NAME_KEY, nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("source_ranges", sa.Text(), nullable=False),
        sa.Column("from_file", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recipients")),
        sa.UniqueConstraint("name_key", name=op.f("uq_recipients_name_key")),
    )
    op.create_table(
        "server_secrets",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_server_secrets")),
    )
    op.create_table(
        "shares",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("name_key", _NAME_KEY, nullable=False),
        sa.Column("display_name", sa.String(length=255), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("properties", sa.Text(), nullable=True),
        sa.Column("from_file", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shares")),
        sa.UniqueConstraint("name_key", name=op.f("uq_shares_name_key")),
    )
    op.create_table(
        "activations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("recipient_id", sa.String(length=36), nullable=False),
        sa.Column("selector", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("token_lifetime_ms", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["recipient_id"], ["recipients.id"], name=op.f("fk_activations_recipient_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_activations")),
        sa.UniqueConstraint("selector", name=op.f("uq_activations_selector")),
    )
    op.create_table(
        "grants",
        sa.Column("recipient_id", sa.String(length=36), nullable=False),
        sa.Column("share_id", sa.String(length=36), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["recipient_id"], ["recipients.id"], name=op.f("fk_grants_recipient_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["share_id"], ["shares.id"], name=op.f("fk_grants_share_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("recipient_id", "share_id", name=op.f("pk_grants")),
    )
    op.create_index(op.f("ix_grants_share_id"), "grants", ["share_id"], unique=False)
    op.create_table(
        "schemas",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("share_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("name_key", _NAME_KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["share_id"], ["shares.id"], name=op.f("fk_schemas_share_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schemas")),
        sa.UniqueConstraint("share_id", "name_key", name=op.f("uq_schemas_share_id_name_key")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("recipient_id", sa.String(length=36), nullable=False),
        sa.Column("selector", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["recipient_id"], ["recipients.id"], name=op.f("fk_tokens_recipient_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("selector", name=op.f("uq_tokens_selector")),
    )
    op.create_index(op.f("ix_tokens_recipient_id"), "tokens", ["recipient_id"], unique=False)
    op.create_table(
        "tables",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("share_id", sa.String(length=36), nullable=False),
        sa.Column("schema_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("name_key", _NAME_KEY, nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("auxiliary_locations", sa.Text(), nullable=False),
        sa.Column("access_modes", sa.Text(), nullable=False),
        sa.Column("history_shared", sa.Boolean(), nullable=False),
        sa.Column("start_version", sa.BigInteger(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["schema_id"], ["schemas.id"], name=op.f("fk_tables_schema_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["share_id"], ["shares.id"], name=op.f("fk_tables_share_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tables")),
        sa.UniqueConstraint("schema_id", "name_key", name=op.f("uq_tables_schema_id_name_key")),
    )
    op.create_index(op.f("ix_tables_share_id"), "tables", ["share_id"], unique=False)
    op.create_table(
        "async_queries",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("recipient_id", sa.String(length=36), nullable=False),
        sa.Column("table_id", sa.String(length=36), nullable=False),
        sa.Column("idempotency_key", sa.String(length=255), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["recipient_id"],
            ["recipients.id"],
            name=op.f("fk_async_queries_recipient_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name=op.f("fk_async_queries_table_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_async_queries")),
        sa.UniqueConstraint(
            "recipient_id",
            "table_id",
            "idempotency_key",
            name=op.f("uq_async_queries_recipient_id_table_id_idempotency_key"),
        ),
    )
    op.create_index(op.f("ix_async_queries_expires_at"), "async_queries", ["expires_at"], unique=False)


def downgrade() -> None:
    """Undo."""
    op.drop_index(op.f("ix_async_queries_expires_at"), table_name="async_queries")
    op.drop_table("async_queries")
    op.drop_index(op.f("ix_tables_share_id"), table_name="tables")
    op.drop_table("tables")
    op.drop_index(op.f("ix_tokens_recipient_id"), table_name="tokens")
    op.drop_table("tokens")
    op.drop_table("schemas")
    op.drop_index(op.f("ix_grants_share_id"), table_name="grants")
    op.drop_table("grants")
    op.drop_table("activations")
    op.drop_table("shares")
    op.drop_table("server_secrets")
    op.drop_table("recipients")
