"""Checkpoints: classic, multi-part and V2, read leaf by leaf.

A checkpoint has one row per action and a struct column per kind of action. Only the leaves that are asked for
are read, a batch of rows at a time, so that memory does not grow with the checkpoint; row groups whose
statistics say that they hold none of the wanted actions are not touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lakepass.reader.errors import CorruptTableError, DeltaError, PathRefusedError
from lakepass.reader.footer import FooterError
from lakepass.reader.location import Location
from lakepass.reader.log.actions import Sidecar
from lakepass.reader.log.arrays import ArrowArray
from lakepass.reader.log.cache import LogCache, read_kept
from lakepass.reader.log.checkpoint_file import CheckpointFile
from lakepass.reader.log.files import FileColumns
from lakepass.reader.log.lines import actions, pieces
from lakepass.reader.log.names import SIDECAR_DIRECTORY
from lakepass.reader.log.segment import Checkpoint
from lakepass.reader.paths import resolve
from lakepass.reader.storage import FileStatus, Storage
from lakepass.reader.storage.local import LocalStorage

_BATCH_ROWS, _PARSED_ROWS = 8 << 10, 64 << 10
"""Rows in a batch; more where their statistics are parsed, which several threads do together."""
STREAMED_BYTES = 32 << 20
"""A row group larger than this is fetched piece by piece: some writers put a million files into one."""
MAX_SIDECARS = 1_000_000

Row: TypeAlias = Any


class CheckpointReader:
    """One checkpoint's files, opened as needed."""

    def __init__(
        self, storage: Storage, root: Location, checkpoint: Checkpoint, cache: LogCache | None = None
    ) -> None:
        self._storage = storage
        self._root = root
        self._checkpoint = checkpoint
        self._cache = cache
        self._opened: tuple[str, CheckpointFile] | None = None

    @property
    def version(self) -> int:
        """The version it holds."""
        return self._checkpoint.version

    def rows(self, names: Sequence[str], until: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
        """Actions of the given kinds as dictionaries: for the few that are not files.

        Reading ends as soon as each of `until` was found, so that the rest of a long checkpoint is not looked
        through.
        """
        missing = set(until)
        for file in self._checkpoint.files:
            for name, row in self._file_rows(file.status, names):
                yield name, row
                missing.discard(name)
                if until and not missing:
                    return

    def file_structs(self, columns: FileColumns) -> Iterator[tuple[ArrowArray, str]]:
        """The `add` actions, all rows valid, with what the columns need, from the checkpoint and its
        sidecars.
        """
        for status in self._all_files():
            if status.path.endswith(".json"):
                yield from self._json_structs(status)
                continue
            rows = _PARSED_ROWS if isinstance(columns.stats, pa.Schema) else _BATCH_ROWS
            batches = self._batches(
                status, columns.leaves(), "add", as_json=columns.stats == "json", rows=rows
            )
            for batch in batches:
                column = batch.column(0)
                if not pa.types.is_struct(column.type):
                    raise _damaged(status.path, f"its add column is {column.type}")
                if column.null_count:
                    column = column.filter(column.is_valid())
                if len(column):
                    yield column, status.path

    def _json_structs(self, status: FileStatus) -> Iterator[tuple[ArrowArray, str]]:
        from lakepass.reader.log.commits import python_adds

        for piece in pieces(self._storage, status):
            adds = [
                action["add"] for action in actions(piece, status.path) if isinstance(action.get("add"), dict)
            ]
            if adds:
                yield python_adds(adds, status.path), status.path

    def _all_files(self) -> Iterator[FileStatus]:
        for file in self._checkpoint.files:
            yield file.status
        for number, (_, row) in enumerate(self.rows(["sidecar"])):
            if number >= MAX_SIDECARS:
                raise _damaged(
                    self._checkpoint.files[0].status.path, f"it names over {MAX_SIDECARS} sidecars"
                )
            yield self._sidecar(row)

    def _sidecar(self, row: Row) -> FileStatus:
        where = self._checkpoint.files[0].status.path
        sidecar = Sidecar.parse(row, where)
        if sidecar.size < 0:
            raise _damaged(where, f"it gives the sidecar {sidecar.path[:200]!r} {sidecar.size} bytes")
        # A name as a rule; a whole path is allowed, to a file of this directory all the same.
        is_name = "/" not in sidecar.path
        path = resolve(self._root, f"{SIDECAR_DIRECTORY}/{sidecar.path}" if is_name else sidecar.path)
        directory = self._root.join(SIDECAR_DIRECTORY)
        if path.rpartition("/")[0] != directory:
            raise PathRefusedError(
                f"Refused the sidecar {sidecar.path[:200]!r} of {where}: it is not in {directory}."
            )
        return FileStatus(path, sidecar.size, 0)

    def _file_rows(self, status: FileStatus, names: Sequence[str]) -> Iterator[tuple[str, Row]]:
        if status.path.endswith(".json"):
            for piece in pieces(self._storage, status):
                for action in actions(piece, status.path):
                    for name in names:
                        if action.get(name) is not None:
                            yield name, action[name]
            return
        for batch in self._batches(status, list(names)):
            for name in batch.schema.names:
                column = batch.column(name)
                if column.null_count < len(column):
                    for row in column.filter(column.is_valid()).to_pylist():
                        yield name, row

    def _batches(
        self,
        status: FileStatus,
        columns: list[str],
        wanted: str | None = None,
        *,
        as_json: bool = False,
        rows: int = _BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the given leaves; row groups without the wanted action are left out."""
        file = self._open(status)
        try:
            present = file.present(columns, as_json=as_json)
            if not present:
                return
            for groups, size in file.bundles(present, wanted):
                fetched = file.parquet if size <= STREAMED_BYTES else self._streamed(status, file)
                for batch in fetched.iter_batches(rows, row_groups=groups, columns=present, use_threads=True):
                    # Text in Parquet is not looked at when it is read: what is not UTF-8 would fail later.
                    batch.validate(full=True)
                    yield batch
        except (pa.ArrowException, OSError, UnicodeDecodeError, FooterError) as error:
            raise _unreadable(status.path, error) from None

    def _streamed(self, status: FileStatus, opened: CheckpointFile) -> pq.ParquetFile:
        return pq.ParquetFile(self._source(status), metadata=opened.parquet.metadata, buffer_size=4 << 20)

    def _source(self, status: FileStatus) -> Any:
        local = isinstance(self._storage, LocalStorage)
        if self._cache is not None and not local and self._cache.keeps(status.size):
            return pa.BufferReader(read_kept(self._storage, status, self._cache, status.size))
        return self._storage.open(status.path, status.size or None)

    def _open(self, status: FileStatus) -> CheckpointFile:
        if self._opened is not None and self._opened[0] == status.path:
            # Files and sidecars come from one checkpoint: its footer is read once.
            return self._opened[1]
        try:
            file = CheckpointFile(self._source(status))
            self._opened = status.path, file
            return file
        except DeltaError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(status.path, error) from None


def _damaged(path: str, why: str) -> CorruptTableError:
    return CorruptTableError(
        f"The checkpoint file {path} is damaged: {why}. Remove it if the commits are still there."
    )


def _unreadable(path: str, error: BaseException) -> CorruptTableError:
    return CorruptTableError(
        f"The checkpoint file {path} cannot be read ({str(error)[:200]}). It is damaged or cut off; if the"
        " commits it stands for are still there, remove it and the table opens without it."
    )
