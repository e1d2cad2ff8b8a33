"""Makes tables with many files, whose data files do not exist: a log is all that the log's benchmarks read.

    python -m bench.log_tables DIRECTORY [--adds 1000000]

`classic`: one checkpoint, 100 commits after it. `sidecars`: the same as a V2 checkpoint. `commits`: the
classic one with 100,000 adds in the commits after the checkpoint. `small`: a thousand files, to see what the
number of files costs.
"""

from __future__ import annotations

import argparse
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", STRINGS),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("tags", STRINGS),
        ("deletionVector", VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
        ("stats", pa.string()),
    ]
)
REMOVE = pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", STRINGS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", STRINGS),
        ("createdTime", pa.int64()),
    ]
)
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", STRINGS)]
)
CHECKPOINT_METADATA = pa.struct([("version", pa.int64()), ("tags", STRINGS)])

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("name", "string"), ("value", "double"), ("day", "string"))
    ],
}
CHECKPOINT_VERSION = 10
COMMITS = 100


def add(number: int) -> dict[str, Any]:
    day = f"2024-{number % 12 + 1:02d}-{number % 28 + 1:02d}"
    low = number * 1000
    stats = {
        "numRecords": 1000,
        "minValues": {"id": low, "name": f"name-{low:010d}", "value": low / 7},
        "maxValues": {"id": low + 999, "name": f"name-{low + 999:010d}", "value": (low + 999) / 7},
        "nullCount": {"id": 0, "name": 0, "value": 3},
    }
    name = uuid.UUID(int=(number * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)
    return {
        "path": f"day={day}/part-{number % 200:05d}-{name}.c000.snappy.parquet",
        "partitionValues": {"day": day},
        "size": 1_000_000 + number,
        "modificationTime": 1_700_000_000_000 + number,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }


def protocol(v2: bool) -> dict[str, Any]:
    if not v2:
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    features = ["v2Checkpoint"]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }


def metadata() -> dict[str, Any]:
    return {
        "id": str(uuid.UUID(int=7)),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": 1_700_000_000_000,
    }


def pairs(action: dict[str, Any]) -> dict[str, Any]:
    """Maps as Arrow takes them."""
    changed = dict(action)
    for name in ("partitionValues", "configuration"):
        if name in changed:
            changed[name] = list(changed[name].items())
    if "format" in changed:
        changed["format"] = {"provider": "parquet", "options": []}
    return changed


def add_batches(count: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    step = 50_000
    for start in range(0, count, step):
        rows = pa.array([pairs(add(number)) for number in range(start, min(start + step, count))], ADD)
        columns = [rows if field.name == "add" else pa.nulls(len(rows), field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def write_checkpoint(path: Path, count: int, others: list[dict[str, Any]], schema: pa.Schema) -> None:
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        rows = {
            field.name: [pairs(action[field.name]) if field.name in action else None for action in others]
            for field in schema
        }
        if others:
            writer.write_table(
                pa.table(
                    {name: pa.array(rows[name], schema.field(name).type) for name in rows}, schema=schema
                )
            )
        for batch in add_batches(count, schema):
            writer.write_batch(batch, row_group_size=200_000)


def write_table(directory: Path, adds: int, *, v2: bool = False, adds_per_commit: int = 10) -> None:
    log = directory / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    start = [{"protocol": protocol(v2)}, {"metaData": metadata()}, {"txn": {"appId": "bench", "version": 1}}]
    last: dict[str, Any] = {"version": CHECKPOINT_VERSION, "size": adds + len(start)}
    fields = [("txn", TXN), ("add", ADD), ("remove", REMOVE), ("metaData", METADATA), ("protocol", PROTOCOL)]
    name = f"{CHECKPOINT_VERSION:020d}.checkpoint"
    if v2:
        (log / "_sidecars").mkdir(exist_ok=True)
        parts = 4
        for part in range(parts):
            path = log / "_sidecars" / f"{uuid.UUID(int=part + 1)}.parquet"
            schema = pa.schema([("add", ADD), ("remove", REMOVE)])
            with pq.ParquetWriter(path, schema, compression="snappy") as writer:
                for batch in add_batches(adds, schema):
                    writer.write_batch(batch.slice(part * len(batch) // parts, len(batch) // parts))
            start.append(
                {"sidecar": {"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 1}}
            )
        start.append({"checkpointMetadata": {"version": CHECKPOINT_VERSION}})
        fields += [("sidecar", SIDECAR), ("checkpointMetadata", CHECKPOINT_METADATA)]
        write_checkpoint(log / f"{name}.{uuid.UUID(int=9)}.parquet", 0, start, pa.schema(fields))
    else:
        write_checkpoint(log / f"{name}.parquet", adds, start, pa.schema(fields))
    (log / "_last_checkpoint").write_text(json.dumps(last))
    for commit in range(COMMITS):
        version = CHECKPOINT_VERSION + 1 + commit
        first = adds + commit * adds_per_commit
        lines = [{"commitInfo": {"timestamp": 1_700_000_000_000 + version, "operation": "WRITE"}}]
        lines += [{"add": add(number)} for number in range(first, first + adds_per_commit)]
        gone = add(commit * 17 % max(adds, 1))
        lines.append(
            {"remove": {"path": gone["path"], "deletionTimestamp": 1_700_000_000_000, "dataChange": True}}
        )
        text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
        (log / f"{version:020d}.json").write_text(text + "\n")
    (log / f"{CHECKPOINT_VERSION:020d}.json").write_text(
        json.dumps({"commitInfo": {"operation": "WRITE"}}) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--adds", type=int, default=1_000_000)
    arguments = parser.parse_args()
    tables = {
        "small": {"adds": 1_000},
        "classic": {"adds": arguments.adds},
        "sidecars": {"adds": arguments.adds, "v2": True},
        "commits": {"adds": arguments.adds, "adds_per_commit": arguments.adds // 1000},
    }
    for name, options in tables.items():
        directory = arguments.directory / name
        if not (directory / "_delta_log" / f"{CHECKPOINT_VERSION + COMMITS:020d}.json").exists():
            write_table(directory, **options)
        print(directory)


if __name__ == "__main__":
    main()
