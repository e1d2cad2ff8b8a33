"""The stage of the demo: a store and a broker with a SQLite catalog, on free loopback ports, in one folder.

Everything ends with the process that owns the stage, and the folder with it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

from lakepass.cli.demo import store
from lakepass.cli.demo.keeper import Lifeline, free_port, keep
from lakepass.cli.demo.tables import TABLES, write

BUCKET = "lake"


@dataclass(frozen=True)
class Stage:
    """What runs, and where."""

    folder: Path
    config: Path
    origin: str
    """The broker's address."""
    store: store.SeaweedFS

    @property
    def profile(self) -> Path:
        """The recipient's profile file."""
        return self.folder / "ann.share"

    def lakepass(self, *arguments: str) -> str:
        """Run a provider's command against this broker's catalog and give what it printed."""
        environment = {**os.environ, "LAKEPASS_CONFIG": str(self.config)}
        done = subprocess.run(  # noqa: S603 (our own command)
            [sys.executable, "-m", "lakepass.cli.main", *arguments],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"lakepass {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done.stdout


@contextmanager
def set_stage() -> Iterator[Stage]:
    """Start the store, fill it with the demo's tables, and start the broker."""
    import yaml

    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="lakepass-demo-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        lifeline = stack.enter_context(Lifeline(folder / "lifeline"))
        objects = store.start(folder / "store", lifeline.path, (BUCKET,))
        stack.callback(objects.stop)
        for table in TABLES:
            write(table, BUCKET, objects.storage_options())
        port = free_port()
        config = folder / "lakepass.yaml"
        config.touch(mode=0o600)
        config.write_text(yaml.safe_dump(_configuration(folder, port, objects)))
        origin = f"http://127.0.0.1:{port}"
        broker = keep(
            "the broker",
            [sys.executable, "-m", "lakepass.cli.main", "serve", "--config", str(config)],
            folder=folder / "broker",
            lifeline=lifeline.path,
        )
        stack.callback(broker.stop)
        broker.wait_until(lambda: _answers(f"{origin}/health/ready"))
        yield Stage(folder, config, origin, objects)


def _configuration(folder: Path, port: int, objects: store.SeaweedFS) -> dict[str, Any]:
    return {
        "server": {"host": "127.0.0.1", "port": port, "public_url": f"http://127.0.0.1:{port}"},
        "database": f"sqlite:///{folder / 'catalog.db'}",
        "admin": {"token_sha256": hashlib.sha256(secrets.token_bytes(32)).hexdigest()},
        "storage": [
            {
                "location": f"s3://{BUCKET}/",
                "aws": {
                    "role_arn": objects.role_arn,
                    "endpoint": objects.endpoint,
                    "sts_endpoint": objects.endpoint,
                    "region": objects.region,
                    "path_style": True,
                    "access_key_id": objects.broker.access_key_id,
                    "secret_access_key": objects.broker.secret_access_key,
                },
            }
        ],
    }


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2) as answer:  # noqa: S310 (our own loopback address)
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False
