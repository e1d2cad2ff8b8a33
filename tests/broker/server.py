"""A real broker in a process of its own, with a catalog that a test fills directly.

with running_broker(storage=[…]) as broker:
    broker.share_table("sales.eu.orders", "s3://lake/orders")
    profile = broker.recipient("ann", shares=["sales"])
    with broker.client(profile) as client:
        client.get("/shares")
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import yaml

from lakepass.broker.catalog.models import SharedTable
from lakepass.broker.catalog.shares import TableDefinition, split_name
from lakepass.broker.catalog.store import Catalog
from lakepass.broker.config import Settings
from lakepass.broker.errors import Conflict
from lakepass.cli.demo.keeper import Lifeline, Server, free_port, keep
from tests.clouds.ministack import Ministack

ADMIN_TOKEN = "local-admin-token"


@dataclass(frozen=True)
class RunningBroker:
    """A broker that answers at `url`, and its catalog."""

    url: str
    """With the sharing prefix: what a profile names as its endpoint."""
    origin: str
    settings: Settings
    catalog: Catalog
    server: Server
    folder: Path

    def share_table(
        self,
        name: str,
        location: str,
        *,
        modes: Sequence[str] = ("url",),
        history: bool = True,
        start_version: int | None = None,
        auxiliary: Sequence[str] = (),
    ) -> SharedTable:
        """Put a table into the catalog, with its share and schema; the location is not opened."""
        share, schema, table = split_name(name, 3)
        with suppress(Conflict):
            self.catalog.shares.add(share)
        definition = TableDefinition(
            table,
            location,
            auxiliary_locations=auxiliary,
            access_modes=modes,
            history_shared=history,
            start_version=start_version,
        )
        return self.catalog.shares.add_table(share, schema, definition)

    def recipient(
        self, name: str, shares: Sequence[str] = (), lifetime: timedelta | None = None
    ) -> dict[str, Any]:
        """A new recipient with grants on `shares`; gives its profile."""
        self.catalog.recipients.add(name)
        for share in shares:
            self.catalog.recipients.grant(name, share)
        token = self.catalog.recipients.issue_token(name, lifetime)
        return self.profile(token.secret)

    def profile(self, token: str) -> dict[str, Any]:
        """A profile file's content."""
        return {"shareCredentialsVersion": 1, "endpoint": self.url + "/", "bearerToken": token}

    def client(self, profile: Mapping[str, Any] | None = None, **options: Any) -> httpx.Client:
        """An HTTP client below the sharing prefix, with the profile's token."""
        headers = {} if profile is None else {"Authorization": f"Bearer {profile['bearerToken']}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **options)

    def admin(self) -> httpx.Client:
        """An HTTP client for the admin API."""
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        return httpx.Client(base_url=f"{self.origin}/admin", headers=headers, timeout=60)

    def log(self) -> str:
        """Everything the server has printed."""
        return self.server.log.read_text(errors="replace")


@contextmanager
def running_broker(
    *,
    storage: Sequence[Mapping[str, Any]] = (),
    database: str | None = None,
    server: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[RunningBroker]:
    """Start `lakepass serve` on a free port; a SQLite catalog unless `database` names another."""

    with tempfile.TemporaryDirectory(prefix="lakepass-broker-") as temporary:
        folder = Path(temporary)
        content: dict[str, Any] = {
            "server": {"host": "127.0.0.1", "port": free_port(), **(server or {})},
            "database": database or f"sqlite:///{folder / 'catalog.db'}",
            "admin": {"token_sha256": hashlib.sha256(ADMIN_TOKEN.encode()).hexdigest()},
            "storage": [dict(entry) for entry in storage],
            **(config or {}),
        }
        file = folder / "lakepass.yaml"
        file.write_text(yaml.safe_dump(content))
        settings = Settings.load(file)
        origin = f"http://127.0.0.1:{settings.server.port}"
        with Lifeline(folder / "lifeline") as lifeline:
            process = keep(
                "broker",
                [sys.executable, "-m", "lakepass.cli.main", "serve", "--config", str(file)],
                folder=folder / "run",
                lifeline=lifeline.path,
                environment={**os.environ, **(environment or {})},
            )
            process.wait_until(lambda: _ready(origin))
            catalog = Catalog(settings)
            try:
                yield RunningBroker(
                    origin + settings.server.prefix, origin, settings, catalog, process, folder
                )
            finally:
                catalog.close()
                process.stop()


def s3_storage(store: Ministack, location: str, **aws: Any) -> dict[str, Any]:
    """A storage entry for ministack with its root keys: `url` only, unless `aws` gives a role."""
    settings = {
        "endpoint": store.endpoint,
        "sts_endpoint": store.endpoint,
        "region": store.region,
        "path_style": True,
        "access_key_id": store.root.access_key_id,
        "secret_access_key": store.root.secret_access_key,
        **aws,
    }
    return {"location": location, "aws": settings}


def _ready(origin: str) -> bool:
    try:
        return httpx.get(f"{origin}/health/ready", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False
