"""Writes small Delta tables by hand, file by file, so that a test can put anything into them."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakepass.reader.table import Table

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def field(name: str, kind: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    """A field of the table's schema as the log writes it; `_` in a metadata key stands for a dot."""
    named = {key.replace("__", "."): value for key, value in metadata.items()}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": named}


def mapped(name: str, kind: Any, number: int, physical: str) -> dict[str, Any]:
    """A field under column mapping."""
    extra = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": extra}


def struct_of(*fields: dict[str, Any]) -> dict[str, Any]:
    """A struct type as the log writes it."""
    return {"type": "struct", "fields": list(fields)}


class Written:
    """A table under construction: `add` files, then `table()`."""

    def __init__(
        self,
        folder: Path,
        fields: Sequence[dict[str, Any]],
        *,
        partitions: Sequence[str] = (),
        features: Sequence[str] = (),
        configuration: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        (folder / "_delta_log").mkdir(parents=True)
        self.version = 0
        protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
        if features:
            protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
            protocol |= {"readerFeatures": list(features), "writerFeatures": list(features)}
        self.metadata = {
            "id": "0a0a0a0a-0000-0000-0000-000000000000",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(struct_of(*fields)),
            "partitionColumns": list(partitions),
            "configuration": configuration or {},
        }
        self.actions: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": self.metadata}]
        self.files = 0

    def add(
        self,
        rows: pa.Table,
        *,
        values: dict[str, str | None] | None = None,
        stats: dict[str, Any] | None = None,
        vector: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
        **options: Any,
    ) -> Path:
        """A data file; `options` go to pyarrow's Parquet writer."""
        path = self.folder / f"part-{self.files}.parquet"
        self.files += 1
        pq.write_table(rows, path, **options)
        action: dict[str, Any] = {
            "path": path.name,
            "partitionValues": values or {},
            "size": path.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
        }
        if stats is not None:
            action["stats"] = json.dumps(stats)
        if vector is not None:
            action["deletionVector"] = vector
        self.actions.append({"add": action | (more or {})})
        return path

    def commit(self) -> None:
        """Write the actions so far as the next version."""
        name = f"{self.version:020d}.json"
        lines = "\n".join(json.dumps(each) for each in self.actions)
        (self.folder / "_delta_log" / name).write_text(lines)
        self.actions = []
        self.version += 1

    def table(self) -> Table:
        """The table, committed."""
        if self.actions:
            self.commit()
        return Table(self.folder)


def roaring(positions: Sequence[int], *, runs: bool = False) -> bytes:
    """A deletion vector in the portable format."""
    keys = sorted({position >> 32 for position in positions})
    out = struct.pack("<iq", 1681511377, len(keys))
    for key in keys:
        low = np.array(sorted({each & 0xFFFFFFFF for each in positions if each >> 32 == key}), np.int64)
        out += struct.pack("<i", key) + _bitmap(low, runs)
    return out


def _bitmap(values: Any, runs: bool) -> bytes:
    tops = sorted(set((values >> 16).tolist()))
    held = [values[values >> 16 == top] & 0xFFFF for top in tops]
    if runs:
        head = struct.pack("<I", 12347 | (len(tops) - 1) << 16) + b"\xff" * ((len(tops) + 7) // 8)
    else:
        head = struct.pack("<II", 12346, len(tops))
    for top, each in zip(tops, held, strict=True):
        head += struct.pack("<HH", top, len(each) - 1)
    bodies = [_runs(each) if runs else _container(each) for each in held]
    if not runs or len(tops) >= 4:
        at = len(head) + 4 * len(tops)
        for body in bodies:
            head += struct.pack("<I", at)
            at += len(body)
    return head + b"".join(bodies)


def _container(values: Any) -> bytes:
    if len(values) <= 4096:
        return bytes(values.astype("<u2").tobytes())
    bits = np.zeros(65536, np.uint8)
    bits[values] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def _runs(values: Any) -> bytes:
    breaks = np.flatnonzero(np.diff(values) != 1)
    starts = values[np.concatenate([[0], breaks + 1])]
    ends = values[np.concatenate([breaks, [len(values) - 1]])]
    pairs = np.stack([starts, ends - starts], axis=1).astype("<u2")
    return struct.pack("<H", len(pairs)) + pairs.tobytes()


def z85(data: bytes) -> str:
    """Base-85 text; the data is padded with zeros to whole words."""
    out = ""
    for (word,) in struct.iter_unpack(">I", data + b"\x00" * (-len(data) % 4)):
        out += "".join(_ALPHABET[word // 85**power % 85] for power in range(4, -1, -1))
    return out


def inline(data: bytes, cardinality: int) -> dict[str, Any]:
    """The descriptor of an inline deletion vector."""
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(data),
        "sizeInBytes": len(data),
        "cardinality": cardinality,
    }


def framed(data: bytes) -> bytes:
    """A deletion vector as it lies in a file after the version byte."""
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
