"""Alembic's environment: it runs on the connection that `database.migrate` holds the lock on."""

from __future__ import annotations

from alembic import context

from lakepass.broker.catalog.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transactional_ddl=False,  # the caller's transaction covers every step
)
context.run_migrations()
