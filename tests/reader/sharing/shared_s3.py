"""A broker on ministack with fixture tables in a bucket, and a profile for a recipient of them."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakepass.cli.demo.keeper import keep, listening
from tests.broker.server import RunningBroker, running_broker, s3_storage
from tests.clouds.ministack import Ministack


@dataclass
class SharedOnS3:
    broker: RunningBroker
    store: Ministack
    bucket: str
    profile: dict[str, Any]

    def add(
        self, name: str, folder: Path, modes: Sequence[str] = ("url", "dir"), auxiliary: Sequence[str] = ()
    ) -> str:
        """Put a table into the bucket and into the share; gives its full name."""
        location = f"s3://{self.bucket}/{name}"
        self.store.seed(folder, location)
        self.broker.share_table(f"s.d.{name}", location, modes=modes, auxiliary=auxiliary)
        return f"s.d.{name}"

    def restart_broker(self) -> None:
        """End the broker and start another at the same address, on the same catalog."""
        broker = self.broker
        broker.server.stop()
        again = keep(
            "broker-again",
            [
                sys.executable,
                "-m",
                "lakepass.cli.main",
                "serve",
                "--config",
                str(broker.folder / "lakepass.yaml"),
            ],
            folder=broker.folder / "again",
            lifeline=broker.folder / "lifeline",
            environment=dict(os.environ),
        )
        again.wait_until(lambda: listening(broker.settings.server.port))

    def profile_file(self, folder: Path) -> Path:
        path = folder / "me.share"
        path.write_text(json.dumps(self.profile))
        path.chmod(0o600)
        return path

    def credential_requests(self) -> int:
        """How often the broker was asked for a credential, by its own audit."""
        return self.broker.log().count("temporary-table-credentials")


@contextmanager
def sharing_on_s3(store: Ministack, lifetime: str = "1h", **config: Any) -> Iterator[SharedOnS3]:
    bucket = store.create_bucket(f"client-{secrets.token_hex(5)}")
    arn, keys = store.create_user()
    role = store.create_role(arn, [bucket])
    entry = s3_storage(
        store,
        f"s3://{bucket}/",
        role_arn=role,
        access_key_id=keys.access_key_id,
        secret_access_key=keys.secret_access_key,
    )
    with running_broker(storage=[entry], config={"credentials": {"lifetime": lifetime}, **config}) as broker:
        broker.catalog.shares.add("s")
        profile = broker.recipient("ann", shares=["s"])
        yield SharedOnS3(broker, store, bucket, profile)
