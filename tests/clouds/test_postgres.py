"""The PostgreSQL of the tests is a real one, reached both ways, and each test has a database of its own."""

from __future__ import annotations

import psycopg
import pytest

from tests.clouds.postgres import Postgres


def test_is_reached_by_tcp_and_by_socket(postgres: Postgres) -> None:
    for address in (postgres.url(), postgres.socket_url()):
        with psycopg.connect(address) as connection:
            row = connection.execute("SHOW server_version_num").fetchone()
            assert row is not None
            assert int(row[0]) >= 120000


def test_databases_are_apart(postgres: Postgres) -> None:
    with psycopg.connect(postgres.create_database()) as first:
        first.execute("CREATE TABLE mine (id integer)")
    with psycopg.connect(postgres.create_database()) as second, pytest.raises(psycopg.errors.UndefinedTable):
        second.execute("SELECT * FROM mine")


def test_a_wrong_password_is_refused(postgres: Postgres) -> None:
    address = postgres.url().replace(postgres.password, "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(address)
