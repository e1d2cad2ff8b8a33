"""A broker with fixture tables in S3: `share.tables.<fixture>`, and some shared more narrowly."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.broker.server import RunningBroker, running_broker, s3_storage
from tests.clouds.ministack import Ministack
from tests.tables.fixtures import fixture

TABLES = (
    "plain",
    "partitioned",
    "deletion_vectors",
    "deletion_vectors_inline",
    "deletion_vectors_partitioned",
    "mapping_name",
    "mapping_id",
    "mapping_deletion_vectors",
    "change_feed",
    "change_feed_deletion_vectors",
    "change_feed_mapping",
    "change_feed_enabled_later",
    "schema_evolution",
    "checkpoint_classic",
    "checkpoint_truncated",
    "in_commit_timestamps",
    "timestamp_ntz",
    "writer_features",
    "nested",
    "empty",
)
FEATURES = "readerfeatures=deletionvectors,columnmapping,timestampntz"
DELTA = {"delta-sharing-capabilities": f"responseformat=delta;{FEATURES}"}
BOTH = {"delta-sharing-capabilities": f"responseformat=delta,parquet;{FEATURES}"}


@dataclass(frozen=True)
class Lake:
    """The broker, the store behind it, and a recipient's client."""

    broker: RunningBroker
    store: Ministack
    bucket: str
    profile: Mapping[str, Any]
    client: httpx.Client

    def path(self, table: str, call: str = "", share: str = "share") -> str:
        return f"/shares/{share}/schemas/tables/tables/{table}{call}"

    def version(self, table: str, **parameters: Any) -> httpx.Response:
        return self.client.get(self.path(table, "/version"), params=parameters)

    def metadata(
        self, table: str, headers: Mapping[str, str] | None = None, **parameters: Any
    ) -> httpx.Response:
        return self.client.get(self.path(table, "/metadata"), params=parameters, headers=dict(headers or {}))

    def query(
        self,
        table: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        share: str = "share",
    ) -> httpx.Response:
        return self.client.post(
            self.path(table, "/query", share), json={} if body is None else body, headers=dict(headers or {})
        )

    def changes(
        self, table: str, headers: Mapping[str, str] | None = None, **parameters: Any
    ) -> httpx.Response:
        return self.client.get(self.path(table, "/changes"), params=parameters, headers=dict(headers or {}))


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    """The lines of an answer that must be a success."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    return [json.loads(line) for line in answer.text.splitlines()]


def files(answer: httpx.Response) -> list[dict[str, Any]]:
    """The file actions of an answer, whatever they are called."""
    kinds = ("file", "add", "remove", "cdf")
    return [line[kind] for line in lines(answer) for kind in kinds if kind in line]


def error(answer: httpx.Response, status: int = 400, code: str | None = None) -> str:
    """The message of an answer that must be an error in the protocol's shape."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"errorCode", "message"}
    if code is not None:
        assert body["errorCode"] == code
    assert answer.headers["x-request-id"]
    return str(body["message"])


@contextmanager
def running_lake(store: Ministack) -> Iterator[Lake]:
    """Start a broker that shares the fixtures."""
    bucket = store.create_bucket()
    for name in TABLES:
        store.seed(fixture(name).path, f"s3://{bucket}/{name}")
    with running_broker(storage=[s3_storage(store, f"s3://{bucket}/")]) as broker:
        for name in TABLES:
            broker.share_table(f"share.tables.{name}", f"s3://{bucket}/{name}")
        for name in ("plain", "change_feed"):
            broker.share_table(f"nohistory.tables.{name}", f"s3://{bucket}/{name}", history=False)
            broker.share_table(f"late.tables.{name}", f"s3://{bucket}/{name}", start_version=2)
        broker.share_table("share.tables.absent", f"s3://{bucket}/absent")
        profile = broker.recipient("reader", shares=["share", "nohistory", "late"])
        with broker.client(profile) as client:
            yield Lake(broker, store, bucket, profile, client)
