"""Plain and partitioned tables, and what a reader must not trip over though only writers care."""

from __future__ import annotations

from tests.tables.generator.fixture import Fixture, define

ALL_TYPES = """
    id INT, flag BOOLEAN, tiny TINYINT, small SMALLINT, big BIGINT, single FLOAT, double DOUBLE,
    dec9 DECIMAL(9,2), dec18 DECIMAL(18,6), dec38 DECIMAL(38,18), text STRING, bytes BINARY, day DATE,
    moment TIMESTAMP
"""


@define(earlier=1)
def plain(f: Fixture) -> None:
    """Every primitive type with its extremes and nulls; inserted in three commits, then updated, deleted from and
    merged into by copy-on-write."""
    f.sql(
        f"CREATE TABLE {{t}} ({ALL_TYPES}) USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='false')"
    )
    f.sql("""
        INSERT INTO {t} VALUES
        (1, true, -128, -32768, -9223372036854775808, float('-inf'), double('-inf'), -9999999.99, -999999999999.999999,
         -99999999999999999999.999999999999999999, '', X'', DATE'0001-01-01', TIMESTAMP'1000-01-01 00:00:00'),
        (2, false, 127, 32767, 9223372036854775807, float('nan'), double('nan'), 9999999.99, 999999999999.999999,
         99999999999999999999.999999999999999999, 'naïve ☃ 𝄞 "quoted" \\\\ back', X'00FF10', DATE'9999-12-31',
         TIMESTAMP'9999-12-31 23:59:59.999999'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    """)
    f.sql("""
        INSERT INTO {t} SELECT int(id), id % 2 = 0, tinyint(id), smallint(id * 7), id * 1000000007, float(id) / 3,
          double(id) / 7, decimal(id) / 4, decimal(id) / 8, decimal(id) / 16, concat('row ', id),
          unhex(lpad(hex(id), 4, '0')), date_add(DATE'1969-12-25', int(id)),
          timestamp_micros(id * 86399999999 - 1) FROM range(4, 104)
    """)
    f.sql("INSERT INTO {t} (id, text) VALUES (200, 'only two columns'), (201, NULL)")
    f.sql("UPDATE {t} SET text = upper(text), tiny = NULL WHERE id BETWEEN 10 AND 19")
    f.sql("DELETE FROM {t} WHERE id % 10 = 5")
    f.sql("""
        MERGE INTO {t} USING (SELECT explode(array(20, 300)) AS k) ON id = k
        WHEN MATCHED THEN UPDATE SET text = 'merged' WHEN NOT MATCHED THEN INSERT (id, text) VALUES (k, 'new')
    """)


@define(earlier=1)
def partitioned(f: Fixture) -> None:
    """Partitioned by every type that may be one, with nulls, extremes and values that need escaping in a path."""
    f.sql("""
        CREATE TABLE {t} (id INT, flag BOOLEAN, tiny TINYINT, small SMALLINT, whole INT, big BIGINT, single FLOAT,
          double DOUBLE, dec DECIMAL(10,3), wide DECIMAL(38,18), text STRING, bytes BINARY, day DATE,
          moment TIMESTAMP, value STRING)
        USING delta PARTITIONED BY (flag, tiny, small, whole, big, single, double, dec, wide, text, bytes, day, moment)
    """)
    f.sql("""
        INSERT INTO {t} VALUES
        (1, true, 1, 2, 3, 4, 1.5, 2.5, 3.125, 4.000000000000000001, 'plain', X'616263', DATE'2024-02-29',
         TIMESTAMP'2024-02-29 12:34:56', 'a'),
        (2, false, -128, -32768, -2147483648, -9223372036854775808, float('-inf'), double('-inf'), -9999999.999,
         -99999999999999999999.999999999999999999, 'a/b=c%20d e:é☃#?&+"\\\\', X'01', DATE'0001-01-01',
         TIMESTAMP'1000-01-01 00:00:00', 'b'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'c')
    """)
    f.sql("""
        INSERT INTO {t} VALUES
        (4, true, 127, 32767, 2147483647, 9223372036854775807, float('nan'), double('nan'), 9999999.999,
         99999999999999999999.999999999999999999, '', X'', DATE'9999-12-31', TIMESTAMP'2024-01-01 00:00:00.000001', 'd'),
        (5, true, 1, 2, 3, 4, 1.5, 2.5, 3.125, 4.000000000000000001, 'plain', X'616263', DATE'2024-02-29',
         TIMESTAMP'2024-02-29 12:34:56', 'e'),
        (6, false, 0, 0, 0, 0, float('-0.0'), double('1e-300'), 0, 0, '{{"json": [1]}}', X'68c3a9', DATE'1969-12-31',
         TIMESTAMP'1969-12-31 23:59:59.999999', 'f')
    """)
    f.sql("DELETE FROM {t} WHERE id = 3")


