"""The catalog's database: how it is opened, and brought up to the newest schema before anything is served.

SQLite runs in WAL mode with full synchronisation: a reader never waits for a writer, and a change that was
answered survives `kill -9` and a power cut. Migrations are Alembic's; replicas that start together take
turns through a lock (PostgreSQL's advisory lock, SQLite's write lock), so that each step runs once.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url

from lakepass.broker.config import ConfigurationError

_MIGRATION_LOCK = 0x6C616B6570617373  # "lakepass" in ASCII: the advisory lock's number


def database_url(text_url: str) -> URL:
    """The URL with the driver that the broker uses."""
    url = make_url(text_url)
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if not url.database:
        raise ConfigurationError("database: SQLite needs a file, such as sqlite:///lakepass.db")
    return url.set(drivername="sqlite")


def open_engine(text_url: str) -> Engine:
    """An engine for administration and migrations; requests read through `lookups` instead."""
    url = database_url(text_url)
    if url.drivername != "sqlite":
        return create_engine(url, pool_size=4, max_overflow=8, pool_pre_ping=True, hide_parameters=True)
    path = Path(url.database or "")
    if not path.parent.is_dir():
        raise ConfigurationError(f"database: the directory {path.parent} does not exist")
    engine = create_engine(url, connect_args={"timeout": 30}, hide_parameters=True)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # `_begin_immediate` begins transactions: the driver's own late BEGIN would let two writers deadlock.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def migrate(engine: Engine) -> None:
    """Bring the schema up to date; several replicas may call this at the same moment."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _MIGRATION_LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
