"""Makes one table three times over the same data files: plain, with a tenth of its rows deleted, and renamed.

    python -m bench.scan_tables DIRECTORY [--rows 30000000]

Thirty million rows are about 1.4 GB of Parquet. `deleted` has a deletion vector for each file, `mapped` gives
every column another name (column mapping by name); both link the files of `plain`.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import struct
import uuid
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILE_ROWS = 1_000_000
COLUMNS = {
    "id": "long", "at": "timestamp", "price": "double", "quantity": "integer", "customer": "string",
    "country": "string", "note": "string", "flag": "boolean", "score": "float", "day": "date",
}  # fmt: skip


def rows(first: int, count: int) -> pa.Table:
    """Rows in the order of `id`, so that files are clustered by it."""
    random = np.random.default_rng(first)
    ids = np.arange(first, first + count)
    words = np.array([f"customer {number:05d}" for number in range(20_000)])
    text = base64.b32encode(random.bytes(count * 15)).decode()
    columns: dict[str, Any] = {
        "id": ids,
        "at": pa.array(1_600_000_000_000_000 + ids * 1000, pa.timestamp("us", "UTC")),
        "price": random.random(count) * 1000,
        "quantity": random.integers(0, 100, count).astype("int32"),
        "customer": words[random.integers(0, len(words), count)],
        "country": np.array(["DE", "FR", "US", "IT", "ES", "PL"])[random.integers(0, 6, count)],
        "note": [text[at : at + 24] for at in range(0, count * 24, 24)],
        "flag": random.random(count) < 0.5,
        "score": random.random(count).astype("float32"),
        "day": pa.array((ids // 200_000).astype("int32"), pa.date32()),
    }
    return pa.table(columns)


def every_tenth(count: int) -> bytes:
    """A deletion vector of every tenth row, in the portable roaring format."""
    blocks = [np.arange(start, min(start + 65536, count)) for start in range(0, count, 65536)]
    held = [block[block % 10 == 0] - block[0] for block in blocks]
    out = struct.pack("<iqiII", 1681511377, 1, 0, 12346, len(held))
    for key, values in enumerate(held):
        out += struct.pack("<HH", key, len(values) - 1)
    offsets, bodies, at = [], [], 8 + 8 * len(held)
    for values in held:
        if len(values) <= 4096:
            body = values.astype("<u2").tobytes()
        else:
            bits = np.zeros(65536, dtype=np.uint8)
            bits[values] = 1
            body = np.packbits(bits, bitorder="little").tobytes()
        offsets.append(at)
        bodies.append(body)
        at += len(body)
    return out + b"".join(struct.pack("<I", each) for each in offsets) + b"".join(bodies)


def write_log(table: Path, adds: list[dict[str, Any]], *, mapped: bool, deleted: bool) -> None:
    """The one commit of a table."""
    fields = [
        {
            "name": f"{name} renamed" if mapped else name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
            if mapped
            else {},
        }
        for number, (name, kind) in enumerate(COLUMNS.items(), 1)
    ]
    features = ["columnMapping"] * mapped + ["deletionVectors"] * deleted
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if features:
        protocol = {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": features, "writerFeatures": features,
        }  # fmt: skip
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.columnMapping.mode": "name"} if mapped else {},
        "createdTime": 0,
    }
    (table / "_delta_log").mkdir()
    actions = [{"protocol": protocol}, {"metaData": metadata}, *({"add": add} for add in adds)]
    lines = "\n".join(json.dumps(action) for action in actions)
    (table / "_delta_log" / f"{0:020d}.json").write_text(lines)


def main(directory: Path, count: int) -> None:
    """Write the three tables."""
    tables = {name: directory / name for name in ("plain", "deleted", "mapped")}
    for table in tables.values():
        table.mkdir(parents=True)
    adds: dict[str, list[dict[str, Any]]] = {name: [] for name in tables}
    for first in range(0, count, FILE_ROWS):
        size = min(FILE_ROWS, count - first)
        name = f"part-{first // FILE_ROWS:05d}.parquet"
        path = tables["plain"] / name
        pq.write_table(rows(first, size), path, compression="snappy", row_group_size=size // 2 + 1)
        stats = {"numRecords": size, "minValues": {"id": first}, "maxValues": {"id": first + size - 1}}
        stats["nullCount"] = {"id": 0}
        add = {
            "path": name, "partitionValues": {}, "size": path.stat().st_size,
            "modificationTime": 0, "dataChange": True, "stats": json.dumps(stats),
        }  # fmt: skip
        for other in ("deleted", "mapped"):
            os.link(path, tables[other] / name)
        identity = uuid.uuid4()
        vector = every_tenth(size)
        framed = b"\x01" + struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
        (tables["deleted"] / f"deletion_vector_{identity}.bin").write_bytes(framed)
        descriptor = {
            "storageType": "u", "pathOrInlineDv": _z85(identity.bytes), "offset": 1,
            "sizeInBytes": len(vector), "cardinality": -(-size // 10),
        }  # fmt: skip
        wide = json.dumps({**stats, "tightBounds": False})
        adds["plain"].append(add)
        adds["mapped"].append(add)
        adds["deleted"].append({**add, "stats": wide, "deletionVector": descriptor})
    for name, table in tables.items():
        write_log(table, adds[name], mapped=name == "mapped", deleted=name == "deleted")


def _z85(data: bytes) -> str:
    alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    out = ""
    for (word,) in struct.iter_unpack(">I", data):
        out += "".join(alphabet[word // 85**power % 85] for power in range(4, -1, -1))
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=30_000_000)
    given = parser.parse_args()
    main(given.directory, given.rows)
