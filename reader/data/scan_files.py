"""From batches of live files to the single files that are read: deletion vectors, pieces of large files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lakepass.reader.data.deletion_vectors import Descriptor
from lakepass.reader.data.reading import ScanFile
from lakepass.reader.errors import CorruptTableError


def scan_files(
    batch: pa.RecordBatch, partitions: dict[str, Any], whole: Any, resolve: Callable[[str], str]
) -> Iterator[ScanFile]:
    """The files of a batch, one by one, as they are about to be read."""
    rows = zip(
        batch.column("path").to_pylist(),
        batch.column("size").to_pylist(),
        batch.column("deletion_vector").to_pylist(),
        batch.column("base_row_id").to_pylist(),
        batch.column("default_row_commit_version").to_pylist(),
        np.asarray(whole).tolist(),
        strict=True,
    )
    for index, (path, size, vector, row_id, commit, unfiltered) in enumerate(rows):
        descriptor = descriptor_of(vector)
        yield ScanFile(
            resolve(path),
            size if size is not None and size > 0 else None,
            {name: array[index] for name, array in partitions.items()},
            descriptor,
            vector_path(descriptor, resolve),
            row_id,
            commit,
            unfiltered,
        )


def descriptor_of(vector: dict[str, Any] | None) -> Descriptor | None:
    """The deletion vector that a batch of files tells of."""
    if vector is None or vector["storage_type"] is None:
        return None
    if vector["path_or_inline"] is None or vector["size"] is None or vector["cardinality"] is None:
        raise CorruptTableError(
            "A deletion vector in the log lacks its path, size or cardinality. The add action is damaged."
        )
    return Descriptor(
        vector["storage_type"],
        vector["path_or_inline"],
        vector["offset"],
        vector["size"],
        vector["cardinality"],
    )


def vector_path(descriptor: Descriptor | None, resolve: Callable[[str], str]) -> str | None:
    """Where a deletion vector's file is; None when it is inline."""
    if descriptor is None or descriptor.storage_type not in ("u", "p"):
        return None
    if descriptor.storage_type == "p":
        return resolve(descriptor.path_or_inline)
    return resolve(descriptor.relative_path())


def split(file: ScanFile, target_bytes: int) -> Iterator[ScanFile]:
    """Pieces of a large file; each row group belongs to exactly one of them."""
    size = file.size or 0
    count = min(-(-size // target_bytes), 1024) if size > target_bytes * 3 // 2 else 1
    if count <= 1:
        yield file
        return
    edges = [size * index // count for index in range(count)]
    for index, start in enumerate(edges):
        end = edges[index + 1] if index + 1 < count else 1 << 62
        yield replace(file, byte_range=(start, end))


def length_of(file: ScanFile) -> int:
    """How many bytes of the file are meant."""
    if file.byte_range is None:
        return file.size or 0
    start, end = file.byte_range
    return min(end, file.size or end) - start
