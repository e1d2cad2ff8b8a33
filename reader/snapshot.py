"""A table at one version: its schema and properties, and the files that are live.

Opening a snapshot reads what is needed for protocol and metadata alone. Files are replayed when they are
asked for, as a stream of Arrow batches. A snapshot never changes; `update` gives the newer one, reading only
what came since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from lakepass.reader import paths
from lakepass.reader.data.kept_files import with_kept_files
from lakepass.reader.errors import UnsupportedTableError
from lakepass.reader.features import check_readable
from lakepass.reader.location import Location
from lakepass.reader.log.actions import DomainMetadata, Metadata, Protocol, Transaction
from lakepass.reader.log.cache import LogCache, MemoryCache
from lakepass.reader.log.checkpoints import CheckpointReader
from lakepass.reader.log.files import FileColumns
from lakepass.reader.log.replay import Tail, checkpoint_files, read_tail
from lakepass.reader.log.segment import LogListing, LogSegment, find_segment
from lakepass.reader.log.state import (
    TableState,
    check_against_log,
    domain_metadata,
    find_state,
    log_state,
    transactions,
)
from lakepass.reader.log.timeline import version_timestamp
from lakepass.reader.schema import arrow_schema, parse_schema
from lakepass.reader.storage import Storage, Storages
from lakepass.reader.types import StructType

if TYPE_CHECKING:
    from lakepass.reader.log.ratified import RatifiedCommit
    from lakepass.reader.scan import Scan


@dataclass(frozen=True)
class LogSource:
    """Where a table's log is read: its root, the storages that may be used, and what a catalog adds to it."""

    root: Location
    storages: Storages
    ratified: Mapping[int, RatifiedCommit] | None = None
    cache: LogCache = field(default_factory=MemoryCache)

    @property
    def storage(self) -> Storage:
        """The storage of the log."""
        return self.storages.storage_for(self.root.join("_delta_log"))

    @property
    def has_commits(self) -> bool:
        """Whether a catalog's commits were given."""
        return self.ratified is not None


