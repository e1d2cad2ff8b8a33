"""The `delta-sharing-capabilities` header, and what is answered to it.

`responseformat=delta,parquet;readerfeatures=deletionvectors;includeendstreamaction=true`: keys and values
in any case. Without the header the answer is in parquet format. A table whose files mean something only
together with a Delta feature (deletion vectors, column mapping, …) is never served in parquet format,
whatever else the header says: deleted rows would come back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from lakepass.broker.errors import InvalidParameter, UnsupportedOperation
from lakepass.reader.log.actions import Metadata, Protocol

Format = Literal["parquet", "delta"]
HEADER = "delta-sharing-capabilities"
FILE_ID_HEADER = "fileidhash"

# They say how the log is kept or cleaned up, not how files are read.
_ABOUT_THE_LOG = frozenset({"v2checkpoint", "vacuumprotocolcheck", "catalogmanaged", "catalogowned"})


@dataclass(frozen=True)
class Capabilities:
    """What a client can read and wants to have."""

    formats: frozenset[str] = frozenset({"parquet"})
    features: frozenset[str] = frozenset()
    end_stream: bool = False
    async_query: bool = False

    @classmethod
    def parse(cls, header: str | None) -> Capabilities:
        """From the header's text; parts that are not known are passed over."""
        values: dict[str, frozenset[str]] = {}
        for part in (header or "").lower().split(";"):
            key, _, listed = part.partition("=")
            values[key.strip()] = frozenset(item.strip() for item in listed.split(",") if item.strip())
        asked = values.get("responseformat", frozenset())
        formats = asked & {"parquet", "delta"}
        if asked and not formats:
            raise InvalidParameter(
                f"responseformat is parquet, delta or both, not {', '.join(sorted(asked))[:100]!r}."
            )
        return cls(
            formats or frozenset({"parquet"}),
            values.get("readerfeatures", frozenset()),
            "true" in values.get("includeendstreamaction", ()),
            "true" in values.get("asyncquery", ()),
        )

    def choose(self, tables: Iterable[tuple[Protocol, Metadata]]) -> Format:
        """The format of the answer for a table in these states.

        One format asked for is the one given; with both, parquet where it can hold the table.
        """
        needed = frozenset[str]().union(*(needed_features(*state) for state in tables))
        if not needed:
            return "parquet" if "parquet" in self.formats else "delta"
        if "delta" not in self.formats:
            raise UnsupportedOperation(
                f"The table needs the reader features {_listed(needed)}, which the parquet format cannot "
                "carry. "
                "Ask for responseformat=delta with these readerfeatures."
            )
        missing = needed - self.features
        if missing:
            raise UnsupportedOperation(
                f"The table needs the reader features {_listed(needed)}; the request's readerfeatures lack "
                f"{_listed(missing)}. A newer client may support them."
            )
        return "delta"

    def answer(self, chosen: Format, *, end_stream: bool | None = None) -> str:
        """The header of the answer."""
        included = self.end_stream if end_stream is None else end_stream
        return f"responseformat={chosen}" + (";includeendstreamaction=true" if included else "")


def needed_features(protocol: Protocol, metadata: Metadata) -> frozenset[str]:
    """What a client must understand to read the table's files, by the lower-case names of the header."""
    mode = metadata.configuration.get("delta.columnMapping.mode", "none").lower()
    needed = {"columnmapping"} if mode != "none" else set()
    if protocol.min_reader_version >= 3:
        named = {feature.lower().removesuffix("-preview") for feature in protocol.reader_features or ()}
        named.discard("columnmapping")  # said by the mode: the feature alone changes nothing
        needed |= named - _ABOUT_THE_LOG
    return frozenset(needed)


def parse_file_id_hash(header: str | None) -> Format | None:
    """The `fileidhash` header: which of the two kinds of file ids the client wants."""
    if header is None:
        return None
    value = header.strip().lower()
    if value == "parquet":
        return "parquet"
    if value == "delta":
        return "delta"
    raise InvalidParameter(f"The header fileidhash is parquet or delta, not {header[:50]!r}.")


def _listed(features: Iterable[str]) -> str:
    return ", ".join(sorted(features))
