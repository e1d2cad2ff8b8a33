"""SeaweedFS: the second, independent S3 + STS, the one the demo runs on (`cli/demo/store.py`).

Its shortest session is 900 seconds, it knows no external ids, and it compares object names without regard
to case: expiry, external ids and case twins are judged by ministack.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakepass.cli.demo import store as demo
from lakepass.reader.credentials import AwsKeys
from lakepass.reader.location import Location
from tests.clouds.ministack import seed_s3
from tests.clouds.run import Run


@dataclass(frozen=True)
class SeaweedFS(demo.SeaweedFS):
    """The demo's store, with what tests need beside it."""

    def create_bucket(self, name: str | None = None) -> str:
        """A new bucket; without a name, one that no other test has."""
        bucket = name or f"lake-{secrets.token_hex(5)}"
        self.s3().create_bucket(Bucket=bucket)
        return bucket

    def assume(self, policy: Mapping[str, Any] | None = None) -> AwsKeys:
        """Keys of the data role for 900 seconds, narrowed by a session policy."""
        optional: dict[str, Any] = {} if policy is None else {"Policy": json.dumps(policy)}
        answer = self.sts().assume_role(
            RoleArn=self.role_arn, RoleSessionName="test", DurationSeconds=900, **optional
        )
        made = answer["Credentials"]
        return AwsKeys(made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])

    def seed(self, directory: Path, location: Location | str) -> None:
        """Copy every file below `directory` to `location`."""
        seed_s3(self.s3(), directory, location)


def start(run: Run) -> SeaweedFS:
    """Start it without buckets."""
    started = demo.start(run.folder / "seaweedfs", run.lifeline)
    return SeaweedFS(started.endpoint, started.admin, started.broker, started.servers)


def stop(store: SeaweedFS) -> None:
    """End it before the run does."""
    store.stop()
