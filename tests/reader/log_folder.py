"""Writes Delta logs by hand, so that a test can say exactly what is in one, right or wrong."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakepass.reader import Snapshot, Table

Action = dict[str, Any]

STRINGS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
FILE_FIELDS: list[tuple[str, pa.DataType]] = [
    ("path", pa.string()),
    ("partitionValues", STRINGS),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("stats", pa.string()),
    ("tags", STRINGS),
    ("deletionVector", VECTOR),
]
CHECKPOINT_FIELDS: dict[str, pa.DataType] = {
    "add": pa.struct(FILE_FIELDS),
    "remove": pa.struct(
        [("path", pa.string()), ("deletionTimestamp", pa.int64()), ("deletionVector", VECTOR)]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", STRINGS),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64())]),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
    ),
    "checkpointMetadata": pa.struct([("version", pa.int64())]),
}

MAPS = ("partitionValues", "tags", "configuration")
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


def protocol(*features: str) -> Action:
    """Reader version 1, or 3 with the given reader features."""
    if not features:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(features),
            "writerFeatures": list(features),
        }
    }


def metadata(partitions: Sequence[str] = (), schema: str = SCHEMA, **configuration: str) -> Action:
    return {
        "metaData": {
            "id": "11111111-2222-3333-4444-555555555555",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": list(partitions),
            "configuration": configuration,
        }
    }


def add(path: str, **fields: Any) -> Action:
    action = {"path": path, "partitionValues": {}, "size": 10, "modificationTime": 1, "dataChange": True}
    return {"add": {**action, **fields}}


def remove(path: str, **fields: Any) -> Action:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **fields}}


def vector(name: str, offset: int | None = 1) -> Action:
    found: Action = {"storageType": "u", "pathOrInlineDv": name, "sizeInBytes": 4, "cardinality": 1}
    return found if offset is None else {**found, "offset": offset}


class LogFolder:
    """A table whose log is written file by file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "_delta_log"
        self.log.mkdir(parents=True)

    def commit(self, version: int, *actions: Action, modified: float | None = None) -> LogFolder:
        return self.raw(f"{version:020d}.json", lines(actions), modified)

    def create(self, *actions: Action, features: Sequence[str] = (), **configuration: str) -> LogFolder:
        """Version 0, with protocol and metadata."""
        return self.commit(0, protocol(*features), metadata(**configuration), *actions)

    def raw(self, name: str, content: str | bytes, modified: float | None = None) -> LogFolder:
        file = self.log / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        if modified is not None:
            os.utime(file, (modified, modified))
        return self

    def checkpoint(self, version: int, *actions: Action, name: str = "checkpoint.parquet") -> Path:
        return write_actions(self.log / f"{version:020d}.{name}", actions)

    def sidecar(self, *actions: Action) -> Action:
        folder = self.log / "_sidecars"
        folder.mkdir(exist_ok=True)
        file = write_actions(folder / f"{uuid.uuid4()}.parquet", actions, ("add", "remove"))
        return {"sidecar": {"path": file.name, "sizeInBytes": file.stat().st_size, "modificationTime": 1}}

    def hint(self, version: Any) -> LogFolder:
        return self.raw("_last_checkpoint", json.dumps({"version": version, "size": 1}))

    def table(self, **options: Any) -> Table:
        return Table(self.path, **options)

    def files(self, version: int | None = None, **options: Any) -> list[str]:
        """The live files' paths, sorted."""
        return live(self.table(**options), version)


def live(table: Table, version: int | None = None) -> list[str]:
    return paths_of(table.snapshot(version))


def paths_of(snapshot: Snapshot) -> list[str]:
    """The live files' paths, sorted."""
    return sorted(str(path) for batch in snapshot.file_batches() for path in batch.column("path").to_pylist())


def lines(actions: Iterable[Action]) -> str:
    return "".join(json.dumps(action) + "\n" for action in actions)


def write_actions(file: Path, actions: Sequence[Action], names: Sequence[str] | None = None) -> Path:
    """A checkpoint or a sidecar in Parquet."""
    columns = {}
    for name in names or CHECKPOINT_FIELDS:
        values = [_pairs(action[name]) if name in action else None for action in actions]
        columns[name] = pa.array(values, CHECKPOINT_FIELDS[name])
    pq.write_table(pa.table(columns), file)
    return file


def _pairs(action: Action) -> Action:
    return {
        key: list(value.items()) if isinstance(value, dict) and key in MAPS else value
        for key, value in action.items()
    }
