"""Scans: what is asked for is what comes back, from files of every layout that the protocol allows."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakepass.reader.errors import CorruptTableError, DeltaError, FilterError, UnsupportedTableError
from lakepass.reader.table import Table
from tests.reader.rows import multiset
from tests.reader.written import Written, field, inline, mapped, roaring, struct_of
from tests.tables.fixtures import fixture

FEATURES = ["deletionVectors", "columnMapping", "typeWidening", "timestampNtz"]


def test_columns_come_in_the_order_they_are_asked_for(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("a", "long"), field("b", "string"), field("C", "double")])
    written.add(pa.table({"C": [0.5], "b": ["x"], "a": [1]}))
    table = written.table()
    assert table.to_arrow().schema.names == ["a", "b", "C"]
    assert table.to_arrow(columns=["c", "a"]).to_pydict() == {"C": [0.5], "a": [1]}


def test_a_field_of_a_struct_is_asked_for_by_its_path(tmp_path: Path) -> None:
    inner = struct_of(field("x y", "long"), field("z", "string"))
    written = Written(tmp_path / "t", [field("s", inner), field("a.b", "long"), field("z", "long")])
    rows = pa.table({"s": [{"x y": 1, "z": "one"}, None], "a.b": [7, 8], "z": [5, 6]})
    written.add(rows)
    table = written.table()
    assert table.to_arrow(columns=["s.`x y`"]).to_pydict() == {"x y": [1, None]}
    assert table.to_arrow(columns=["a.b", "s.z"]).to_pydict() == {"a.b": [7, 8], "z": ["one", None]}
    both = table.to_arrow(columns=["s.z", "z"]).to_pydict()
    assert both == {"s.z": ["one", None], "z": [5, 6]}
    assert table.to_arrow(filter="s.z = 'one'").num_rows == 1
    assert table.to_arrow(filter="`a.b` = 8", columns=["z"]).to_pydict() == {"z": [6]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"columns": ["nope"]}, "the table has id, s"),
        ({"columns": ["s.nope"]}, "'s' has x"),
        ({"columns": ["id.x"]}, "not a struct"),
        ({"columns": "id"}, "list of names"),
        ({"columns": ["id", "id"]}, "twice"),
        ({"columns": ["`id"]}, "backtick"),
        ({"filter": "idd = 1"}, "Did you mean 'id'"),
        ({"filter": "id = "}, "not SQL"),
        ({"filter": "id + 1 = 2"}, "cannot use"),
        ({"filter": "upper(id) = 'A'"}, "cannot use"),
        ({"filter": "id"}, "true or false"),
        ({"filter": "s = 1"}, "cannot be compared"),
        ({"filter": "id = true"}, "cannot be compared"),
        ({"filter": "id = 'one'"}, "does not fit"),
        ({"filter": "id = '1_000'"}, "does not fit"),
        ({"filter": "id in (select 1)"}, "cannot use"),
        ({"filter": [("id", "~", 1)]}, "not an operator"),
        ({"filter": [("id", "=", None)]}, "is null"),
        ({"filter": [("id", "in", 3)]}, "list of values"),
        ({"filter": ["id"]}, "tuple"),
        ({"filter": 7}, "SQL text"),
        ({"filter": "true = id in (1)"}, "parentheses"),
        ({"filter": "id < 1e400"}, "too large for a double"),
        ({"limit": -1}, "number of rows"),
        ({"limit": True}, "number of rows"),
        ({"limit": 1.5}, "number of rows"),
    ],
)
def test_what_cannot_be_is_said(arguments: dict[str, Any], words: str, tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long"), field("s", struct_of(field("x", "long")))])
    written.add(pa.table({"id": [1], "s": [{"x": 1}]}))
    with pytest.raises(FilterError, match=words):
        written.table().snapshot().scan(**arguments).to_arrow()


def test_a_limit_stops_before_a_file_that_is_not_there(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long")])
    for start in range(4):
        written.add(pa.table({"id": [start * 10 + each for each in range(10)]}))
    scan = written.table().snapshot().scan(limit=15)
    assert scan.to_arrow().num_rows == 15
    assert scan.count() == 15
    assert written.table().snapshot().scan(limit=0).to_arrow().num_rows == 0
    three: Any = np.int64(3)
    assert written.table().snapshot().scan(limit=three).to_arrow().num_rows == 3


def test_no_columns_still_count(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long")], features=["deletionVectors"])
    written.add(pa.table({"id": [1, 2, 3]}), vector=inline(roaring([1]), 1))
    written.add(pa.table({"id": pa.array([], pa.int64())}))
    scan = written.table().snapshot().scan(columns=[])
    assert scan.to_arrow().num_rows == 2
    assert scan.count() == 2
    assert written.table().snapshot().scan(columns=[], filter="id = 3").to_arrow().num_rows == 1


def test_count_believes_the_log_where_it_is_exact(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "t",
        [field("p", "string"), field("id", "long")],
        partitions=["p"],
        features=["deletionVectors"],
    )
    path = written.add(
        pa.table({"id": [1, 2, 3]}),
        values={"p": "a"},
        stats={"numRecords": 3},
        vector=inline(roaring([0]), 1),
    )
    written.add(pa.table({"id": [4]}), values={"p": "b"})
    table = written.table()
    path.unlink()
    assert table.snapshot().scan().count() == 3
    assert table.snapshot().scan(filter="p = 'a'").count() == 2
    assert table.snapshot().scan(filter="p = 'b' and id = 4").count() == 1


def test_count_does_not_believe_a_negative_number_of_rows(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long")], features=["deletionVectors"])
    written.add(pa.table({"id": [1, 2, 3]}), stats={"numRecords": -5})
    written.add(pa.table({"id": [4, 5]}), stats={"numRecords": 0}, vector=inline(roaring([0]), 1))
    assert written.table().snapshot().scan().count() == 4


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_found_at_every_level(mode: str, tmp_path: Path) -> None:
    inner = struct_of(mapped("inside", "long", 3, "c3"), mapped("added later", "string", 4, "c4"))
    fields = [
        mapped("first", "string", 1, "c1"),
        mapped("s", inner, 2, "c2"),
        mapped("l", {"type": "array", "elementType": inner, "containsNull": True}, 5, "c5"),
        mapped(
            "m", {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True}, 6, "c6"
        ),
        mapped("absent", "date", 7, "c7"),
    ]
    written = Written(
        tmp_path / "t", fields, features=["columnMapping"], configuration={"delta.columnMapping.mode": mode}
    )
    names = {"first": "c1", "inside": "c3"} if mode == "name" else {"first": "xx", "inside": "yy"}
    part = pa.struct([_identified(names["inside"], pa.int64(), 3), _identified("dropped", pa.int64(), 99)])
    schema = pa.schema(
        [
            _identified("c2" if mode == "name" else "zz", part, 2),
            _identified("c5" if mode == "name" else "ll", pa.list_(pa.field("element", part)), 5),
            _identified("c6" if mode == "name" else "mm", pa.map_(pa.string(), part), 6),
            _identified(names["first"], pa.string(), 1),
        ]
    )
    one = {names["inside"]: 1, "dropped": 2}
    columns: list[Any] = [[one, None], [[one, None], []], [[("k", one)], [("n", None)]], ["x", None]]
    arrays: Any = [pa.array(values, kind.type) for values, kind in zip(columns, schema, strict=True)]
    written.add(pa.Table.from_arrays(arrays, schema=schema))
    found = {"inside": 1, "added later": None}
    assert written.table().to_arrow().to_pylist() == [
        {"first": "x", "s": found, "l": [found, None], "m": [("k", found)], "absent": None},
        {"first": None, "s": None, "l": [], "m": [("n", None)], "absent": None},
    ]
    assert written.table().to_arrow(filter="s.inside = 1", columns=["s.inside"]).to_pydict() == {
        "inside": [1]
    }


def _identified(name: str, kind: pa.DataType, number: int) -> pa.Field[Any]:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def test_a_file_without_ids_is_refused_under_mapping_by_id(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "t",
        [mapped("a", "long", 1, "a")],
        features=["columnMapping"],
        configuration={"delta.columnMapping.mode": "id"},
    )
    written.add(pa.table({"a": [1]}))
    with pytest.raises(CorruptTableError, match="no field ids"):
        written.table().to_arrow()


WIDENED: list[tuple[str, Any, Any]] = [
    ("short", pa.array([1, -2], pa.int8()), [1, -2]),
    ("integer", pa.array([1, -2], pa.int16()), [1, -2]),
    ("long", pa.array([1, -2], pa.int32()), [1, -2]),
    ("long", pa.array([1, -2], pa.int8()), [1, -2]),
    ("double", pa.array([1.5, float("nan")], pa.float32()), [1.5, "NaN"]),
    ("double", pa.array([1, -2], pa.int32()), [1.0, -2.0]),
    ("decimal(12,2)", pa.array([1, -2], pa.int32()), [Decimal("1.00"), Decimal("-2.00")]),
    (
        "decimal(22,2)",
        pa.array([1, -(2**63)], pa.int64()),
        [Decimal("1.00"), Decimal(-(2**63)).quantize(Decimal("0.01"))],
    ),
    ("decimal(7,3)", pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)), [Decimal("1.250"), None]),
    ("decimal(38,4)", pa.array([Decimal("1.25"), None], pa.decimal128(20, 2)), [Decimal("1.2500"), None]),
    ("timestamp_ntz", pa.array([dt.date(1500, 1, 2), None]), [dt.datetime(1500, 1, 2), None]),
    ("timestamp", pa.array([-1, 1_500], pa.timestamp("ns")), None),
    ("timestamp", pa.array([-1, 1], pa.timestamp("ms", "UTC")), None),
    ("byte", pa.array([1, -2], pa.int32()), [1, -2]),
    ("long", pa.array([1, 4_000_000_000], pa.uint32()), [1, 4_000_000_000]),
    ("string", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("string", pa.array(["a", None]).dictionary_encode(), ["a", None]),
    ("binary", pa.array([b"ab", None], pa.binary(2)), [b"ab", None]),
    ("string", pa.array([b"a", None], pa.binary()), ["a", None]),
]


@pytest.mark.parametrize("index", range(len(WIDENED)))
def test_narrower_values_in_a_file_are_read_as_the_tables_type(index: int, tmp_path: Path) -> None:
    kind, stored, expected = WIDENED[index]
    nested = {"type": "array", "elementType": struct_of(field("v", kind)), "containsNull": True}
    written = Written(tmp_path / "t", [field("v", kind), field("l", nested)], features=FEATURES)
    items = pa.StructArray.from_arrays([stored], names=["v"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), items)
    written.add(pa.table({"v": stored, "l": lists}))
    rows = written.table().to_arrow()
    if expected is None:
        unit = {"ns": 0.001, "ms": 1000}[stored.type.unit]
        import math

        expected = [math.floor(value * unit) for value in stored.cast(pa.int64()).to_pylist()]
        values = rows.column("v").cast(pa.int64()).to_pylist()
    else:
        values = _known(rows.column("v").to_pylist())
        inner = [each[0]["v"] for each in _known(rows.column("l").to_pylist())]
        assert _known(inner) == expected
    assert values == expected


def _known(values: Any) -> list[Any]:
    return ["NaN" if each != each else each for each in values]


REFUSED: list[tuple[str, Any]] = [
    ("integer", pa.array([1], pa.int64())),
    ("long", pa.array([1.0])),
    ("float", pa.array([1.0])),
    ("double", pa.array([1], pa.int64())),
    ("decimal(9,0)", pa.array([1], pa.int32())),
    ("decimal(10,3)", pa.array([Decimal("1.25")], pa.decimal128(10, 2))),
    ("string", pa.array([1])),
    ("timestamp", pa.array([dt.date(2020, 1, 1)])),
    ("date", pa.array([1], pa.timestamp("us"))),
    ("boolean", pa.array([1])),
    ("byte", pa.array([300], pa.int32())),
    (struct_of(field("x", "long")), pa.array([1])),  # type: ignore[list-item]
    ({"type": "array", "elementType": "long", "containsNull": True}, pa.array([1])),  # type: ignore[list-item]
]


@pytest.mark.parametrize("index", range(len(REFUSED)))
def test_what_the_protocol_does_not_widen_is_refused_by_file_and_column(index: int, tmp_path: Path) -> None:
    kind, stored = REFUSED[index]
    written = Written(tmp_path / "t", [field("value", kind)], features=FEATURES)
    written.add(pa.table({"value": stored}))
    with pytest.raises(CorruptTableError, match=r"part-0\.parquet .*'value'"):
        written.table().to_arrow()


def test_a_recorded_change_that_the_protocol_lacks_is_refused(tmp_path: Path) -> None:
    changed = field("v", "integer") | {
        "metadata": {"delta.typeChanges": [{"fromType": "long", "toType": "integer"}]}
    }
    written = Written(tmp_path / "t", [changed], features=["typeWidening"])
    with pytest.raises(UnsupportedTableError, match="from long to integer"):
        written.table().to_arrow()


PARTITIONS: list[tuple[str, str, Any]] = [
    ("string", "a b/c=%20", "a b/c=%20"),
    ("long", "-9223372036854775808", -(2**63)),
    ("byte", "-128", -128),
    ("double", "NaN", "NaN"),
    ("double", "-Infinity", float("-inf")),
    ("float", "1.5E3", 1500.0),
    ("boolean", "true", True),
    ("date", "1500-02-28", dt.date(1500, 2, 28)),
    ("timestamp", "2024-02-29 12:30:00", dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)),
    ("timestamp", "2024-02-29 12:30:00.123456", dt.datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=dt.UTC)),
    ("timestamp", "2024-02-29T12:30:00.123456Z", dt.datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=dt.UTC)),
    ("timestamp_ntz", "1024-02-29 12:30:00", dt.datetime(1024, 2, 29, 12, 30)),
    ("timestamp_ntz", "2024-02-29T12:30:00Z", dt.datetime(2024, 2, 29, 12, 30)),
    ("decimal(38,18)", "-0.000000000000000001", Decimal("-1E-18")),
    ("binary", "\u0001\u0002\u0003", b"\x01\x02\x03"),
    ("integer", "", None),
    ("string", "", None),
]


@pytest.mark.parametrize("index", range(len(PARTITIONS)))
def test_partition_values_of_every_type(index: int, tmp_path: Path) -> None:
    kind, text, value = PARTITIONS[index]
    written = Written(
        tmp_path / "t", [field("p", kind), field("x", "long")], partitions=["p"], features=["timestampNtz"]
    )
    written.add(pa.table({"x": [1, 2]}), values={"p": text})
    written.add(pa.table({"x": [3]}), values={"p": None})
    rows = written.table().to_arrow().to_pydict()
    found = ["NaN" if each != each else each for each in rows["p"]]
    assert sorted(zip(rows["x"], found, strict=True)) == [(1, value), (2, value), (3, None)]
    nulls = written.table().to_arrow(filter="p is null").num_rows
    assert nulls == (3 if value is None else 1)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("integer", "x"),
        ("byte", "200"),
        ("long", "1_000"),
        ("double", "\u0663.5"),
        ("date", "2024-13-01"),
        ("boolean", "2"),
        ("decimal(10,2)", "Infinity"),
        ("timestamp", "999999-01-01 00:00:00"),
        ("timestamp_ntz", "2024-02-29T12:30:00+02:00"),
    ],
)
def test_a_partition_value_of_another_type_is_refused(kind: str, text: str, tmp_path: Path) -> None:
    written = Written(
        tmp_path / "t", [field("p", kind), field("x", "long")], partitions=["p"], features=["timestampNtz"]
    )
    written.add(pa.table({"x": [1]}), values={"p": text})
    with pytest.raises(CorruptTableError, match="partition column 'p'"):
        written.table().to_arrow()


@pytest.mark.parametrize(
    ("column", "named", "key"), [("Part", "part", "Part"), ("Part", "Part", "part"), ("Part", "Part", "Part")]
)
def test_partition_columns_are_found_in_another_letter_case(
    column: str, named: str, key: str, tmp_path: Path
) -> None:
    written = Written(
        tmp_path / "t",
        [field(column, "string"), field("x", "long")],
        partitions=[named],
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    written.add(pa.table({"x": [1]}), values={key: "a"})
    written.add(pa.table({"x": [2]}), values={key: None})
    table = written.table()
    assert table.to_arrow(filter="part = 'a'").to_pylist() == [{"Part": "a", "x": 1}]
    changed = table.changes(0, 0, columns=["Part"])
    assert changed.to_arrow().column("Part").to_pylist() == ["a", None]


def test_a_mapping_that_the_protocol_does_not_have_is_not_followed(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "t",
        [mapped("p", "string", 1, "c1"), mapped("x", "long", 2, "c2")],
        partitions=["p"],
        configuration={"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"},
    )
    written.add(pa.table({"x": [1]}), values={"p": "a"})
    table = written.table()
    assert table.to_arrow().to_pylist() == [{"p": "a", "x": 1}]
    assert table.changes(0, 0, columns=["p", "x"]).to_arrow().to_pylist() == [{"p": "a", "x": 1}]


def test_old_timestamps_outside_of_nanoseconds_are_read(tmp_path: Path) -> None:
    moments = [
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    ]
    written = Written(tmp_path / "t", [field("at", "timestamp")])
    rows = pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))})
    written.add(rows, use_deprecated_int96_timestamps=True)
    assert written.table().to_arrow().column("at").to_pylist() == moments


def test_nulls_where_the_table_allows_none_are_refused(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("a", "long", nullable=False), field("b", "long")])
    written.add(pa.table({"a": [1, None], "b": [1, 2]}))
    with pytest.raises(CorruptTableError, match="never null"):
        written.table().to_arrow()
    missing = Written(tmp_path / "u", [field("a", "long", nullable=False), field("b", "long")])
    missing.add(pa.table({"b": [1]}))
    with pytest.raises(CorruptTableError, match="has no column 'a'"):
        missing.table().to_arrow()


def test_legacy_lists_are_read(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "t", [field("l", {"type": "array", "elementType": "long", "containsNull": True})]
    )
    written.add(pa.table({"l": [[1, 2], [], None]}), use_compliant_nested_type=False)
    assert written.table().to_arrow().to_pydict() == {"l": [[1, 2], [], None]}


def test_a_split_file_gives_every_row_once_with_its_deletion_vector(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "t", [field("id", "long"), field("x", "string")], features=["deletionVectors"]
    )
    count = 5_000
    gone = list(range(0, count, 7))
    rows = pa.table({"id": range(count), "x": [str(each) for each in range(count)]})
    written.add(rows, vector=inline(roaring(gone), len(gone)), row_group_size=300)
    scan = written.table().snapshot().scan(filter="id >= 1000 and x like '%1%'")
    expected = [each for each in range(1000, count) if each % 7 and "1" in str(each)]
    assert scan.to_arrow().column("id").to_pylist() == expected
    tasks = pickle.loads(pickle.dumps(scan.tasks(target_bytes=2_000)))
    assert len(tasks) > 3
    parts = pa.concat_tables([task.to_arrow() for task in tasks])
    assert sorted(_known(parts.column("id").to_pylist())) == expected
    assert sum(task.count() for task in tasks) == len(expected)


def test_row_groups_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long"), field("x", "string")])
    path = written.add(
        pa.table({"id": range(1000), "x": ["a" * 50] * 1000}),
        row_group_size=100,
        compression="none",
        use_dictionary=False,
    )
    scan = written.table().snapshot().scan(filter="id = 950")
    damaged = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(2).column(1).data_page_offset
    damaged[start : start + 200] = b"\xff" * 200
    path.write_bytes(bytes(damaged))
    assert scan.to_arrow().column("id").to_pylist() == [950]
    with pytest.raises(CorruptTableError, match=r"part-0\.parquet"):
        written.table().to_arrow(filter="id = 250")


def test_every_output_gives_the_same_rows(tmp_path: Path) -> None:
    import duckdb
    import polars as pl

    written = Written(tmp_path / "t", [field("id", "long"), field("x", "string")])
    for start in range(3):
        written.add(pa.table({"id": [start, start + 10], "x": ["a", None]}))
    scan = written.table().snapshot().scan(filter="id > 0")
    rows = scan.to_arrow()
    assert rows.num_rows == 5
    assert scan.to_reader().read_all() == rows
    assert scan.to_pandas()["id"].tolist() == rows.column("id").to_pylist()
    frame = scan.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.to_arrow().column("id").to_pylist() == rows.column("id").to_pylist()
    lazy = scan.to_polars(lazy=True)
    assert isinstance(lazy, pl.LazyFrame)
    assert sorted(lazy.filter(pl.col("id") > 10).collect()["id"].to_list()) == [11, 12]
    assert sorted(lazy.select("id").collect()["id"].to_list()) == sorted(
        _known(rows.column("id").to_pylist())
    )
    assert scan.to_duckdb(duckdb.connect()).aggregate("count(*)").fetchall() == [(5,)]
    assert pa.RecordBatchReader.from_stream(scan).read_all() == rows
    assert scan.to_arrow(progress=True) == rows


def test_pandas_gets_variants_as_python_values_at_every_level(tmp_path: Path) -> None:
    pair = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    seven = {"metadata": b"\x01\x01\x00\x01a", "value": bytes.fromhex("02010000020c07")}
    written = Written(
        tmp_path / "t",
        [
            field("v", "variant"),
            field("a", {"type": "array", "elementType": struct_of(field("v", "variant"))}),
            field("m", {"type": "map", "keyType": "string", "valueType": "variant"}),
        ],
        features=["variantType"],
    )
    written.add(
        pa.table(
            {
                "v": pa.array([seven, None], pair),
                "a": pa.array([[{"v": seven}, None], None], pa.list_(pa.struct([("v", pair)]))),
                "m": pa.array([[("k", seven), ("n", None)], None], pa.map_(pa.string(), pair)),
            }
        )
    )
    assert written.table().to_pandas().to_dict("records") == [
        {"v": {"a": 7}, "a": [{"v": {"a": 7}}, None], "m": [("k", {"a": 7}), ("n", None)]},
        {"v": None, "a": None, "m": None},
    ]


@pytest.mark.parametrize("columns", [None, ["text"], ["text", "bytes"], ["n", "few"], []])
def test_pandas_gets_what_arrow_gives_whether_texts_repeat_or_not(
    columns: list[str] | None, tmp_path: Path
) -> None:
    pandas = pytest.importorskip("pandas")
    kinds = {"text": "string", "n": "long", "few": "string", "bytes": "binary", "day": "date"}
    written = Written(tmp_path / "t", [field(name, kind) for name, kind in kinds.items()])
    for start in (0, 100):
        written.add(
            pa.table(
                {
                    "text": [None, *(f"text {start + number}" for number in range(99))],
                    "n": list(range(100)),
                    "few": ["a", "b", None, "a"] * 25,
                    "bytes": [*(b"%d" % (start + number) for number in range(99)), None],
                    "day": pa.array(range(100), pa.date32()),
                }
            )
        )
    scan = written.table().snapshot().scan(columns=columns)
    frame = scan.to_pandas()
    pandas.testing.assert_frame_equal(frame, scan.to_arrow().to_pandas())
    if columns is None:
        assert frame["few"].iloc[0] is frame["few"].iloc[3]
        frame.loc[0, "text"] = "written"
        assert frame["text"].iloc[0] == "written"


def test_pandas_shares_texts_that_repeat_and_no_others(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field(name, "string") for name in ("own", "common", "empty")])
    count = 50_000
    for file in range(2):
        rows = [min(row, count - 501) for row in range(count)]
        own = pa.array([f"row {row} of {file}" if row % 2 else None for row in rows])
        common = pa.array([f"customer {row % 15_000}" for row in range(count)])
        written.add(pa.table({"own": own, "common": common, "empty": pa.nulls(count, pa.string())}))
    frame = written.table().to_pandas()
    assert len({id(each) for each in frame["common"]}) == 15_000
    values = frame["own"].dropna()
    assert len({id(each) for each in values}) == len(values) > values.nunique()


def test_pandas_gets_dates_beyond_those_of_python(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "t", [field("d", "date"), field("a", {"type": "array", "elementType": "date"})]
    )
    days = pa.array([3_000_000, None], pa.date32())
    written.add(pa.table({"d": days, "a": pa.array([[3_000_000], None], pa.list_(pa.date32()))}))
    scan = written.table().snapshot().scan(columns=["d"])
    assert scan.to_pandas()["d"].astype("datetime64[s]").astype("int64").iloc[0] == 3_000_000 * 86_400
    nested = written.table().snapshot().scan(columns=["a"]).to_pandas()
    assert nested["a"].iloc[0].tolist() == np.array([3_000_000], "datetime64[D]").astype("M8[ms]").tolist()


@pytest.mark.parametrize("shredded", [True, False])
def test_variants_keep_all_digits_of_a_decimal(shredded: bool, tmp_path: Path) -> None:
    exact = Decimal("-" + "123456789" * 4 + ".12")
    plain = bytes([10 << 2, 2]) + int("-" + "123456789" * 4 + "12").to_bytes(16, "little", signed=True)
    parts = pa.struct(
        [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.decimal128(38, 2))]
    )
    row = {"typed_value": exact} if shredded else {"value": plain}
    written = Written(tmp_path / "t", [field("v", "variant")], features=["variantType", "variantShredding"])
    written.add(pa.table({"v": pa.array([{"metadata": b"\x01\x00\x00", **row}], parts)}))
    assert written.table().to_arrow().to_pylist() == [{"v": {"metadata": b"\x01\x00\x00", "value": plain}}]
    assert written.table().to_pandas()["v"].tolist() == [exact]


def test_files_tells_what_the_log_says(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "t",
        [mapped("day", "date", 1, "c1"), mapped("x", "long", 2, "c2")],
        partitions=["day"],
        features=["columnMapping", "deletionVectors"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    stats = {"numRecords": 2, "minValues": {"c2": 1}, "maxValues": {"c2": 2}, "nullCount": {"c2": 0}}
    rows = pa.table({"c2": [1, 2]})
    written.add(rows, values={"c1": "2024-01-01"}, stats=stats, vector=inline(roaring([0]), 1))
    written.add(rows, values={"c1": "2024-01-02"}, stats=stats)
    scan = written.table().snapshot().scan(filter="day = date'2024-01-01' and x < 5")
    (file,) = scan.files().to_pylist()
    assert file["path"] == "part-0.parquet"
    assert file["partition_values"] == [("day", "2024-01-01")]
    assert file["num_records"] == 2
    assert file["deletion_vector"]["cardinality"] == 1
    assert written.table().snapshot().scan(filter="x > 2").files().num_rows == 0


_ONE = {"minValues": {"v": 1.0}, "maxValues": {"v": 1.0}}
_FIVE = {"minValues": {"v": 5}, "maxValues": {"v": 5}}
_DAY = {"minValues": {"v": "2024-01-01"}, "maxValues": {"v": "2024-01-01"}}
_LARGE = {"minValues": {"v": 12345678901234567890.12}, "maxValues": {"v": 12345678901234567890.12}}
_CUT = {"minValues": {"v": "a" * 32}, "maxValues": {"v": "a" * 32}}
NAN = float("nan")
STATS: list[tuple[str, Any, dict[str, Any], str]] = [
    ("string", ["a" * 40], _CUT, f"v = '{'a' * 40}'"),
    ("string", ["a" * 40], _CUT, f"v > '{'a' * 32}'"),
    ("string", ["a" * 40], _CUT, f"v like '{'a' * 36}%'"),
    ("string", ["b\u00ff"], {"minValues": {"v": "b"}, "maxValues": {"v": "b"}}, "v > 'b'"),
    ("double", [NAN, 1.0], _ONE, "v > 5"),
    ("double", [NAN, 1.0], _ONE, "v <> 1"),
    ("double", [NAN, 1.0], _ONE, "v = cast('NaN' as double)"),
    ("double", [NAN, 1.0], _ONE, "v in (2, cast('NaN' as double))"),
    ("double", [NAN, 1.0], _ONE, "not (v <= 1)"),
    ("long", [5], {}, "v = 5"),
    ("long", [5, None], {**_FIVE, "nullCount": {"v": 1}}, "v is null"),
    ("long", [5, None], _FIVE, "v is null"),
    ("long", [5, None], {"nullCount": {"v": 1}}, "not (v <=> 6)"),
    ("decimal(38,2)", [Decimal("12345678901234567890.12")], _LARGE, "v = 12345678901234567890.12"),
    ("integer", [5], {**_FIVE, "nullCount": {"v": 0}}, "v > 4.5"),
    ("date", [dt.date(2024, 1, 1)], _DAY, "v >= timestamp'2024-01-01 00:00:00'"),
]


@pytest.mark.parametrize("index", range(len(STATS)))
def test_statistics_never_lose_a_row(index: int, tmp_path: Path) -> None:
    kind, values, stats, text = STATS[index]
    written = Written(tmp_path / "t", [field("v", kind)])
    kinds: dict[str, Any] = {"integer": pa.int32(), "decimal(38,2)": pa.decimal128(38, 2)}
    target: Any = kinds.get(kind)
    rows = pa.table({"v": pa.array(values, target)})
    written.add(rows, stats={"numRecords": len(values), **stats})
    with_stats = written.table().to_arrow(filter=text)
    bare = Written(tmp_path / "u", [field("v", kind)])
    bare.add(rows)
    assert with_stats.num_rows >= 1
    assert multiset(with_stats) == multiset(bare.table().to_arrow(filter=text))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.7, "v <= 0.69999999"), (0.7, "v = 0.699999988079071"), (0.1, "v = 0.10000000149011612")],
)
def test_statistics_of_floats_bound_what_they_are_as_doubles(value: float, text: str, tmp_path: Path) -> None:
    changed = field("v", "double") | {
        "metadata": {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    }
    written = Written(tmp_path / "t", [changed], features=["typeWidening"])
    stats = {"numRecords": 1, "minValues": {"v": value}, "maxValues": {"v": value}, "nullCount": {"v": 0}}
    written.add(pa.table({"v": pa.array([value], pa.float32())}), stats=stats)
    assert written.table().to_arrow(filter=text).num_rows == 1
    assert written.table().snapshot().scan(filter="v = 0.70001").files().num_rows == 0


def test_millisecond_statistics_keep_the_microseconds_after_them(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=dt.UTC)
    written = Written(tmp_path / "t", [field("at", "timestamp")])
    cut = "2024-01-01T00:00:00.123Z"
    stats = {"numRecords": 1, "minValues": {"at": cut}, "maxValues": {"at": cut}, "nullCount": {"at": 0}}
    written.add(pa.table({"at": pa.array([moment], pa.timestamp("us", "UTC"))}), stats=stats)
    assert written.table().to_arrow(filter="at > timestamp'2024-01-01 00:00:00.1234Z'").num_rows == 1
    assert (
        written.table().snapshot().scan(filter="at > timestamp'2024-01-01 00:00:01Z'").files().num_rows == 0
    )


def test_row_ids_are_refused_where_row_tracking_is_off(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long")])
    written.add(pa.table({"id": [1]}))
    with pytest.raises(UnsupportedTableError, match="row tracking is not enabled"):
        written.table().snapshot().scan(row_tracking=True)


def test_stored_row_ids_go_before_generated_ones(tmp_path: Path) -> None:
    configuration = {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_ids",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_versions",
    }
    written = Written(
        tmp_path / "t", [field("x", "long")], features=["deletionVectors"], configuration=configuration
    )
    more = {"baseRowId": 100, "defaultRowCommitVersion": 7}
    rows = pa.table(
        {"x": [1, 2, 3, 4], "_ids": pa.array([None, 5, None, 6]), "_versions": pa.array([1, None, None, 2])}
    )
    written.add(rows, vector=inline(roaring([0]), 1), more=more)
    scan = written.table().snapshot().scan(row_tracking=True)
    assert scan.to_arrow().to_pydict() == {
        "x": [2, 3, 4],
        "row_id": [5, 102, 6],
        "row_commit_version": [7, 7, 2],
    }
    filtered = written.table().snapshot().scan(["x"], "x = 3", row_tracking=True)
    assert filtered.to_arrow().to_pydict() == {"x": [3], "row_id": [102], "row_commit_version": [7]}


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (5, 3, "from version 5 to 3 .* ends before it begins"),
        (99, None, "latest version is 6"),
        (99, 3, "latest"),
    ],
)
def test_ranges_of_changes_that_hold_nothing_are_refused(first: int, last: int | None, words: str) -> None:
    with pytest.raises(DeltaError, match=words):
        Table(fixture("change_feed").path).changes(first, last)


def test_a_range_without_the_feed_is_refused_by_version(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long")])
    written.add(pa.table({"id": [1]}))
    written.commit()
    on = written.metadata | {"configuration": {"delta.enableChangeDataFeed": "true"}}
    written.actions = [{"metaData": on}]
    written.commit()
    written.add(pa.table({"id": [2]}))
    written.commit()
    written.actions = [{"metaData": written.metadata}]
    table = written.table()
    assert table.changes(1, 2).to_arrow().column("id").to_pylist() == [2]
    with pytest.raises(Exception, match="off at version 0"):
        table.changes(0, 2)
    with pytest.raises(Exception, match="off at version 3"):
        table.changes(1).to_arrow()


def test_removed_files_without_partition_values_are_refused_by_the_feed(tmp_path: Path) -> None:
    on = {"delta.enableChangeDataFeed": "true"}
    written = Written(
        tmp_path / "t", [field("p", "string"), field("x", "long")], partitions=["p"], configuration=on
    )
    path = written.add(pa.table({"x": [1]}), values={"p": "a"})
    written.commit()
    written.actions = [{"remove": {"path": path.name, "dataChange": True, "deletionTimestamp": 1}}]
    with pytest.raises(CorruptTableError, match="Version 1 removes files"):
        written.table().changes(0).to_arrow()


def test_the_rows_are_read_ahead_in_order(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long")])
    for start in range(20):
        written.add(pa.table({"id": [start] * 10}))
    seen = [batch.column(0)[0].as_py() for batch in written.table().snapshot().scan().to_reader()]
    assert seen == sorted(seen) or seen == sorted(seen, reverse=True)


def test_a_reader_that_is_dropped_ends_its_threads(tmp_path: Path) -> None:
    import threading

    written = Written(tmp_path / "t", [field("id", "long")])
    for start in range(20):
        written.add(pa.table({"id": range(start, start + 1000)}), row_group_size=10)
    reader = written.table().snapshot().scan().to_reader()
    assert reader.read_next_batch().num_rows
    reader.close()
    del reader
    import gc

    gc.collect()
    assert not [each for each in threading.enumerate() if each.name.startswith("lakepass-read")]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("p like 'a%' and id > 1", [2]),
        ("p not like 'a%' or id = 1", [1, 3]),
        ("p in ('a', 'zz') and id in (1, 3)", [1]),
        ("p not in ('a') and id > 0", [3]),
        ("p is null and id is not null", [4]),
        ("p <=> null or id = 1", [1, 4]),
        ("cast(p as string) = 'b' and cast(id as string) = '3'", [3]),
        ("(p > 'a' or id < 2) and not (p = 'b' and id = 3)", [1]),
        ("f > 5 and id > 0", [3]),
        ("f = cast('NaN' as double) and id = 3", [3]),
        ("f <> 1 and id >= 0", [3]),
        ("f in (1, cast('NaN' as double)) and id <> 2", [1, 3]),
        ("id = 1 or p = 'b' or f is null", [1, 3, 4]),
    ],
)
def test_partition_columns_and_others_in_one_condition(text: str, ids: list[int], tmp_path: Path) -> None:
    fields = [field("p", "string"), field("f", "double"), field("id", "long")]
    written = Written(tmp_path / "t", fields, partitions=["p", "f"])
    written.add(pa.table({"id": [1, 2]}), values={"p": "a", "f": "1.0"})
    written.add(pa.table({"id": [3]}), values={"p": "b", "f": "NaN"})
    written.add(pa.table({"id": [4]}), values={"p": None, "f": None})
    scan = written.table().snapshot().scan(filter=text)
    assert sorted(_known(scan.to_arrow().column("id").to_pylist())) == ids
    assert scan.count() == len(ids)


def test_a_widened_partition_column_is_read_as_the_new_type(tmp_path: Path) -> None:
    changes = {"delta.typeChanges": [{"fromType": "date", "toType": "timestamp_ntz"}]}
    fields = [
        field("p", "timestamp_ntz") | {"metadata": changes},
        field("n", "decimal(12,2)"),
        field("x", "long"),
    ]
    written = Written(tmp_path / "t", fields, partitions=["p", "n"], features=FEATURES)
    written.add(pa.table({"x": [1]}), values={"p": "2024-01-02", "n": "7"})
    rows = written.table().to_arrow(filter="p >= '2024-01-02' and n = 7").to_pylist()
    assert rows == [{"p": dt.datetime(2024, 1, 2), "n": Decimal("7.00"), "x": 1}]


@pytest.mark.parametrize("mode", ["none", "name"])
def test_a_field_that_is_never_null_may_lie_in_a_struct_that_is(mode: str, tmp_path: Path) -> None:
    inner = mapped("x", "long", 2, "x") | {"nullable": False}
    strict = {"type": "array", "elementType": struct_of(inner), "containsNull": False}
    fields = [mapped("s", struct_of(inner), 1, "s"), mapped("l", strict, 3, "l")]
    written = Written(
        tmp_path / "t", fields, features=["columnMapping"], configuration={"delta.columnMapping.mode": mode}
    )
    rows: dict[str, Any] = {"s": [{"x": 1}, None], "l": [[{"x": 2}], None]}
    written.add(pa.table(rows))
    strict_type = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    written.add(
        pa.table(
            {
                "s": pa.array(rows["s"], strict_type),
                "l": pa.array(rows["l"], pa.list_(pa.field("element", strict_type, nullable=False))),
            }
        )
    )
    table = written.table()
    assert table.to_arrow().to_pydict() == {"s": rows["s"] * 2, "l": rows["l"] * 2}
    assert table.to_arrow(columns=["s.x"]).to_pydict() == {"x": [1, None, 1, None]}
    assert table.to_arrow(columns=["s"]).schema.field("s").type == strict_type


def test_a_merge_that_changed_nothing_is_no_change(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "table", [field("id", "long")], configuration={"delta.enableChangeDataFeed": "true"}
    )
    first = written.add(pa.table({"id": [1, 2]}))
    written.commit()
    counts = dict.fromkeys(("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), "0")
    written.actions.append({"commitInfo": {"operation": "MERGE", "operationMetrics": counts}})
    written.actions.append({"remove": {"path": first.name, "dataChange": True}})
    written.add(pa.table({"id": [2, 1]}))
    table = written.table()
    assert table.snapshot().version == 1
    changes = table.changes(0).to_arrow()
    assert changes.column("_commit_version").to_pylist() == [0, 0]
    assert table.changes(1).to_arrow().num_rows == 0
