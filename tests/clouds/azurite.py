"""Azurite, Microsoft's own emulator of Blob Storage, with a gate in front (`gates/azure.py`) that adds
directory SAS, Data Lake shapes and a managed identity.

`endpoint` is encrypted with a certificate of the run's own authority (`ca_file`); `plain_endpoint` is the
same account for clients that cannot be told to trust it. Both are path style: the account is the first
segment.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import certifi
import trustme
from azure.core.credentials import TokenCredential
from azure.identity import ManagedIdentityCredential
from azure.storage.blob import (
    AccountSasPermissions,
    BlobServiceClient,
    ResourceTypes,
    UserDelegationKey,
    generate_account_sas,
)

from lakepass.cli.demo.keeper import Server, free_ports, keep, listening
from lakepass.reader.location import Location
from tests import toolchain
from tests.clouds.gates.azure import Settings
from tests.clouds.run import Run
from tests.clouds.tools import ROOT

PACKAGE = Path(__file__).with_name("npm")
ACCOUNT = "lakeaccount"
BROKER_CLIENT = "22222222-2222-4222-8222-222222222222"
"""A managed identity that may have delegation keys, and may read and write: a SAS alone narrows what it
gives.
"""
STRANGER_CLIENT = "33333333-3333-4333-8333-333333333333"
"""A managed identity without any role."""


@dataclass(frozen=True)
class Azurite:
    """A running storage account."""

    endpoint: str
    plain_endpoint: str
    key: str = field(repr=False)
    ca_file: Path
    identity: Mapping[str, str] = field(repr=False)
    """What a process needs in its environment to have the managed identity, and to trust the certificate."""
    servers: tuple[Server, ...] = field(repr=False)
    account: str = ACCOUNT

    @property
    def authority(self) -> str:
        """Host and port of the encrypted endpoint."""
        return self.endpoint.removeprefix("https://").partition("/")[0]

    @property
    def plain_authority(self) -> str:
        """Host and port of the plain endpoint."""
        return self.plain_endpoint.removeprefix("http://").partition("/")[0]

    def service(
        self, credential: str | TokenCredential | None = None, *, plain: bool = False
    ) -> BlobServiceClient:
        """A client of the account: with a SAS, a token credential, or the account's key."""
        endpoint = self.plain_endpoint if plain else self.endpoint
        return BlobServiceClient(
            endpoint, credential or self.key, connection_verify=str(self.ca_file), retry_total=0
        )

    def create_container(self, name: str | None = None) -> str:
        """A new container; without a name, one that no other test has."""
        container = name or f"lake-{secrets.token_hex(5)}"
        self.service().create_container(container)
        return container

    def location(self, container: str, path: str) -> str:
        """A directory of the account, as it is written in a catalog."""
        return f"abfss://{container}@{self.account}.dfs.core.windows.net/{path}"

    def token_credential(self, client_id: str = BROKER_CLIENT) -> TokenCredential:
        """A managed identity; needs `identity` in this process's environment."""
        return ManagedIdentityCredential(client_id=client_id)

    def delegation_key(
        self, lifetime: timedelta = timedelta(hours=1), client_id: str = BROKER_CLIENT
    ) -> UserDelegationKey:
        """A user delegation key of the broker's identity; needs `identity` in this process's environment."""
        now = datetime.now(UTC)
        client = self.service(self.token_credential(client_id))
        return client.get_user_delegation_key(now - timedelta(minutes=1), now + lifetime)

    def storage_options(self, sas: str) -> dict[str, str]:
        """For deltalake and other users of object_store, over the plain endpoint."""
        return {
            "azure_storage_account_name": self.account,
            "azure_storage_sas_token": sas,
            "azure_storage_endpoint": self.plain_endpoint,
            "allow_http": "true",
        }

    def seed(self, directory: Path, location: Location | str) -> None:
        """Copy every file below `directory` to `location`."""
        target = Location.parse(str(location), allow_root=True)
        client = self.service(plain=True).get_container_client(target.bucket)
        for file in sorted(directory.rglob("*")):
            if file.is_file():
                name = target.prefix + file.relative_to(directory).as_posix()
                client.upload_blob(name, file.read_bytes(), overwrite=True)


