"""Shapes of the log: checkpoints of each kind, a log cut off before one, in-commit timestamps, compacted commits."""

from __future__ import annotations

import json
from typing import Any

from tests.tables.generator.fixture import Fixture, define

STRUCT_STATS = "'delta.checkpoint.writeStatsAsStruct'='true', 'delta.checkpoint.writeStatsAsJson'='false'"


def fill(f: Fixture, commits: int) -> None:
    """Single-file commits, a delete among them."""
    for n in range(commits):
        f.sql(
            f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ int(id), concat('w', id), date_add(DATE'2024-01-01', {n}), "
            f"decimal(id) / 3, {n % 3} FROM range({n * 10}, {n * 10 + 10})"
        )


COLUMNS = "(id INT, word STRING, day DATE, dec DECIMAL(12,4), part INT) USING delta PARTITIONED BY (part)"


@define(earlier=3)
def checkpoint_classic(f: Fixture) -> None:
    """A classic checkpoint with stats and partition values as structs only; removed files, a transaction identifier
    and commits after it."""
    f.sql(f"CREATE TABLE {{t}} {COLUMNS} TBLPROPERTIES ({STRUCT_STATS})")
    fill(f, 4)
    f.append(f.read().limit(1), txnAppId="loader", txnVersion="17")
    f.sql("DELETE FROM {t} WHERE id % 10 = 1")
    f.checkpoint()
    f.sql("INSERT INTO {t} VALUES (1000, 'after', NULL, NULL, NULL)")
    f.sql("DELETE FROM {t} WHERE id = 2")


@define(earlier=5)
def checkpoint_truncated(f: Fixture) -> None:
    """A log whose commits before the checkpoint were cleaned up: nothing below version 5 can be read."""
    f.sql(f"CREATE TABLE {{t}} {COLUMNS}")
    fill(f, 5)
    f.checkpoint()
    f.sql("DELETE FROM {t} WHERE part = 1")
    for version in range(5):
        (f.log / f"{version:020}.json").unlink()
        (f.log / f"{version:020}.crc").unlink()
    f.forget()


@define(earlier=2)
def checkpoint_multipart(f: Fixture) -> None:
    """A classic checkpoint in several parts."""
    f.sql(f"CREATE TABLE {{t}} {COLUMNS}")
    fill(f, 6)
    with f.conf({"spark.databricks.delta.checkpoint.partSize": "3"}):
        f.checkpoint()
    f.sql("DELETE FROM {t} WHERE id < 5")


def v2(f: Fixture, top: str) -> None:
    """V2 checkpoints with sidecars, the first at version 4, the second at version 6, and a commit after it."""
    f.sql(f"CREATE TABLE {{t}} {COLUMNS} TBLPROPERTIES ('delta.checkpointPolicy'='v2', {STRUCT_STATS})")
    settings = {
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": top,
        "spark.databricks.delta.checkpoint.partSize": "3",
    }
    fill(f, 4)
    with f.conf(settings):
        f.checkpoint()
        f.sql("DELETE FROM {t} WHERE id % 10 = 3")
        f.sql("ALTER TABLE {t} SET TBLPROPERTIES ('note'='between')")
        f.checkpoint()
    f.sql("INSERT INTO {t} VALUES (1000, 'after', NULL, 0.5, 9)")


@define(earlier=4)
def checkpoint_v2_parquet(f: Fixture) -> None:
    """V2 checkpoints whose top-level file is Parquet, with sidecars."""
    v2(f, "parquet")


@define(earlier=4)
def checkpoint_v2_json(f: Fixture) -> None:
    """V2 checkpoints whose top-level file is JSON, with sidecars."""
    v2(f, "json")


@define(earlier=1)
def in_commit_timestamps(f: Fixture) -> None:
    """Every commit states its own time."""
    f.sql("CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.enableInCommitTimestamps'='true')")
    for n in range(3):
        f.sql(f"INSERT INTO {{t}} VALUES ({n})")


@define(earlier=1)
def in_commit_timestamps_enabled_later(f: Fixture) -> None:
    """Commits state their own time only from version 3 on; before it, the files' modification times count."""
    f.sql("CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.enableInCommitTimestamps'='false')")
    f.sql("INSERT INTO {t} VALUES (0)")
    f.sql("INSERT INTO {t} VALUES (1)")
    f.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps'='true')")
    f.sql("INSERT INTO {t} VALUES (2)")


@define(earlier=3)
def log_compaction(f: Fixture) -> None:
    """Compacted commits for versions 1 to 4 and 5 to 6. Spark reads such files and does not write them: here each was
    put together from the commits by the protocol's reconciliation; the commits stay beside them."""
    f.sql(f"CREATE TABLE {{t}} {COLUMNS}")
    fill(f, 3)
    f.sql("DELETE FROM {t} WHERE id % 10 = 1")
    fill(f, 1)
    f.sql("DELETE FROM {t} WHERE part = 2")
    f.sql("INSERT INTO {t} VALUES (1000, 'after', NULL, NULL, NULL)")
    compact(f, 1, 4)
    compact(f, 5, 6)


def compact(f: Fixture, start: int, end: int) -> None:
    """Write the compacted commit of a range of versions: the last action for each file, and no commitInfo."""
    files: dict[tuple[str, str], dict[str, Any]] = {}
    rest: dict[str, dict[str, Any]] = {}
    for version in range(start, end + 1):
        for action in f.commit(version):
            ((kind, value),) = action.items()
            if kind in ("add", "remove"):
                vector = value.get("deletionVector") or {}
                key = (
                    value["path"],
                    "".join(
                        str(vector.get(part, "")) for part in ("storageType", "pathOrInlineDv", "offset")
                    ),
                )
                files[key] = action
            elif kind in ("protocol", "metaData"):
                rest[kind] = action
            elif kind == "txn":
                rest[f"txn {value['appId']}"] = action
            elif kind == "domainMetadata":
                rest[f"domain {value['domain']}"] = action
    text = "".join(
        json.dumps(action, separators=(",", ":")) + "\n" for action in [*rest.values(), *files.values()]
    )
    (f.log / f"{start:020}.{end:020}.compacted.json").write_text(text)
    f.forget()
