"""Commits: their bytes, their file actions as Arrow, and their few other actions.

The usual commit is parsed by Arrow's JSON reader into columns. One with anything odd in it (a value of
another type, an escape that is not UTF-8, several actions on a line) is read line by line instead, and says
exactly what is wrong with it if that does not help.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakepass.reader.errors import CorruptTableError
from lakepass.reader.log.arrays import ArrowArray, compute
from lakepass.reader.log.cache import LogCache
from lakepass.reader.log.files import STRING_MAP, FileColumns
from lakepass.reader.log.json_lines import parse_text
from lakepass.reader.log.lines import PIECE, actions, pieces
from lakepass.reader.log.segment import Commit
from lakepass.reader.storage import Storage
from lakepass.reader.storage.local import LocalStorage

_AHEAD = 16
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_REMOVE = pa.struct([("path", pa.string()), ("deletionVector", _VECTOR)])


def _add_type(columns: FileColumns, partition_values: pa.DataType) -> pa.StructType:
    fields: list[tuple[str, pa.DataType]] = [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("partitionValues", partition_values),
        ("deletionVector", _VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
    if columns.stats is not None:
        fields.append(("stats", pa.string()))
    if columns.tags:
        fields.append(("tags", STRING_MAP))
    return pa.struct(fields)


@dataclass(frozen=True)
class FileActions:
    """The adds and removes of a piece of a commit, with the order in which they stand."""

    adds: pa.RecordBatch
    add_rows: ArrowArray
    removes: pa.RecordBatch
    """`path` and `deletion_vector`."""
    remove_rows: ArrowArray
    rows: int


def commit_pieces(
    storage: Storage, commits: Sequence[Commit], cache: LogCache | None = None
) -> Iterator[tuple[Commit, bytes]]:
    """The bytes of commits in the order given, cut at line ends, read ahead where the store is far."""
    if isinstance(storage, LocalStorage) or len(commits) < 2:
        for commit in commits:
            for piece in _read(storage, commit, cache):
                yield commit, piece
        return
    with ThreadPoolExecutor(min(_AHEAD, len(commits)), thread_name_prefix="lakepass-log") as pool:
        waiting: list[tuple[Commit, Future[bytes] | None]] = []
        position = 0
        while waiting or position < len(commits):
            while position < len(commits) and len(waiting) < _AHEAD:
                commit = commits[position]
                small = commit.status.size <= PIECE
                waiting.append((commit, pool.submit(_whole, storage, commit, cache) if small else None))
                position += 1
            commit, read = waiting.pop(0)
            if read is not None:
                yield commit, read.result()
            else:
                for piece in _read(storage, commit, cache):
                    yield commit, piece


def _whole(storage: Storage, commit: Commit, cache: LogCache | None) -> bytes:
    return b"".join(_read(storage, commit, cache))


def _read(storage: Storage, commit: Commit, cache: LogCache | None) -> Iterator[bytes]:
    status = commit.status
    kept = cache.get(status) if cache else None
    if kept is not None:
        yield kept
        return
    for piece in pieces(storage, status, commit.content):
        if cache and len(piece) == status.size:
            cache.put(status, piece)
        yield piece


def all_file_actions(
    read: Iterable[tuple[Commit, bytes]], columns: FileColumns, partition_columns: Sequence[str]
) -> Iterator[FileActions]:
    """The adds and removes of commits, in their order; small commits are parsed together."""
    waiting: list[tuple[Commit, bytes]] = []
    size = 0
    for commit, piece in read:
        waiting.append((commit, piece))
        size += len(piece)
        if size >= PIECE:
            yield from _together(waiting, columns, partition_columns)
            waiting, size = [], 0
    yield from _together(waiting, columns, partition_columns)


def _together(
    waiting: list[tuple[Commit, bytes]], columns: FileColumns, partition_columns: Sequence[str]
) -> Iterator[FileActions]:
    whole = [(commit, piece) for commit, piece in waiting if piece and not piece.isspace()]
    if len(whole) > 1:
        text = b"".join(piece if piece.endswith(b"\n") else piece + b"\n" for _, piece in whole)
        found = _fast(text, columns, partition_columns, whole[0][0].status.path)
        if found is not None:
            yield found
            return
    for commit, piece in whole:
        yield file_actions(piece, columns, partition_columns, commit.status.path)


def file_actions(
    data: bytes, columns: FileColumns, partition_columns: Sequence[str], where: str
) -> FileActions:
    """The adds and removes in a piece of a commit."""
    found = _fast(data, columns, partition_columns, where)
    return _careful(data, columns, where) if found is None else found


def _fast(
    data: bytes, columns: FileColumns, partition_columns: Sequence[str], where: str
) -> FileActions | None:
    """By Arrow's reader; None when the careful way must be taken."""
    if columns.tags or len(set(partition_columns)) != len(partition_columns):
        return None
    keys = [json.dumps(name, ensure_ascii=False).encode() + b":" for name in partition_columns]
    if b'"add"' in data and any(key not in data for key in keys):
        # The values may be under names in another letter case, which a schema would leave out.
        return None
    values = pa.struct([(name, pa.string()) for name in partition_columns])
    schema = pa.schema([("add", _add_type(columns, values)), ("remove", _REMOVE)])
    try:
        return _columns(parse_text(pa.py_buffer(data), schema), columns, where)
    except (pa.ArrowInvalid, CorruptTableError):
        return None