def start(run: Run) -> Azurite:
    """Start Azurite and its gate with an empty account."""
    node = toolchain.node()
    program = (
        toolchain.npm_package("azurite", PACKAGE)
        / "node_modules"
        / "azurite"
        / "dist"
        / "src"
        / "blob"
        / "main.js"
    )
    folder = run.folder / "azurite"
    folder.mkdir()
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    ca_file, certificate, private_key = folder / "ca.pem", folder / "certificate.pem", folder / "key.pem"
    ca_file.write_bytes(Path(certifi.where()).read_bytes() + authority.cert_pem.bytes())
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    private_key.write_bytes(issued.private_key_pem.bytes())
    key = base64.b64encode(secrets.token_bytes(64)).decode()
    behind, plain, encrypted = free_ports(3)
    options = {"blobHost": "127.0.0.1", "blobPort": str(behind), "location": str(folder), "oauth": "basic"}
    options |= {"cert": str(certificate), "key": str(private_key)}
    flags = ["--loose", "--skipApiVersionCheck", "--silent", "--disableTelemetry"]
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    emulator = keep(
        "Azurite",
        [node.node, str(program), *arguments, *flags],
        folder=folder,
        lifeline=run.lifeline,
        environment={"PATH": os.environ["PATH"], "HOME": str(folder), "AZURITE_ACCOUNTS": f"{ACCOUNT}:{key}"},
        abrupt=True,
    )
    settings = Settings(
        upstream=f"https://127.0.0.1:{behind}",
        ca_file=str(ca_file),
        certificate=str(certificate),
        private_key=str(private_key),
        plain_port=plain,
        encrypted_port=encrypted,
        account=ACCOUNT,
        account_sas=_account_sas(key),
        identity_header=secrets.token_hex(16),
        token_secret=secrets.token_hex(32),
        identities={BROKER_CLIENT: ["delegator", "contributor"], STRANGER_CLIENT: []},
    )
    gate = start_gate("azure", asdict(settings), run)
    emulator.wait_until(lambda: listening(behind))
    gate.wait_until(lambda: listening(plain) and listening(encrypted))
    identity = {
        "IDENTITY_ENDPOINT": f"http://127.0.0.1:{plain}/identity/token",
        "IDENTITY_HEADER": settings.identity_header,
        "AZURE_CLIENT_ID": BROKER_CLIENT,
        "REQUESTS_CA_BUNDLE": str(ca_file),
        "SSL_CERT_FILE": str(ca_file),
    }
    base = f"https://127.0.0.1:{encrypted}/{ACCOUNT}"
    return Azurite(base, f"http://127.0.0.1:{plain}/{ACCOUNT}", key, ca_file, identity, (emulator, gate))


def stop(store: Azurite) -> None:
    """End it before the run does."""
    for server in store.servers:
        server.stop()


def start_gate(name: str, settings: Mapping[str, Any], run: Run) -> Server:
    """Start the gate `name` as a process of its own, which reads its settings from a file."""
    folder = run.folder / f"{name}-gate"
    folder.mkdir()
    file = folder / "settings.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps(settings))
    return keep(
        f"the {name} gate",
        [sys.executable, "-m", f"tests.clouds.gates.{name}", str(file)],
        folder=folder,
        lifeline=run.lifeline,
        environment={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        abrupt=True,
    )


def _account_sas(key: str) -> str:
    return generate_account_sas(
        ACCOUNT,
        key,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True),
        datetime.now(UTC) + timedelta(days=2),
        start=datetime.now(UTC) - timedelta(minutes=5),
    )
