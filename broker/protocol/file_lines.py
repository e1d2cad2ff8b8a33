"""File actions as lines of NDJSON, in parquet and in delta format, a batch of files at a time.

Parquet format has `file`, `add`, `remove` and `cdf` lines with a `url`; delta format wraps the log's own
action in a `file` line, its path replaced by a URL. A deletion vector kept beside the table travels as a
URL with storage type `p`, an inline one as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
import pyarrow as pa

from lakepass.broker.protocol.capabilities import Format
from lakepass.broker.protocol.json_columns import (
    Column,
    content,
    joined,
    json_maps,
    json_objects,
    numbers,
    optional,
    quoted,
)
from lakepass.reader.data.deletion_vectors import Descriptor

Kind = Literal["file", "add", "remove", "cdf"]


@dataclass(frozen=True)
class FileLines:
    """Writes the file lines of one answer."""

    form: Format
    id_hash: Format
    """`parquet` gives 32 hexadecimal digits (MD5), `delta` 64 (SHA-256)."""
    expires_at_ms: int
    sign: Callable[[Column], Column]
    sign_one: Callable[[str], str]
    partition_columns: Sequence[str]
    """The keys of `partitionValues`, as the log writes them."""

    def write(
        self, files: pa.RecordBatch, kind: Kind, *, version: int | None = None, timestamp: int | None = None
    ) -> bytes:
        """The lines of a batch; `version` and `timestamp` are those of the commit that they come from."""
        if files.num_rows == 0:
            return b""
        write = self._delta if self.form == "delta" else self._parquet
        return content(write(files, kind, version, timestamp))

    def _parquet(
        self, files: pa.RecordBatch, kind: Kind, version: int | None, timestamp: int | None
    ) -> Column:
        tail = f',"expirationTimestamp":{self.expires_at_ms}}}}}\n'
        stamped = "" if timestamp is None else f',"timestamp":{timestamp}'
        versioned = "" if version is None else f',"version":{version}'
        return joined(
            f'{{"{kind}":{{"url":"',
            self.sign(files.column("path")),
            '","id":"',
            self._ids(files.column("path")),
            '","partitionValues":',
            json_maps(files.column("partition_values"), self.partition_columns),
            ',"size":',
            numbers(files.column("size")).fill_null("0"),
            self._stats(files) if kind in ("file", "add") else "",
            stamped + versioned + tail,
        )

    def _delta(self, files: pa.RecordBatch, kind: Kind, version: int | None, timestamp: int | None) -> Column:
        action = {"file": "add", "cdf": "cdc"}.get(kind, kind)
        vectors, vector_ids = self._vectors(files)
        head = "" if version is None else f',"version":{version}'
        head += "" if timestamp is None else f',"timestamp":{timestamp}'
        changed = "false" if action == "cdc" else "true"
        return joined(
            '{"file":{"id":"',
            self._ids(files.column("path")),
            '"',
            vector_ids,
            f'{head},"expirationTimestamp":{self.expires_at_ms},"deltaSingleAction":{{"{action}":{{"path":"',
            self.sign(files.column("path")),
            '","partitionValues":',
            json_maps(files.column("partition_values"), self.partition_columns),
            optional(',"size":', numbers(files.column("size"))),
            f',"dataChange":{changed}',
            *self._action_fields(files, action, timestamp),
            vectors,
            "}}}}\n",
        )

    def _action_fields(self, files: pa.RecordBatch, action: str, timestamp: int | None) -> list[Any]:
        if action == "cdc":
            return [_tags(files)]
        rows = [
            optional(',"baseRowId":', numbers(files.column("base_row_id"))),
            optional(',"defaultRowCommitVersion":', numbers(files.column("default_row_commit_version"))),
        ]
        if action == "remove":
            deleted = "" if timestamp is None else f',"deletionTimestamp":{timestamp}'
            return [f'{deleted},"extendedFileMetadata":true', _tags(files), *rows]
        modified = optional(',"modificationTime":', numbers(files.column("modification_time").fill_null(0)))
        return [modified, self._stats(files), _tags(files), *rows]

    def _stats(self, files: pa.RecordBatch) -> Column:
        return optional(',"stats":', quoted(files.column("stats"))) if "stats" in files.schema.names else ""

    def _ids(self, paths: Column) -> Column:
        digest = hashlib.sha256 if self.id_hash == "delta" else _md5
        return pa.array([digest(path.encode()).hexdigest() for path in paths.to_pylist()], pa.string())

    def _vectors(self, files: pa.RecordBatch) -> tuple[Any, Any]:
        column = files.column("deletion_vector")
        if column.null_count == len(column):
            return "", ""
        texts, ids = [], []
        for row in column.to_pylist():
            text, identity = ("", "") if row is None else self._vector(Descriptor(**row))
            texts.append(text)
            ids.append(identity)
        return pa.array(texts, pa.string()), pa.array(ids, pa.string())

    def _vector(self, vector: Descriptor) -> tuple[str, str]:
        storage, place = vector.storage_type, vector.path_or_inline
        if storage == "u":
            place = vector.relative_path()
        identity = (_md5 if self.id_hash == "parquet" else hashlib.sha256)(place.encode()).hexdigest()
        if storage != "i":
            storage, place = "p", self.sign_one(place)
        described: dict[str, Any] = {"storageType": storage, "pathOrInlineDv": place}
        if vector.offset is not None:
            described["offset"] = vector.offset
        described |= {"sizeInBytes": vector.size, "cardinality": vector.cardinality}
        return (
            f',"deletionVector":{orjson.dumps(described).decode()}',
            f',"deletionVectorFileId":"{identity}"',
        )


def _md5(text: bytes) -> Any:
    return hashlib.md5(text, usedforsecurity=False)


def _tags(files: pa.RecordBatch) -> Any:
    if "tags" not in files.schema.names or files.column("tags").null_count == files.num_rows:
        return ""
    texts = [f',"tags":{text}' if text else "" for text in json_objects(files.column("tags"))]
    return pa.array(texts, pa.string())