def _columns(table: pa.Table, columns: FileColumns, where: str) -> FileActions:
    add, remove = (_array(table.column(name)) for name in ("add", "remove"))
    add_rows, remove_rows = (_rows(each) for each in (add, remove))
    adds = columns.batch(add.take(add_rows) if len(add_rows) != len(add) else add, where)
    gone = FileColumns().batch(remove.take(remove_rows), where).select(["path", "deletion_vector"])
    return FileActions(adds, add_rows, gone, remove_rows, table.num_rows)


def _array(column: ArrowArray) -> ArrowArray:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _rows(action: ArrowArray) -> ArrowArray:
    return compute.indices_nonzero(action.is_valid()).cast(pa.int64())


def _careful(data: bytes, columns: FileColumns, where: str) -> FileActions:
    adds: list[dict[str, Any]] = []
    removes: list[dict[str, Any]] = []
    add_rows: list[int] = []
    remove_rows: list[int] = []
    row = -1
    for row, action in enumerate(actions(data, where)):
        if isinstance(action.get("add"), dict):
            adds.append(_plain_action(action["add"]))
            add_rows.append(row)
        if isinstance(action.get("remove"), dict):
            removes.append(_plain_action(action["remove"]))
            remove_rows.append(row)
    add = python_actions(adds, _add_type(columns, STRING_MAP), where)
    remove = python_actions(removes, _REMOVE, where)
    return FileActions(
        columns.batch(add, where),
        pa.array(add_rows, pa.int64()),
        FileColumns().batch(remove, where).select(["path", "deletion_vector"]),
        pa.array(remove_rows, pa.int64()),
        row + 1,
    )


def python_actions(values: list[dict[str, Any]], wanted: pa.StructType, where: str) -> ArrowArray:
    """Actions as dictionaries, as Arrow."""
    try:
        return pa.array(values, wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError) as error:
        raise CorruptTableError(
            f"{where} holds a file action with a field of the wrong type ({str(error)[:200]}). The file is"
            " damaged, or was not written by a Delta writer."
        ) from None


def python_adds(adds: list[dict[str, Any]], where: str) -> ArrowArray:
    """`add` actions of a JSON checkpoint with every field there may be."""
    every = FileColumns(stats="json", tags=True)
    return python_actions([_plain_action(each) for each in adds], _add_type(every, STRING_MAP), where)


def changed_files(values: list[dict[str, Any]], columns: FileColumns, where: str) -> pa.RecordBatch:
    """Actions of one commit as a batch of files with `data_change` as its last column."""
    fields = [*_add_type(columns, STRING_MAP), pa.field("dataChange", pa.bool_())]
    structs = python_actions([_plain_action(each) for each in values], pa.struct(fields), where)
    return columns.batch(structs, where).append_column(
        "data_change", compute.struct_field(structs, "dataChange")
    )


def _plain_action(action: dict[str, Any]) -> dict[str, Any]:
    plain = dict(action)
    for name in ("partitionValues", "tags"):
        value = action.get(name)
        if isinstance(value, dict):
            plain[name] = [(key, _text(each)) for key, each in value.items()]
    for name in ("size", "modificationTime", "baseRowId", "defaultRowCommitVersion"):
        value = action.get(name)
        if isinstance(value, float) and value.is_integer():
            plain[name] = int(value)
    return plain


def _text(value: object) -> str | None:
    """A partition value as text; some writers leave numbers and booleans bare."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


_OTHER = ("protocol", "metaData", "txn", "domainMetadata", "commitInfo", "sidecar", "checkpointMetadata")
_MARKS = {name: re.compile(rb'^[^\n]*"' + name.encode() + rb'"[^\n]*$', re.MULTILINE) for name in _OTHER}


def other_actions(data: bytes, names: Iterable[str], where: str) -> Iterator[tuple[str, Any]]:
    """The actions of some kinds that are not files, in order; lines without their names are not parsed."""
    for name in names:
        if f'"{name}"'.encode() not in data:
            continue
        for match in _MARKS[name].finditer(data):
            for action in actions(match[0], where):
                if action.get(name) is not None:
                    yield name, action[name]
