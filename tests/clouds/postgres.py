"""PostgreSQL, from the machine or from PyPI: `initdb` into a folder of the run, one server on loopback and
on a UNIX socket.

PostgreSQL refuses to run as root; there it runs as the machine's `postgres` user, or `nobody`. Each test
takes a database of its own with `create_database`.
"""

from __future__ import annotations

import getpass
import os
import pwd
import secrets
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from lakepass.cli.demo.keeper import Server, free_port, keep
from tests.clouds.run import Run, Unavailable
from tests.toolchain import postgres_programs


@dataclass(frozen=True)
class Postgres:
    """A running server with one superuser."""

    port: int
    user: str
    password: str = field(repr=False)
    socket_folder: Path
    servers: tuple[Server, ...] = field(repr=False)

    def url(self, database: str = "postgres", scheme: str = "postgresql") -> str:
        """An address over TCP."""
        return f"{scheme}://{self.user}:{self.password}@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str = "postgres", scheme: str = "postgresql") -> str:
        """An address over the UNIX socket."""
        place = f"host={self.socket_folder}&port={self.port}"
        return f"{scheme}://{self.user}:{self.password}@/{database}?{place}"

    def create_database(self, name: str | None = None) -> str:
        """A new empty database; gives its address over TCP."""
        database = name or f"lakepass_{secrets.token_hex(5)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}"'.encode())
        return self.url(database)


def start(run: Run, programs: Path | None = None) -> Postgres:
    """Make a cluster and start it; it is gone with the run, so nothing is flushed to disk."""
    programs = programs or postgres_programs()
    user = _unprivileged_user()
    folder = run.folder / "postgres"
    folder.mkdir()
    password = secrets.token_hex(12)
    password_file = folder / "password"
    password_file.write_text(password)
    if user is not None:
        shutil.chown(folder, user)
        shutil.chown(password_file, user)
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync", "-U", "lakepass"]
    initialised = subprocess.run(
        [programs / "initdb", "-D", folder / "data", "--pwfile", password_file, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        user=user,
        group=None if user is None else pwd.getpwnam(user).pw_gid,
        extra_groups=None if user is None else [],
    )
    if initialised.returncode != 0:
        raise Unavailable(f"PostgreSQL's initdb failed: {initialised.stderr.strip()[-300:]}")
    port = free_port()
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": str(folder),
        "fsync": "off",
        "max_connections": "200",
    }
    arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server = keep(
        "PostgreSQL",
        [str(programs / "postgres"), "-D", str(folder / "data"), *arguments],
        folder=folder,
        lifeline=run.lifeline,
        user=user,
    )
    store = Postgres(port, "lakepass", password, folder, (server,))
    server.wait_until(lambda: _answers(store))
    return store


def stop(store: Postgres) -> None:
    """End it before the run does."""
    for server in store.servers:
        server.stop()


def _unprivileged_user() -> str | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise Unavailable(f"PostgreSQL does not run as {getpass.getuser()}, and there is no user to run it as")


def _answers(store: Postgres) -> bool:
    try:
        with psycopg.connect(store.url(), connect_timeout=2) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False
