"""Column mapping: by name, by id, turned on later, and together with everything else."""

from __future__ import annotations

from tests.tables.generator.fixture import Fixture, define

NESTED = """
    id INT, `a b` STRING, gone STRING, person STRUCT<first: STRING, `last name`: STRING, gone: INT>,
    list ARRAY<STRUCT<k: INT, v: STRING>>, lookup MAP<STRING, STRUCT<x: INT, y: DATE>>, part STRING
"""


def rename_and_drop(f: Fixture) -> None:
    """Rows, then renames and drops at every level, then rows again."""
    f.sql("""
        INSERT INTO {t} SELECT int(id), concat('ab', id), 'dropped', struct(concat('f', id), concat('l', id), 1),
          array(struct(int(id), 'v'), NULL), map('m', struct(int(id), DATE'2024-01-01')),
          CASE WHEN id % 3 > 0 THEN concat('p ', id % 3) END
        FROM range(12)
    """)
    f.sql("ALTER TABLE {t} RENAME COLUMN `a b` TO `text, (renamed);={{}}`")
    f.sql("ALTER TABLE {t} RENAME COLUMN person.first TO given")
    f.sql("ALTER TABLE {t} RENAME COLUMN list.element.k TO key")
    f.sql("ALTER TABLE {t} RENAME COLUMN lookup.value.y TO day")
    f.sql("ALTER TABLE {t} RENAME COLUMN part TO region")
    f.sql("ALTER TABLE {t} DROP COLUMNS (gone, person.gone)")
    f.sql("ALTER TABLE {t} ADD COLUMNS (gone INT, person.`first` STRING)")
    f.sql("""
        INSERT INTO {t} SELECT int(id), concat('new', id), struct(NULL, 'l', concat('again', id)),
          array(struct(NULL, concat('v', id))), map('n', NULL), 'p 1', int(id) FROM range(20, 26)
    """)
    f.sql("UPDATE {t} SET gone = -1 WHERE id = 3")


@define(earlier=1)
def mapping_name(f: Fixture) -> None:
    """Column mapping by name, partitioned; columns and nested fields renamed, dropped, and added again under the
    dropped name."""
    f.sql(f"""
        CREATE TABLE {{t}} ({NESTED}) USING delta PARTITIONED BY (part)
        TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='false')
    """)
    rename_and_drop(f)


@define(earlier=1)
def mapping_id(f: Fixture) -> None:
    """The same by id: files are read by Parquet field ids."""
    f.sql(f"""
        CREATE TABLE {{t}} ({NESTED}) USING delta PARTITIONED BY (part)
        TBLPROPERTIES ('delta.columnMapping.mode'='id', 'delta.enableDeletionVectors'='false')
    """)
    rename_and_drop(f)


@define(earlier=1)
def mapping_upgraded(f: Fixture) -> None:
    """Mapping by name turned on over existing files, whose physical names are the old logical ones; then two columns
    swap their names."""
    f.sql("CREATE TABLE {t} (a INT, b STRING, s STRUCT<c: INT>) USING delta")
    f.sql("INSERT INTO {t} VALUES (1, 'one', struct(10)), (2, NULL, NULL)")
    f.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.minReaderVersion'='2', "
          "'delta.minWriterVersion'='5')")  # fmt: skip
    f.sql("ALTER TABLE {t} RENAME COLUMN a TO swap")
    f.sql("ALTER TABLE {t} RENAME COLUMN b TO a")
    f.sql("ALTER TABLE {t} RENAME COLUMN swap TO b")
    f.sql("INSERT INTO {t} VALUES (3, 'three', struct(30))")


@define(earlier=1)
def mapping_deletion_vectors(f: Fixture) -> None:
    """Mapping by name and deletion vectors on nested, partitioned data, with a checkpoint between."""
    f.sql(f"""
        CREATE TABLE {{t}} ({NESTED}) USING delta PARTITIONED BY (part)
        TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true')
    """)
    rename_and_drop(f)
    f.sql("DELETE FROM {t} WHERE id % 4 = 1")
    f.checkpoint()
    f.sql("UPDATE {t} SET `text, (renamed);={{}}` = 'set' WHERE id = 20")
