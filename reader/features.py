"""Every table feature, what it asks of a reader, and whether this reader does it.

Reader version 1 asks nothing, 2 asks for column mapping, 3 asks for whatever `readerFeatures` names. A
required feature that is not in this registry, or is there as unsupported, makes the table unreadable: it is
refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lakepass.reader.errors import CorruptTableError, UnsupportedTableError
from lakepass.reader.log.actions import Protocol

MAX_READER_VERSION = 3
CATALOG_MANAGED = ("catalogManaged", "catalogOwned-preview")


@dataclass(frozen=True)
class Feature:
    """One table feature."""

    name: str
    asks: str
    """What a reader has to do."""
    kind: Literal["reader", "writer"] = "reader"
    supported: bool = True


_NOTHING = "nothing: it binds writers"

FEATURES: dict[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("columnMapping", "columns are found by physical name or field id"),
        Feature("deletionVectors", "rows marked in a file's deletion vector are left out"),
        Feature("timestampNtz", "timestamps without a time zone"),
        Feature("v2Checkpoint", "checkpoints with UUID names and sidecar files"),
        Feature("typeWidening", "values written with an earlier, narrower type are converted"),
        Feature("typeWidening-preview", "the same, under its name before release"),
        Feature("variantType", "semi-structured values"),
        Feature("variantType-preview", "the same, under its name before release"),
        Feature("variantShredding", "semi-structured values partly stored as typed columns"),
        Feature("variantShredding-preview", "the same, under its name before release"),
        Feature("vacuumProtocolCheck", "nothing: it makes old vacuum commands stop"),
        Feature("catalogManaged", "the catalog's list of commits is part of the log"),
        Feature("catalogOwned-preview", "the same, under its name before release"),
        Feature("appendOnly", _NOTHING, "writer"),
        Feature("invariants", _NOTHING, "writer"),
        Feature("checkConstraints", _NOTHING, "writer"),
        Feature("generatedColumns", _NOTHING, "writer"),
        Feature("allowColumnDefaults", _NOTHING, "writer"),
        Feature(
            "changeDataFeed",
            "nothing for rows; changes are read from change files where there are some",
            "writer",
        ),
        Feature("identityColumns", _NOTHING, "writer"),
        Feature("rowTracking", "row ids and row commit versions, when asked for", "writer"),
        Feature("domainMetadata", "nothing; the domains are readable", "writer"),
        Feature("inCommitTimestamp", "time travel goes by the timestamps in commits", "writer"),
        Feature("inCommitTimestamp-preview", "the same, under its name before release", "writer"),
        Feature("clustering", _NOTHING, "writer"),
        Feature("clustering-preview", _NOTHING, "writer"),
        Feature("icebergCompatV1", _NOTHING, "writer"),
        Feature("icebergCompatV2", _NOTHING, "writer"),
        Feature("icebergCompatV3", _NOTHING, "writer"),
        Feature("icebergWriterCompatV1", _NOTHING, "writer"),
        Feature("icebergWriterCompatV3", _NOTHING, "writer"),
        Feature("checkpointProtection", _NOTHING, "writer"),
        Feature("materializePartitionColumns", _NOTHING, "writer"),
        Feature("coordinatedCommits-preview", _NOTHING, "writer"),
        Feature("collations", "nothing for rows; a filter on such a column is refused", "writer"),
        Feature("collations-preview", "nothing for rows; a filter on such a column is refused", "writer"),
    )
}
"""By name. A writer's feature asks nothing of a reader, also when a writer lists it in `readerFeatures` by
mistake.
"""


def required(protocol: Protocol) -> tuple[str, ...]:
    """The features a reader must have for this protocol.

    >>> required(Protocol(2, 5))
    ('columnMapping',)
    >>> required(Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "appendOnly")))
    ('deletionVectors',)
    """
    if protocol.min_reader_version == 2 and protocol.reader_features is None:
        return ("columnMapping",)
    return protocol.reader_features or ()


def check_readable(protocol: Protocol, table: str, *, has_commits: bool = False) -> None:
    """Refuses a table that this reader would read wrongly.

    `has_commits` says that the caller brought the catalog's commits, without which a catalog-managed table's
    log is incomplete.

    >>> check_readable(Protocol(3, 7, ("teleportation",), ("teleportation",)), "s3://b/t")
    Traceback (most recent call last):
    lakepass.reader.errors.UnsupportedTableError: s3://b/t needs the table feature 'teleportation' ...
    """
    version = protocol.min_reader_version
    if not 0 <= version <= MAX_READER_VERSION:
        raise UnsupportedTableError(
            f"{table} needs a reader of version {version}; this one reads versions 1 to {MAX_READER_VERSION}."
            " A newer lakepass may read it."
        )
    if version == MAX_READER_VERSION and protocol.reader_features is None:
        raise CorruptTableError(
            f"{table} has reader version 3 without a list of readerFeatures, which the protocol requires:"
            " what the table needs of a reader cannot be known."
        )
    wanted = required(protocol)
    unknown = tuple(sorted(name for name in wanted if name not in FEATURES or not FEATURES[name].supported))
    if unknown:
        names = ", ".join(repr(name[:100]) for name in unknown[:20])
        raise UnsupportedTableError(
            f"{table} needs the table feature{'s' if len(unknown) > 1 else ''} {names} of a reader, which"
            " this version of lakepass does not have. Reading it anyway could give wrong rows.",
            unknown,
        )
    managed = tuple(name for name in wanted if name in CATALOG_MANAGED)
    if managed and not has_commits:
        raise UnsupportedTableError(
            f"{table} is managed by a catalog ({managed[0]}): its latest commits are known to the catalog"
            " alone, and the log in storage may lack them. Ask the catalog for its ratified commits and give"
            " them to Table(..., commits=[...]).",
            managed,
        )
