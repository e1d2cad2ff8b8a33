"""Change data feed, row tracking and clustering, alone and all together."""

from __future__ import annotations

from tests.tables.generator.fixture import Fixture, define


def change(f: Fixture) -> None:
    """Inserts, an update, deletes of rows and of a whole file, a merge, and an overwrite of one partition."""
    f.sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ int(id), concat('w', id), int(id % 2) FROM range(20)")
    f.sql("UPDATE {t} SET word = 'updated' WHERE id IN (2, 3)")
    f.sql("DELETE FROM {t} WHERE id IN (4, 5)")
    f.sql("""
        MERGE INTO {t} USING (SELECT explode(array(6, 7, 100)) AS k) ON id = k
        WHEN MATCHED AND k = 6 THEN DELETE WHEN MATCHED THEN UPDATE SET word = 'merged'
        WHEN NOT MATCHED THEN INSERT (id, word, part) VALUES (k, 'inserted', 1)
    """)
    f.sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ int(id), 'one file', 2 FROM range(200, 205)")
    f.sql("DELETE FROM {t} WHERE part = 2")
    f.sql("OPTIMIZE {t}")


COLUMNS = "(id INT, word STRING, part INT) USING delta PARTITIONED BY (part)"


@define(earlier=2, changes=(0, 7))
def change_feed(f: Fixture) -> None:
    """Change data feed by copy-on-write."""
    f.sql(f"""
        CREATE TABLE {{t}} {COLUMNS} TBLPROPERTIES ('delta.enableChangeDataFeed'='true',
          'delta.enableDeletionVectors'='false')
    """)
    change(f)


@define(earlier=2, changes=(2, 6))
def change_feed_deletion_vectors(f: Fixture) -> None:
    """Change data feed with deletion vectors: some commits hold change files, others only vectors."""
    f.sql(f"""
        CREATE TABLE {{t}} {COLUMNS} TBLPROPERTIES ('delta.enableChangeDataFeed'='true',
          'delta.enableDeletionVectors'='true')
    """)
    change(f)


@define(earlier=2, changes=(1, 10))
def change_feed_mapping(f: Fixture) -> None:
    """Change data feed with deletion vectors, column mapping by name and in-commit timestamps; a column added and the
    feed read across it."""
    f.sql(f"""
        CREATE TABLE {{t}} {COLUMNS} TBLPROPERTIES ('delta.enableChangeDataFeed'='true',
          'delta.enableDeletionVectors'='true', 'delta.columnMapping.mode'='name',
          'delta.enableInCommitTimestamps'='true')
    """)
    change(f)
    f.sql("ALTER TABLE {t} ADD COLUMNS (`late one` DOUBLE)")
    f.sql("INSERT INTO {t} VALUES (300, 'late', 1, 1.5)")
    f.sql("UPDATE {t} SET `late one` = 2.5 WHERE id IN (8, 300)")


@define(earlier=1, changes=(4, 5))
def change_feed_enabled_later(f: Fixture) -> None:
    """Change data feed turned on at version 3: asking for earlier changes is an error."""
    f.sql(f"CREATE TABLE {{t}} {COLUMNS} TBLPROPERTIES ('delta.enableDeletionVectors'='false')")
    f.sql("INSERT INTO {t} VALUES (1, 'a', 0)")
    f.sql("DELETE FROM {t} WHERE id = 1")
    f.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed'='true')")
    f.sql("INSERT INTO {t} VALUES (2, 'b', 0), (3, 'c', 1)")
    f.sql("DELETE FROM {t} WHERE id = 2")


@define(earlier=2, row_tracking=True)
def row_tracking(f: Fixture) -> None:
    """Row ids and row commit versions: fresh ones, and ones materialized by an update, a merge and an optimize."""
    f.sql(f"""
        CREATE TABLE {{t}} {COLUMNS} TBLPROPERTIES ('delta.enableRowTracking'='true',
          'delta.enableDeletionVectors'='false')
    """)
    change(f)


@define(earlier=2, row_tracking=True)
def row_tracking_deletion_vectors(f: Fixture) -> None:
    """Row tracking with deletion vectors and column mapping."""
    f.sql(f"""
        CREATE TABLE {{t}} {COLUMNS} TBLPROPERTIES ('delta.enableRowTracking'='true',
          'delta.enableDeletionVectors'='true', 'delta.columnMapping.mode'='name')
    """)
    change(f)


@define(earlier=1)
def clustering(f: Fixture) -> None:
    """Liquid clustering, with its domain metadata, optimized once."""
    f.sql("CREATE TABLE {t} (id INT, place STRING, v DOUBLE) USING delta CLUSTER BY (place, id)")
    for start in (0, 100):
        f.sql(
            f"INSERT INTO {{t}} SELECT int(id), concat('c', id % 5), id / 3D FROM range({start}, {start + 100})"
        )
    f.sql("OPTIMIZE {t}")
    f.sql("DELETE FROM {t} WHERE id = 50")


@define(earlier=3, changes=(1, 6), row_tracking=True)
def everything(f: Fixture) -> None:
    """Mapping by name, deletion vectors, V2 checkpoint, in-commit timestamps, type widening, timestampNtz, row
    tracking, change data feed and clustering in one table."""
    f.sql("""
        CREATE TABLE {t} (id INT, `place name` STRING, small SMALLINT, wall TIMESTAMP_NTZ,
          s STRUCT<x: INT, l: ARRAY<STRUCT<k: STRING>>>)
        USING delta CLUSTER BY (id) TBLPROPERTIES ('delta.columnMapping.mode'='name',
          'delta.enableDeletionVectors'='true', 'delta.checkpointPolicy'='v2', 'delta.enableTypeWidening'='true',
          'delta.enableInCommitTimestamps'='true', 'delta.enableRowTracking'='true',
          'delta.enableChangeDataFeed'='true')
    """)
    f.sql("""
        INSERT INTO {t} SELECT int(id), concat('c', id % 5), smallint(id), TIMESTAMP_NTZ'2024-01-01 00:00:00',
          struct(int(id), array(struct(string(id)))) FROM range(60)
    """)
    f.sql("DELETE FROM {t} WHERE id % 9 = 0")
    f.sql("UPDATE {t} SET s.x = -1 WHERE id % 10 = 1")
    f.checkpoint()
    f.sql("INSERT INTO {t} VALUES (100, NULL, NULL, NULL, NULL)")
    f.sql("DELETE FROM {t} WHERE id = 59")
    f.sql("OPTIMIZE {t}")
    f.sql("ALTER TABLE {t} CHANGE COLUMN small TYPE INT")
    f.sql("ALTER TABLE {t} RENAME COLUMN `place name` TO place")
    f.sql("INSERT INTO {t} VALUES (101, 'new', 2147483647, NULL, NULL)")