class Snapshot:
    """A table at a version. Comes from `Table.snapshot`.

    >>> from lakepass.reader import Table
    >>> snapshot = Table("orders").snapshot()
    >>> snapshot.version, snapshot.schema.names[:2], snapshot.protocol.min_reader_version
    (3, ['id', 'flag'], 1)
    """

    def __init__(self, source: LogSource, segment: LogSegment, state: TableState) -> None:
        self._source = source
        self._segment = segment
        self._state = state
        check_readable(state.protocol, str(source.root), has_commits=source.has_commits)
        provider = state.metadata.format.provider
        if provider.lower() != "parquet":
            raise UnsupportedTableError(
                f"{source.root} keeps its data as {provider[:50]!r}; Delta tables that can be read keep it as"
                " parquet."
            )
        self._tail: tuple[FileColumns, Tail] | None = None

    @classmethod
    def open(cls, source: LogSource, version: int | None = None) -> Snapshot:
        """The snapshot at a version, or the latest."""
        segment = find_segment(source.storage, source.root, version, source.ratified, source.cache)
        return cls(source, segment, find_state(source.storage, segment, source.cache))

    @property
    def root(self) -> Location:
        """The table's directory."""
        return self._source.root

    @property
    def storages(self) -> Storages:
        """What may be read, and with which credentials."""
        table = f"{self.root}\n{self.metadata.id}"
        return with_kept_files(self._source.storages, self._source.cache, table)

    @property
    def version(self) -> int:
        """The version this is."""
        return self._segment.version

    @property
    def protocol(self) -> Protocol:
        """What the table asks of readers and writers."""
        return self._state.protocol

    @property
    def metadata(self) -> Metadata:
        """Identity, schema text and properties."""
        return self._state.metadata

    @property
    def partition_columns(self) -> list[str]:
        """The logical names of the columns the table is partitioned by."""
        return list(self.metadata.partition_columns)

    @cached_property
    def columns(self) -> StructType:
        """The parsed schema."""
        return parse_schema(self.metadata.schema_string)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns with their logical names."""
        return arrow_schema(self.columns)

    @cached_property
    def timestamp_ms(self) -> int:
        """When this version was committed, in milliseconds since 1970."""
        return version_timestamp(self._source.storage, self._segment, self._state, self._source.cache)

    @cached_property
    def domain_metadata(self) -> dict[str, DomainMetadata]:
        """The configuration of each metadata domain."""
        return domain_metadata(self._source.storage, self._segment, self._source.cache)

    @cached_property
    def transactions(self) -> dict[str, Transaction]:
        """The last transaction of each application."""
        return transactions(self._source.storage, self._segment, self._source.cache)

    @property
    def nbytes(self) -> int:
        """About how much memory the snapshot holds on to; what it reads as a stream does not count."""
        tail = self._tail
        listed = 400 * (len(self._segment.commits) + 1)
        if tail is None:
            return listed
        return listed + tail[1].seen.nbytes + sum(batch.nbytes for batch in tail[1].live)

    @property
    def replay_id(self) -> str:
        """Equal for two snapshots of a version that list their files in the same order."""
        checkpoint = self._segment.checkpoint
        begin = -1 if checkpoint is None else checkpoint.version
        return f"{begin}+{'.'.join(commit.status.name for commit in self._segment.replayed())}"

    def resolve(self, path: str) -> str:
        """The full path of a file that the log names."""
        return paths.resolve(self.root, path)

    def file_batches(
        self, *, stats: pa.Schema | Literal["json"] | None = None, tags: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The live files, in batches of `FILE_SCHEMA` and the columns asked for.

        `stats` is a schema of statistics by physical names (only these are read and parsed), `"json"` for the
        text, or None.

        >>> from lakepass.reader import Table
        >>> sum(batch.num_rows for batch in Table("orders").snapshot().file_batches())
        5
        """
        self._check_state()
        columns = FileColumns(stats, tags, unpartitioned=not self.metadata.partition_columns)
        tail = self._read_tail(columns)
        yield from tail.live
        if self._segment.checkpoint is not None:
            reader = CheckpointReader(
                self._source.storage, self.root, self._segment.checkpoint, self._source.cache
            )
            yield from checkpoint_files(self.root, reader, columns, tail.seen)

    def scan(self, columns: Any = None, filter: Any = None, limit: int | None = None, **options: Any) -> Scan:
        """A scan of this version: columns by name, a filter as SQL text or tuples, a limit of rows.

        >>> from lakepass.reader import Table
        >>> Table("orders").snapshot(version=1).scan(["id"], "id < 3").to_arrow().sort_by("id").to_pydict()
        {'id': [1, 2]}
        """
        from lakepass.reader.scan import Scan

        return Scan(self, columns=columns, filter=filter, limit=limit, **options)

    def update(self) -> Snapshot:
        """The latest snapshot: this one if nothing was committed since, else one that builds on it.

        Costs one listing from this version on, and the commits that it shows.

        >>> from lakepass.reader import Table
        >>> snapshot = Table("orders").snapshot()
        >>> snapshot.update() is snapshot
        True
        """
        listing = LogListing.read(self._source.storage, self.root, self.version)
        listing.ratify(self._source.ratified or {}, self._source.storage)
        latest = listing.latest
        if latest is None or latest < self.version:
            # The log was replaced or cleaned up below us; begin anew.
            return Snapshot.open(self._source)
        if latest == self.version:
            return self
        newer = listing.since(self.version)
        if listing.checkpoints and max(listing.checkpoints) > self.version:
            segment = listing.segment(latest)
        else:
            segment = self._segment.extended(newer, list(listing.checksums.values()))
        fresh = replace(segment, checkpoint=None, commits=tuple(newer), compactions=(), checksums=())
        state = find_state(self._source.storage, fresh, self._source.cache, known=self._state)
        return Snapshot(self._source, segment, state)

    def _check_state(self) -> None:
        if self._state.from_checksum:
            log = log_state(self._source.storage, self._segment, self._source.cache)
            check_against_log(self._state, log, self._segment)
            self._state = replace(self._state, from_checksum=False)

    def _read_tail(self, columns: FileColumns) -> Tail:
        """What the commits after the checkpoint say; the last answer is kept, for the next listing asks the
        same.
        """
        if self._tail is None or self._tail[0] != columns:
            tail = read_tail(
                self._source.storage,
                self.root,
                self._segment.replayed(),
                columns,
                partition_columns=self._physical_partition_columns,
                cache=self._source.cache,
            )
            self._tail = columns, tail
        return self._tail[1]

    @cached_property
    def _physical_partition_columns(self) -> list[str]:
        from lakepass.reader.scan import mapping_mode

        mapped = mapping_mode(self.protocol, self.metadata) != "none"
        fields = [(name, self.columns.find(name)) for name in self.partition_columns]
        return [
            name if field is None else field.physical_name if mapped else field.name for name, field in fields
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {"_source": self._source, "_segment": self._segment, "_state": self._state, "_tail": None}

    def __repr__(self) -> str:
        return f"Snapshot({str(self.root)!r}, version={self.version})"
