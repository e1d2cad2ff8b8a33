"""Types that are table features: time without a zone, variants, void, and columns whose type was widened."""

from __future__ import annotations

from tests.tables.generator.fixture import Fixture, define


@define(earlier=1)
def timestamp_ntz(f: Fixture) -> None:
    """Timestamps without a time zone, also as a partition column and nested."""
    f.sql("""
        CREATE TABLE {t} (id INT, wall TIMESTAMP_NTZ, zoned TIMESTAMP, list ARRAY<TIMESTAMP_NTZ>, part TIMESTAMP_NTZ)
        USING delta PARTITIONED BY (part)
    """)
    f.sql("""
        INSERT INTO {t} VALUES
        (1, TIMESTAMP_NTZ'2024-03-31 02:30:00', TIMESTAMP'2024-03-31 02:30:00', array(TIMESTAMP_NTZ'1900-01-01 00:00:00'),
         TIMESTAMP_NTZ'2024-03-31 02:30:00'),
        (2, NULL, NULL, array(NULL), NULL)
    """)
    f.sql("""
        INSERT INTO {t} VALUES
        (3, TIMESTAMP_NTZ'0001-01-01 00:00:00', TIMESTAMP'1970-01-01 00:00:00', NULL, TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'),
        (4, TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', NULL, array(), TIMESTAMP_NTZ'2024-03-31 02:30:00')
    """)


@define(earlier=1)
def type_widening(f: Fixture) -> None:
    """Columns, the partition column, struct fields, array elements, map keys and values, each widened in steps, with
    rows written at every step."""
    f.sql("""
        CREATE TABLE {t} (id INT, a TINYINT, b INT, c FLOAT, d DECIMAL(6,2), e DATE, g SMALLINT,
          s STRUCT<x: TINYINT, y: ARRAY<SMALLINT>>, m MAP<TINYINT, FLOAT>, part SMALLINT)
        USING delta PARTITIONED BY (part) TBLPROPERTIES ('delta.enableTypeWidening'='true',
          'delta.feature.timestampNtz'='supported')
    """)
    f.sql("""
        INSERT INTO {t} VALUES
        (1, -128, 2147483647, 1.1, 1234.56, DATE'2024-02-29', -32768, struct(1, array(1, NULL)), map(1, 0.1), 7),
        (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    """)
    f.sql("ALTER TABLE {t} CHANGE COLUMN a TYPE SMALLINT")
    f.sql("ALTER TABLE {t} CHANGE COLUMN s.x TYPE INT")
    f.sql("""
        INSERT INTO {t} VALUES
        (3, 32767, -1, float('inf'), -9999.99, DATE'1582-10-15', 5, struct(2147483647, array(32767)), map(-128, 2.5), 8)
    """)
    for change in (
        "a TYPE INT",
        "b TYPE DOUBLE",
        "c TYPE DOUBLE",
        "d TYPE DECIMAL(12,4)",
        "e TYPE TIMESTAMP_NTZ",
        "g TYPE DECIMAL(10,0)",
        "s.x TYPE BIGINT",
        "s.y.element TYPE INT",
        "m.key TYPE INT",
        "m.value TYPE DOUBLE",
        "part TYPE INT",
    ):
        f.sql(f"ALTER TABLE {{t}} CHANGE COLUMN {change}")
    f.sql("""
        INSERT INTO {t} VALUES
        (4, 2147483647, 0.5, 1e300, 12345678.1234, TIMESTAMP_NTZ'2024-01-01 12:00:00.000001', 9999999999,
         struct(9223372036854775807, array(2147483647)), map(2147483647, 1e300), 2147483647)
    """)


VARIANTS = """
    (1, parse_json('{{"a": 1, "b": {{"c": [true, null, 2.5, "x"]}}}}'), struct(parse_json('[1, 2]')), array(parse_json('"s"'))),
    (2, parse_json('null'), NULL, array(NULL, parse_json('{{}}'))),
    (3, NULL, struct(NULL), NULL),
    (4, to_variant_object(named_struct('d', DATE'2024-02-29', 't', TIMESTAMP'2024-02-29 12:00:00.000001',
        'n', TIMESTAMP_NTZ'2024-02-29 12:00:00', 'dec', 1234567890123456789.12BD, 'f', float(1.5), 'bin', X'00FF',
        'i', tinyint(1), 'l', 9223372036854775807L)), NULL, NULL)
"""


def write_variants(f: Fixture) -> None:
    """Variants of every kind of value."""
    f.sql(f"INSERT INTO {{t}} VALUES {VARIANTS}")
    f.sql("""
        INSERT INTO {t} SELECT int(id), parse_json(concat('{{"a": ', id, ', "b": {{"c": "text ', id, '"}}, "odd', id % 3,
          '": [', id, ', "', id, '"]}}')), struct(parse_json(string(id))), array(parse_json(string(id / 4D)))
        FROM range(10, 30)
    """)
    f.sql("DELETE FROM {t} WHERE id = 12")


@define(earlier=1)
def variant(f: Fixture) -> None:
    """Variants at the top, in a struct and in an array; objects, arrays, nulls and every primitive."""
    f.notes.append('expected variants are Spark\'s to_json text; in structs and arrays, of {"value": column}')
    f.sql("CREATE TABLE {t} (id INT, v VARIANT, s STRUCT<v: VARIANT>, l ARRAY<VARIANT>) USING delta")
    with f.conf({"spark.sql.variant.writeShredding.enabled": "false"}):
        write_variants(f)


@define(earlier=1)
def variant_shredded(f: Fixture) -> None:
    """The same rows with the variants shredded: fields have typed columns in the files where Spark found that to
    pay, and some values do not fit them."""
    f.notes.append('expected variants are Spark\'s to_json text; in structs and arrays, of {"value": column}')
    f.sql("""
        CREATE TABLE {t} (id INT, v VARIANT, s STRUCT<v: VARIANT>, l ARRAY<VARIANT>) USING delta
        TBLPROPERTIES ('delta.enableVariantShredding'='true')
    """)
    with f.conf({
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.inferShreddingSchema": "true",
    }):  # fmt: skip
        write_variants(f)


@define(earlier=1)
def void(f: Fixture) -> None:
    """A column of type void, which no file holds."""
    f.notes.append(
        "Parquet has no void: Spark's expected rows leave the column out; its value is null in every row"
    )
    f.sql("CREATE TABLE {t} (id INT, nothing VOID, word STRING) USING delta")
    f.sql("INSERT INTO {t} (id, word) VALUES (1, 'a'), (2, NULL)")
    f.sql("INSERT INTO {t} (id, word) VALUES (3, 'c')")
