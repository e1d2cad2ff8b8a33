"""Fixture tables on an S3 that enforces scopes, shared by a broker over HTTP, and a profile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.broker.server import RunningBroker, running_broker
from tests.clouds.ministack import Ministack
from tests.tables.fixtures import Fixture, fixture, place

SHARE = "sales"


@dataclass(frozen=True)
class Scene:
    """What a job finds."""

    broker: RunningBroker
    store: Ministack
    bucket: str
    profile: Path
    folder: Path

    def reference(self, name: str, schema: str = "dir") -> str:
        """What a user types for a fixture table."""
        return f"{self.profile}#{SHARE}.{schema}.{name}"

    def fixture(self, name: str) -> Fixture:
        """The expectations of a fixture table."""
        return fixture(name, self.folder / name)

    def location(self, name: str) -> str:
        """Where a fixture table lies."""
        return f"s3://{self.bucket}/tables/{name}/delta"

    def new_profile(self, name: str, shares: Sequence[str] = (SHARE,)) -> Path:
        """The profile file of another recipient."""
        file = self.folder / f"{name}.share"
        file.touch(mode=0o600)
        file.write_text(json.dumps(self.broker.recipient(name, shares=shares)))
        return file


@contextmanager
def running_scene(
    store: Ministack, folder: Path, tables: Sequence[str], lifetime: timedelta = timedelta(hours=1)
) -> Iterator[Scene]:
    """Put fixture tables into a bucket and share each in the schemas `dir` and `url`, by that mode."""
    bucket = store.create_bucket()
    user, keys = store.create_user()
    storage: dict[str, Any] = {
        "location": f"s3://{bucket}/",
        "aws": {
            "role_arn": store.create_role(user, [bucket]),
            "endpoint": store.endpoint,
            "sts_endpoint": store.endpoint,
            "region": store.region,
            "path_style": True,
            "access_key_id": keys.access_key_id,
            "secret_access_key": keys.secret_access_key,
        },
    }
    seconds = f"{int(lifetime.total_seconds())}s"
    with running_broker(storage=[storage], config={"credentials": {"lifetime": seconds}}) as broker:
        broker.catalog.shares.add(SHARE)
        for name in tables:
            home = f"s3://{bucket}/tables/{name}"
            table = place(name, folder, home)
            store.seed(table.home, home)
            auxiliary = [] if table.auxiliary is None else [f"{home}/auxiliary"]
            for mode in ("dir", "url"):
                broker.share_table(
                    f"{SHARE}.{mode}.{name}", f"{home}/delta", modes=(mode,), auxiliary=auxiliary
                )
        profile = folder / "ann.share"
        profile.touch(mode=0o600)
        profile.write_text(json.dumps(broker.recipient("ann", shares=[SHARE])))
        yield Scene(broker, store, bucket, profile, folder)
