"""Alembic's migrations of the catalog."""
