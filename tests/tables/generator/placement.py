"""Tables whose files lie elsewhere, named by absolute paths."""

from __future__ import annotations

import shutil

from tests.tables.generator.fixture import Fixture, define

NOTE = "logs hold a placeholder for the folder of this file; tests.tables.fixtures.place puts the real one in"


@define(earlier=0)
def auxiliary(f: Fixture) -> None:
    """A shallow clone: its first files lie in `auxiliary/` and are named by absolute paths, later ones in its own
    directory."""
    f.notes.append(NOTE)
    source = f.home / "auxiliary"
    f.sql("CREATE TABLE delta.`{source}` (id INT, part STRING) USING delta PARTITIONED BY (part) "
          "TBLPROPERTIES ('delta.enableDeletionVectors'='false')", source=source)  # fmt: skip
    f.sql("INSERT INTO delta.`{source}` SELECT int(id), CASE id % 3 WHEN 0 THEN 'a b' WHEN 1 THEN 'c%d/é' END "
          "FROM range(30)", source=source)  # fmt: skip
    f.sql("CREATE TABLE {t} SHALLOW CLONE delta.`{source}`", source=source)
    f.sql("INSERT INTO {t} VALUES (100, 'own')")
    f.sql("DELETE FROM {t} WHERE id = 1")
    leave_only_files(f)


@define(earlier=0)
def auxiliary_deletion_vectors(f: Fixture) -> None:
    """A shallow clone of a table with deletion vectors: files and vectors (storage type `p`) by absolute paths, and
    vectors of its own on files that lie elsewhere."""
    f.notes.append(NOTE)
    source = f.home / "auxiliary"
    f.sql("CREATE TABLE delta.`{source}` (id INT, word STRING) USING delta "
          "TBLPROPERTIES ('delta.enableDeletionVectors'='true')", source=source)  # fmt: skip
    f.sql(
        "INSERT INTO delta.`{source}` SELECT /*+ COALESCE(1) */ int(id), concat('w', id) FROM range(40)",
        source=source,
    )
    f.sql("INSERT INTO delta.`{source}` SELECT /*+ COALESCE(1) */ int(id), concat('w', id) FROM range(40, 80)",
          source=source)  # fmt: skip
    f.sql("DELETE FROM delta.`{source}` WHERE id IN (1, 2, 30)", source=source)
    f.sql("CREATE TABLE {t} SHALLOW CLONE delta.`{source}`", source=source)
    f.sql("DELETE FROM {t} WHERE id IN (3, 50)")
    f.sql("INSERT INTO {t} VALUES (100, 'own')")
    leave_only_files(f)


def leave_only_files(f: Fixture) -> None:
    """No log beside the source's files, and no checkpoint of the clone, whose paths could not be made portable."""
    shutil.rmtree(f.home / "auxiliary/_delta_log")
    for file in [*f.log.glob("*.checkpoint.*parquet"), *f.log.glob("_last_checkpoint")]:
        file.unlink()
    f.forget()
