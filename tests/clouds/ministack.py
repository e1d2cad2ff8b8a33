"""ministack: S3, STS and IAM in one process, which checks signatures, identity policies, trust policies
with external ids, session policies and expiry.

It accepts any DurationSeconds, so that a test can hold a token that ends in seconds. It does not know the
escapes `${*}`, `${?}` and `${$}`: paths with such characters cannot be judged here.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from lakepass.cli.demo.keeper import Server, free_port, keep, listening
from lakepass.reader.credentials import AwsKeys
from lakepass.reader.location import Location
from tests.clouds.run import Run
from tests.clouds.tools import python_environment

if TYPE_CHECKING:
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sts import STSClient

REQUIREMENT = "ministack==1.5.33"
ACCOUNT = "123456789012"
REGION = "us-east-1"
CONSTRAINTS = Path(__file__).with_name("ministack-constraints.txt")


@dataclass(frozen=True)
class Ministack:
    """A running ministack: where it is, and the account's root keys."""

    endpoint: str
    root: AwsKeys
    servers: tuple[Server, ...] = field(repr=False)
    region: str = REGION
    account: str = ACCOUNT

    def s3(self, keys: AwsKeys | None = None) -> S3Client:
        """An S3 client with `keys`, or the root's."""
        return boto3.client("s3", **self._arguments(keys))

    def sts(self, keys: AwsKeys | None = None) -> STSClient:
        """An STS client with `keys`, or the root's; it lets a test ask for a life of seconds."""
        return boto3.client("sts", **self._arguments(keys))

    def iam(self, keys: AwsKeys | None = None) -> IAMClient:
        """An IAM client with `keys`, or the root's."""
        return boto3.client("iam", **self._arguments(keys))

    def storage_options(self, keys: AwsKeys | None = None) -> dict[str, str]:
        """For deltalake and other users of object_store."""
        keys = keys or self.root
        options = {
            "aws_access_key_id": keys.access_key_id,
            "aws_secret_access_key": keys.secret_access_key,
            "aws_region": self.region,
            "aws_endpoint": self.endpoint,
            "aws_allow_http": "true",
        }
        return options if keys.session_token is None else {**options, "aws_session_token": keys.session_token}

    def create_bucket(self, name: str | None = None) -> str:
        """A new bucket; without a name, one that no other test has."""
        bucket = name or f"lake-{secrets.token_hex(5)}"
        self.s3().create_bucket(Bucket=bucket)
        return bucket

    def create_user(
        self, name: str | None = None, policy: Mapping[str, Any] | None = None
    ) -> tuple[str, AwsKeys]:
        """A user such as the broker runs as: its ARN and long-lived keys.

        Without `policy` it may assume any role that trusts it, and nothing else.
        """
        user = name or f"broker-{secrets.token_hex(5)}"
        iam = self.iam()
        arn = iam.create_user(UserName=user)["User"]["Arn"]
        document = policy or statement(["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"], ["*"])
        iam.put_user_policy(UserName=user, PolicyName="inline", PolicyDocument=json.dumps(document))
        made = iam.create_access_key(UserName=user)["AccessKey"]
        return arn, AwsKeys(made["AccessKeyId"], made["SecretAccessKey"])

    def create_role(
        self,
        trusted: str,
        buckets: list[str],
        *,
        external_id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> str:
        """A role that `trusted` (an ARN) may assume, with everything allowed on `buckets`; gives its ARN."""
        role = name or f"data-{secrets.token_hex(5)}"
        iam = self.iam()
        trust = {
            "Effect": "Allow",
            "Principal": {"AWS": trusted},
            "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
        }
        if external_id is not None:
            trust["Condition"] = {"StringEquals": {"sts:ExternalId": external_id}}
        document = {"Version": "2012-10-17", "Statement": [trust]}
        arn = iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(document))["Role"]["Arn"]
        resources = [f"arn:aws:s3:::{bucket}{rest}" for bucket in buckets for rest in ("", "/*")]
        permissions = policy or statement(["s3:*"], resources)
        iam.put_role_policy(RoleName=role, PolicyName="inline", PolicyDocument=json.dumps(permissions))
        return arn

    def assume(
        self,
        role: str,
        keys: AwsKeys,
        policy: Mapping[str, Any] | None = None,
        *,
        lifetime: timedelta = timedelta(hours=1),
        external_id: str | None = None,
    ) -> AwsKeys:
        """Temporary keys of `role`, narrowed by a session policy."""
        optional: dict[str, Any] = {}
        if policy is not None:
            optional["Policy"] = json.dumps(policy)
        if external_id is not None:
            optional["ExternalId"] = external_id
        answer = self.sts(keys).assume_role(
            RoleArn=role, RoleSessionName="test", DurationSeconds=int(lifetime.total_seconds()), **optional
        )
        made = answer["Credentials"]
        return AwsKeys(made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])

    def seed(self, directory: Path, location: Location | str) -> None:
        """Copy every file below `directory` to `location`."""
        seed_s3(self.s3(), directory, location)

    def _arguments(self, keys: AwsKeys | None) -> dict[str, Any]:
        keys = keys or self.root
        return {
            "endpoint_url": self.endpoint,
            "region_name": self.region,
            "aws_access_key_id": keys.access_key_id,
            "aws_secret_access_key": keys.secret_access_key,
            "aws_session_token": keys.session_token,
            # A life below 900 s is refused by botocore, not by ministack.
            "config": Config(
                parameter_validation=False, s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}
            ),
        }


def statement(actions: list[str], resources: list[str]) -> dict[str, Any]:
    """A policy document that allows `actions` on `resources`."""
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": actions, "Resource": resources}],
    }


def seed_s3(client: S3Client, directory: Path, location: Location | str) -> None:
    """Copy every file below `directory` to `location` in any S3."""
    target = Location.parse(str(location), allow_root=True)
    for file in sorted(directory.rglob("*")):
        if file.is_file():
            key = target.prefix + file.relative_to(directory).as_posix()
            client.put_object(Bucket=target.bucket, Key=key, Body=file.read_bytes())


def start(run: Run) -> Ministack:
    """Start ministack with an empty account."""
    python = python_environment("ministack", REQUIREMENT, CONSTRAINTS)
    port = free_port()
    root = AwsKeys("AKIALOCALROOT0000000", secrets.token_hex(20))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(run.folder / "ministack"),
        "AUTH": "true",
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": "s3,iam,sts",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "AWS_ACCESS_KEY_ID": root.access_key_id,
        "AWS_SECRET_ACCESS_KEY": root.secret_access_key,
    }
    server = keep(
        "ministack",
        [str(python), "-m", "ministack"],
        folder=run.folder / "ministack",
        lifeline=run.lifeline,
        environment=environment,
    )
    server.wait_until(lambda: listening(port))
    return Ministack(f"http://127.0.0.1:{port}", root, (server,))


def stop(store: Ministack) -> None:
    """End it before the run does."""
    for server in store.servers:
        server.stop()
