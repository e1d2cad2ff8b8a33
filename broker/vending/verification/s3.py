"""Attacks on S3 and its likes, with boto3."""

from __future__ import annotations

from typing import Any

from lakepass.broker.vending.verification.probe import Missing, Refused
from lakepass.reader.credentials import AwsKeys, StoreSettings
from lakepass.reader.errors import MissingExtraError
from lakepass.reader.location import Location


class S3Probe:
    """One bucket, one set of temporary keys."""

    def __init__(self, location: Location, keys: AwsKeys, store: StoreSettings) -> None:
        try:
            import boto3
            from botocore.config import Config
        except ImportError:
            raise MissingExtraError("aws", "Verifying credentials for S3") from None
        self._bucket = location.bucket
        self._client = boto3.client(
            "s3",
            aws_access_key_id=keys.access_key_id,
            aws_secret_access_key=keys.secret_access_key,
            aws_session_token=keys.session_token,
            endpoint_url=store.endpoint,
            region_name=store.region or "us-east-1",
            config=Config(
                s3={"addressing_style": "path" if store.path_style else "auto"},
                connect_timeout=5,
                read_timeout=20,
            ),
        )

    def list(self, prefix: str | None) -> list[str]:
        """Names that begin with `prefix`."""
        options = {} if prefix is None else {"Prefix": prefix}
        answer = self._call("list_objects_v2", MaxKeys=200, **options)
        return [entry["Key"] for entry in answer.get("Contents", [])]

    def read(self, name: str) -> None:
        """The first byte."""
        self._call("get_object", Key=name, Range="bytes=0-0")

    def write(self, name: str) -> None:
        """A small object."""
        self._call("put_object", Key=name, Body=b"lakepass verify")

    def delete(self, name: str) -> None:
        """Delete."""
        self._call("delete_object", Key=name)

    def copy(self, source: str, target: str) -> None:
        """Copy within the bucket."""
        self._call("copy_object", Key=target, CopySource={"Bucket": self._bucket, "Key": source})

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def _call(self, operation: str, **arguments: Any) -> Any:
        from botocore.exceptions import ClientError

        try:
            return getattr(self._client, operation)(Bucket=self._bucket, **arguments)
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            code = error.response.get("Error", {}).get("Code")
            if status in (401, 403) or code in ("ExpiredToken", "InvalidToken"):
                raise Refused(str(code)) from None
            if status == 404:
                raise Missing(str(code)) from None
            if status == 416:  # an empty object has no first byte
                return {}
            raise
