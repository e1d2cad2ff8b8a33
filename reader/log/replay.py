"""Replay: which files are live at a version.

Newest first. The commits after the checkpoint are few: for each logical file they name, the last word is
found, and those whose last word is `add` are live. The checkpoint may be huge: its files stream through and
are only probed against that set of names. No step makes a Python object for a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from lakepass.reader.errors import DeltaError
from lakepass.reader.location import Location
from lakepass.reader.log.arrays import ArrowArray, bool_array, compute, integers
from lakepass.reader.log.cache import LogCache
from lakepass.reader.log.checkpoints import CheckpointReader
from lakepass.reader.log.commits import FileActions, all_file_actions, commit_pieces
from lakepass.reader.log.files import FileColumns
from lakepass.reader.log.keys import file_keys
from lakepass.reader.log.seen import SeenKeys
from lakepass.reader.log.segment import Commit
from lakepass.reader.storage import Storage


@dataclass(frozen=True)
class Tail:
    """What the commits after the checkpoint say about files."""

    live: tuple[pa.RecordBatch, ...]
    """Files added and not removed again, newest commit first."""
    seen: SeenKeys
    """The keys of all files that a commit names, added or removed."""


def read_tail(
    storage: Storage,
    root: Location,
    commits: Sequence[Commit],
    columns: FileColumns,
    *,
    partition_columns: Sequence[str],
    cache: LogCache | None = None,
) -> Tail:
    """Reads the commits (oldest first) and reconciles them with one another."""
    pieces = commit_pieces(storage, commits, cache)
    return reconcile(root, list(all_file_actions(pieces, columns, partition_columns)))


def reconcile(root: Location, read: Sequence[FileActions]) -> Tail:
    """The last word on each logical file; the pieces are in the order of the log."""
    keys: list[ArrowArray] = []
    places: list[np.ndarray] = []
    owners: list[np.ndarray] = []
    start = 0
    for piece in read:
        for batch, rows, is_add in (
            (piece.adds, piece.add_rows, True),
            (piece.removes, piece.remove_rows, False),
        ):
            if batch.num_rows:
                keys.append(file_keys(root, batch.column("path"), batch.column("deletion_vector")))
                places.append(start + integers(rows))
                owners.append(np.full(batch.num_rows, is_add))
        start += piece.rows
    if not keys:
        return Tail((), SeenKeys(pa.nulls(0, pa.binary())))
    try:
        encoded = pa.concat_arrays(keys).dictionary_encode()
    except pa.ArrowInvalid:
        raise DeltaError(
            f"The commits of {root} since its last checkpoint name over 2 GiB of paths. Write a checkpoint"
            " first; any Delta writer can."
        ) from None
    codes = integers(encoded.indices)
    place = np.concatenate(places)
    # The highest place in the log for each key: later assignments win, so they are made in order.
    order = np.argsort(place, kind="stable")
    last = np.empty(len(encoded.dictionary), dtype=np.int64)
    last[codes[order]] = order
    winners = last[codes] == np.arange(len(codes))
    alive = winners & np.concatenate(owners)
    live: list[pa.RecordBatch] = []
    position = 0
    for piece in read:
        count = piece.adds.num_rows
        mask = alive[position : position + count]
        position += count + piece.removes.num_rows
        if mask.all():
            live.append(piece.adds)
        elif mask.any():
            live.append(piece.adds.filter(bool_array(mask)))
    live = [batch for batch in reversed(live) if batch.num_rows]
    return Tail(tuple(live), SeenKeys(encoded.dictionary))


def checkpoint_files(
    root: Location, checkpoint: CheckpointReader, columns: FileColumns, seen: SeenKeys
) -> Iterator[pa.RecordBatch]:
    """The checkpoint's files that no later commit names."""
    for structs, where in _one_ahead(checkpoint.file_structs(columns)):
        batch = columns.batch(structs, where)
        if len(seen):
            known = seen.contains(file_keys(root, batch.column("path"), batch.column("deletion_vector")))
            if known is not None:
                batch = batch.filter(compute.invert(known))
        if batch.num_rows:
            yield batch


_T = TypeVar("_T")
_END: Any = object()


def _one_ahead(items: Iterator[_T]) -> Iterator[_T]:
    """The same items; another thread makes the next one ready, since Arrow works outside the GIL."""
    with ThreadPoolExecutor(1, thread_name_prefix="lakepass-log") as pool:
        waiting = pool.submit(next, items, _END)
        while (item := waiting.result()) is not _END:
            waiting = pool.submit(next, items, _END)
            yield item