@define(earlier=1)
def nested(f: Fixture) -> None:
    """Structs, arrays and maps in each other, with nulls and empties at each level."""
    f.sql("""
        CREATE TABLE {t} (id INT, person STRUCT<name: STRING, home: STRUCT<city: STRING, zip: INT>>,
          tags ARRAY<STRING>, scores MAP<STRING, INT>, deep ARRAY<STRUCT<k: INT, m: MAP<STRING, ARRAY<INT>>>>,
          matrix ARRAY<ARRAY<DOUBLE>>, by_id MAP<INT, STRUCT<x: DATE, y: TIMESTAMP>>) USING delta
    """)
    f.sql("""
        INSERT INTO {t} VALUES
        (1, struct('ann', struct('oslo', 150)), array('a', NULL, ''), map('x', 1, 'y', NULL),
         array(struct(1, map('p', array(1, NULL)))), array(array(1.5D, NULL), array(), NULL),
         map(7, struct(DATE'2024-01-01', TIMESTAMP'2024-01-01 00:00:00'))),
        (2, struct(NULL, NULL), array(), map(), array(NULL, struct(NULL, map())), array(), map(8, NULL)),
        (3, NULL, NULL, NULL, NULL, NULL, NULL)
    """)
    f.sql("""
        INSERT INTO {t} SELECT int(id), struct(concat('p', id), struct('c', int(id))), array(string(id)),
          map(string(id), int(id)), array(struct(int(id), map('q', array(int(id))))), array(array(double(id))),
          map(int(id), struct(date_add(DATE'2024-01-01', int(id)), timestamp_seconds(id))) FROM range(4, 24)
    """)
    f.sql("UPDATE {t} SET person.home.city = 'bergen' WHERE id = 1")


@define(earlier=1)
def schema_evolution(f: Fixture) -> None:
    """Columns added after rows were written, also inside a struct and between others; an overwrite, a restore."""
    f.sql("CREATE TABLE {t} (id INT, s STRUCT<a: INT>) USING delta")
    f.sql("INSERT INTO {t} VALUES (1, struct(1)), (2, NULL)")
    f.sql("ALTER TABLE {t} ADD COLUMNS (s.b STRING, late DATE FIRST, s.c ARRAY<INT> AFTER a)")
    f.sql("INSERT INTO {t} VALUES (DATE'2024-05-05', 3, struct(3, array(1, 2), 'b'))")
    f.sql("INSERT OVERWRITE {t} VALUES (NULL, 9, NULL)")
    f.sql("RESTORE TABLE {t} TO VERSION AS OF 3")


@define(earlier=2)
def writer_features(f: Fixture) -> None:
    """What binds writers only and a reader must pass over: defaults, generated and identity columns, constraints,
    not-null columns, append-only."""
    f.notes.append("minReaderVersion 1 with writer features")
    f.sql("""
        CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), day DATE NOT NULL,
          word STRING DEFAULT 'unsaid', year INT GENERATED ALWAYS AS (YEAR(day)))
        USING delta PARTITIONED BY (year) TBLPROPERTIES ('delta.feature.allowColumnDefaults'='supported',
          'delta.appendOnly'='true')
    """)
    f.sql("ALTER TABLE {t} ADD CONSTRAINT recent CHECK (day > '1900-01-01')")
    f.sql("INSERT INTO {t} (day, word) VALUES (DATE'2023-01-01', 'a'), (DATE'2024-01-01', NULL)")
    f.sql("INSERT INTO {t} (day) VALUES (DATE'2024-06-01')")


@define(earlier=None)
def empty(f: Fixture) -> None:
    """A schema and no rows."""
    f.sql("CREATE TABLE {t} (id INT, text STRING) USING delta")
