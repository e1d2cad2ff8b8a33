"""Deletion vectors: on disk, on partitions, inline, and many on one file."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path
from typing import Any

from tests.tables.generator.fixture import Fixture, define

VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@define(earlier=2)
def deletion_vectors(f: Fixture) -> None:
    """Three files of 2000 rows; rows deleted one by one, in runs and again from the same file; updates and a merge
    leave vectors too; one file loses every row."""
    f.sql(f"CREATE TABLE {{t}} (id INT, word STRING, x DOUBLE) USING delta {VECTORS}")
    for start in (0, 2000, 4000):
        f.sql(
            f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ int(id), concat('w', id % 13), id / 8D "
            f"FROM range({start}, {start + 2000})"
        )
    f.sql("DELETE FROM {t} WHERE id IN (0, 1999, 2001, 5999)")
    f.sql("DELETE FROM {t} WHERE id BETWEEN 100 AND 900 OR (id > 2000 AND id % 3 = 0)")
    f.sql("UPDATE {t} SET word = 'updated' WHERE id % 500 = 7")
    f.sql("""
        MERGE INTO {t} USING (SELECT int(id) AS k FROM range(1000, 1003)) ON id = k
        WHEN MATCHED AND k = 1000 THEN DELETE WHEN MATCHED THEN UPDATE SET x = -1
        WHEN NOT MATCHED THEN INSERT (id) VALUES (k)
    """)
    f.sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ int(id), 'gone', 0D FROM range(7000, 7010)")
    f.sql("DELETE FROM {t} WHERE id >= 7000")


@define(earlier=1)
def deletion_vectors_partitioned(f: Fixture) -> None:
    """Deletion vectors on a partitioned table, with a classic checkpoint that holds them and commits after it."""
    f.sql(f"CREATE TABLE {{t}} (id INT, part STRING, v BIGINT) USING delta PARTITIONED BY (part) {VECTORS}")
    f.sql("""
        INSERT INTO {t} SELECT int(id), CASE id % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'b c' WHEN 2 THEN 'é/ü' END, id * 3
        FROM range(400)
    """)
    f.sql("DELETE FROM {t} WHERE id % 7 = 0")
    f.sql("DELETE FROM {t} WHERE part = 'b c' AND id < 100")
    f.checkpoint()
    f.sql("DELETE FROM {t} WHERE part IS NULL AND id > 300")
    f.sql("UPDATE {t} SET v = 0 WHERE id = 4")


@define(earlier=1)
def deletion_vectors_inline(f: Fixture) -> None:
    """Deletion vectors inside the log. Spark writes them to files only: here each one that it wrote was moved from
    its file into the commit (storage type `i`), by the protocol's encoding; Spark reads the result."""
    f.sql(f"CREATE TABLE {{t}} (id INT, word STRING) USING delta {VECTORS}")
    f.sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ int(id), concat('w', id) FROM range(50)")
    f.sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ int(id), concat('w', id) FROM range(50, 100)")
    f.sql("DELETE FROM {t} WHERE id IN (1, 2, 3, 49, 50, 77)")
    f.sql("DELETE FROM {t} WHERE id IN (5, 99)")
    for version in (3, 4):
        f.rewrite_commit(version, [inlined(f.path, action) for action in f.commit(version)])
    for file in f.path.glob("deletion_vector_*"):
        file.unlink()
    for file in f.path.glob(".deletion_vector_*"):
        file.unlink()


def inlined(root: Path, action: dict[str, Any]) -> dict[str, Any]:
    """The action with its deletion vector moved from the file into it."""
    for kind in ("add", "remove"):
        vector = action.get(kind, {}).get("deletionVector")
        if vector and vector["storageType"] == "u":
            data = read_vector(root, vector)
            action[kind]["deletionVector"] = {
                "storageType": "i",
                "pathOrInlineDv": z85(data),
                "sizeInBytes": len(data),
                "cardinality": vector["cardinality"],
            }
    return action


def read_vector(root: Path, vector: dict[str, Any]) -> bytes:
    """The serialized bitmap out of a deletion vector's file: size (4 bytes), bitmap, checksum (4 bytes)."""
    encoded = vector["pathOrInlineDv"]
    prefix, name = encoded[:-20], encoded[-20:]
    file = root / prefix / f"deletion_vector_{uuid.UUID(bytes=unz85(name))}.bin"
    content = file.read_bytes()[vector["offset"] :]
    (size,) = struct.unpack(">i", content[:4])
    assert size == vector["sizeInBytes"]
    return bytes(content[4 : 4 + size])


def z85(data: bytes) -> str:
    """Base85 as in ZeroMQ's RFC 32, with zeros added up to a multiple of four bytes."""
    padded = data + b"\0" * (-len(data) % 4)
    text = []
    for (word,) in struct.iter_unpack(">I", padded):
        text += [_Z85[word // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(text)


def unz85(text: str) -> bytes:
    """The bytes that `z85` encoded."""
    words = []
    for at in range(0, len(text), 5):
        value = 0
        for character in text[at : at + 5]:
            value = value * 85 + _Z85.index(character)
        words.append(struct.pack(">I", value))
    return b"".join(words)
