"""Cloud Storage: gcp-storage-emulator with a gate in front (`gates/gcs.py`) that adds identities,
downscoped tokens, signed URLs and the XML API.

Service accounts: `broker` may do anything with every bucket, so that a boundary alone narrows what it
gives; `brief` is the same with tokens that live for seconds; `impersonator` has no rights but may act as
`broker`; `stranger` has none.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.transport.requests import Request
from google.cloud import storage  # type: ignore[import-untyped]  # has no types
from google.oauth2 import service_account

from lakepass.cli.demo.keeper import Server, free_ports, keep, listening
from lakepass.reader.location import Location
from tests.clouds.azurite import start_gate
from tests.clouds.gates.gcs import Settings
from tests.clouds.gates.gcs_identity import CLOUD_PLATFORM, Account
from tests.clouds.run import Run

PROJECT = "lakepass-tests"
BRIEF_SECONDS = 3.0


@dataclass(frozen=True)
class Gcs:
    """A running Cloud Storage."""

    endpoint: str
    key_files: Mapping[str, Path] = field(repr=False)
    """Service-account keys: broker, brief, impersonator, stranger."""
    servers: tuple[Server, ...] = field(repr=False)

    @property
    def token_endpoint(self) -> str:
        """The Security Token Service, where tokens are downscoped."""
        return f"{self.endpoint}/v1/token"

    @property
    def iam_endpoint(self) -> str:
        """The base of the IAM Service Account Credentials API."""
        return self.endpoint

    def email(self, name: str = "broker") -> str:
        """A service account's e-mail."""
        return f"{name}@{PROJECT}.iam.gserviceaccount.com"

    def credentials(self, name: str = "broker", scope: str = CLOUD_PLATFORM) -> service_account.Credentials:
        """A service account's credentials, as google-auth reads them from its key file."""
        kind: Any = service_account.Credentials  # google-auth has types in part
        file = str(self.key_files[name])
        credentials: service_account.Credentials = kind.from_service_account_file(file, scopes=[scope])
        return credentials

    def access_token(self, name: str = "broker", scope: str = CLOUD_PLATFORM) -> str:
        """A fresh access token of a service account."""
        credentials: Any = self.credentials(name, scope)
        credentials.refresh(Request())
        return str(credentials.token)

    def downscoped(self, boundary: Mapping[str, Any], source: str | None = None) -> str:
        """A token narrowed by a boundary, from a fresh one of the broker's account or from `source`."""
        answer = requests.post(
            self.token_endpoint,
            data={
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "subject_token": source or self.access_token(),
                "options": json.dumps(boundary),
            },
            timeout=30,
        )
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    def client(self, credentials: Any = None) -> storage.Client:
        """A google-cloud-storage client with the broker's account, or with `credentials`."""
        return storage.Client(
            PROJECT, credentials or self.credentials(), client_options={"api_endpoint": self.endpoint}
        )

    def storage_options(self, token: str) -> dict[str, Any]:
        """Keyword arguments for obstore's GCSStore; deltalake takes no bearer token for Cloud Storage."""
        return {
            "credential_provider": lambda: {"token": token, "expires_at": None},
            "config": {"google_base_url": self.endpoint},
            "client_options": {"allow_http": True},
        }

    def create_bucket(self, name: str | None = None) -> str:
        """A new bucket; without a name, one that no other test has."""
        bucket = name or f"lake-{secrets.token_hex(5)}"
        self.client().create_bucket(bucket)
        return bucket

    def seed(self, directory: Path, location: Location | str) -> None:
        """Copy every file below `directory` to `location`."""
        target = Location.parse(str(location), allow_root=True)
        bucket = self.client().bucket(target.bucket)
        for file in sorted(directory.rglob("*")):
            if file.is_file():
                name = target.prefix + file.relative_to(directory).as_posix()
                bucket.blob(name).upload_from_filename(str(file), content_type="application/octet-stream")


def start(run: Run) -> Gcs:
    """Start the emulator and its gate, without buckets."""
    behind, port = free_ports(2)
    folder = run.folder / "gcs"
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--in-memory", "--quiet"]
    emulator = keep(
        "gcp-storage-emulator",
        [*command, "--host", "127.0.0.1", "--port", str(behind)],
        folder=folder,
        lifeline=run.lifeline,
        environment={"PATH": os.environ["PATH"], "HOME": str(folder)},
        abrupt=True,
    )
    endpoint = f"http://127.0.0.1:{port}"
    accounts = {
        name: Account(f"{name}@{PROJECT}.iam.gserviceaccount.com", _private_key(), lifetime, rights, acts_for)
        for name, lifetime, rights, acts_for in (
            ("broker", 3600.0, True, []),
            ("brief", BRIEF_SECONDS, True, []),
            ("impersonator", 3600.0, False, [f"broker@{PROJECT}.iam.gserviceaccount.com"]),
            ("stranger", 3600.0, False, []),
        )
    }
    settings = Settings(
        f"http://127.0.0.1:{behind}", port, [asdict(account) for account in accounts.values()]
    )
    gate = start_gate("gcs", asdict(settings), run)
    key_files = {
        name: _key_file(folder / f"{name}.json", account, endpoint) for name, account in accounts.items()
    }
    emulator.wait_until(lambda: listening(behind))
    gate.wait_until(lambda: listening(port))
    return Gcs(endpoint, key_files, (emulator, gate))


def stop(store: Gcs) -> None:
    """End it before the run does."""
    for server in store.servers:
        server.stop()


def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def _key_file(path: Path, account: Account, endpoint: str) -> Path:
    content = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": account.private_key,
        "client_email": account.email,
        "client_id": "1",
        "token_uri": f"{endpoint}/token",
        "universe_domain": "googleapis.com",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content))
    return path
