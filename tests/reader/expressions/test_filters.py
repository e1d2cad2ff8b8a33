"""Filters mean what they mean in Spark: three-valued logic, coercions, NaN, LIKE.

The random filters are evaluated twice: by the reader, with all its skipping, on a table of several files with
statistics, partitions and deletion vectors; and by a plain Python evaluation of the same tree, row by row.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakepass.reader.errors import FilterError
from lakepass.reader.table import Table
from tests.reader.written import Written, field, inline, roaring, struct_of

NAN = float("nan")
ROWS: dict[str, list[Any]] = {
    "i": [1, 2, None, -5],
    "f": [1.5, NAN, None, -0.0],
    "s": ["abc", "a%c", None, "Ünï"],
    "b": [True, False, None, True],
    "d": [dt.date(2024, 1, 1), dt.date(1500, 1, 1), None, dt.date(9999, 12, 31)],
    "n": [Decimal("1.50"), Decimal("-2.25"), None, Decimal("99999999.99")],
    "t": [dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC), None, dt.datetime(1, 1, 1, tzinfo=dt.UTC), None],
    "x": [b"\x01\xff", b"", None, b"a"],
    "k": ["1", " 2 ", None, "30"],
}
FIELDS = [
    field("i", "integer"), field("f", "double"), field("s", "string"), field("b", "boolean"),
    field("d", "date"), field("n", "decimal(10,2)"), field("t", "timestamp"), field("x", "binary"),
    field("k", "string"),
]  # fmt: skip
_TYPES: list[tuple[str, Any]] = [
    ("i", pa.int32()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_()), ("d", pa.date32()),
    ("n", pa.decimal128(10, 2)), ("t", pa.timestamp("us", "UTC")), ("x", pa.binary()), ("k", pa.string()),
]  # fmt: skip
SCHEMA = pa.schema(_TYPES)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    written = Written(tmp_path_factory.mktemp("filters") / "t", [*FIELDS, field("row", "long")])
    rows = pa.table(ROWS, schema=SCHEMA).append_column("row", pa.array(range(4)))
    written.add(rows)
    return written.table()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("i = 1", [0]),
        ("i <> 1", [1, 3]),
        ("not (i = 1)", [1, 3]),
        ("i <=> null", [2]),
        ("i <=> 1", [0]),
        ("i is distinct from 1", [1, 2, 3]),
        ("i = null", []),
        ("not (i = null)", []),
        ("i in (1, 2)", [0, 1]),
        ("i in (1, null)", [0]),
        ("i not in (1, 2)", [3]),
        ("i not in (1, null)", []),
        ("i between -5 and 1", [0, 3]),
        ("i not between -5 and 1", [1]),
        ("i is null or i > 1", [1, 2]),
        ("i is not null and i < 0", [3]),
        ("i > 1.5", [1]),
        ("i = 1.0", [0]),
        ("i < 3000000000", [0, 1, 3]),
        ("i = 99999999999999999999", []),
        ("1 < i", [1]),
        ("i = cast('1' as int)", [0]),
        ("cast(i as string) = '-5'", [3]),
        ("cast(f as int) = 1", None),
        ("i == 1 or b", [0, 3]),
        ("b", [0, 3]),
        ("not b", [1]),
        ("b = false", [1]),
        ("b is true", [0, 3]),
        ("b is not true", [1, 2]),
        ("f > 5", [1]),
        ("f > 1e308", [1]),
        ("f = cast('NaN' as double)", [1]),
        ("f <> cast('NaN' as double)", [0, 3]),
        ("f < cast('NaN' as double)", [0, 3]),
        ("f >= cast('NaN' as double)", [1]),
        ("f in (1.5D, cast('NaN' as double))", [0, 1]),
        ("f = 0", [3]),
        ("f in (0, 7)", [3]),
        ("f in (-0.0D)", [3]),
        ("f = 1.5", [0]),
        ("s like 'a%'", [0, 1]),
        ("s like 'a\\\\%c'", [1]),
        ("s like 'a!%c' escape '!'", [1]),
        ("s like 'a_c'", [0, 1]),
        ("s like '_n_'", [3]),
        ("s not like 'a%'", [3]),
        ("s ilike 'ABC'", [0]),
        ("s like ''", []),
        ("s > 'abc'", [3]),
        ("s = 'it''s'", []),
        ("d = '2024-01-01'", [0]),
        ("d >= date'2024-01-01'", [0, 3]),
        ("d < '1582-10-15'", [1]),
        ("d < timestamp'2024-01-01 00:00:01'", [0, 1]),
        ("n = 1.5", [0]),
        ("n > 1", [0, 3]),
        ("n < -2.249", [1]),
        ("n = 1.5D", [0]),
        ("n in (1.50, 99999999.99BD)", [0, 3]),
        ("t = '2024-01-01T12:00:00Z'", [0]),
        ("t = timestamp'2024-01-01 13:00:00+01:00'", [0]),
        ("t = cast('2024-01-01 12:00:00+01:00' as timestamp_ntz)", [0]),
        ("t >= timestamp'2024' and d = date'2024-01'", [0]),
        ("t < '2000-01-01'", [2]),
        ("t is null", [1, 3]),
        ("cast(t as date) = '2024-01-01'", [0]),
        ("x = X'01FF'", [0]),
        ("x > X'01'", [0, 3]),
        ("k = 2", [1]),
        ("k > 5", [3]),
        ("cast(k as decimal(5,1)) = 30.0", [3]),
        ("`i` = 1 and (`s` = 'abc' or false)", [0]),
        ("cast(f as string) = '1.5'", [0]),
        ("cast(f as string) in ('NaN', '-0.0')", [1, 3]),
        ("cast(i as timestamp) = timestamp'1970-01-01 00:00:01Z'", [0]),
        ("isnull(i)", [2]),
        ("true", [0, 1, 2, 3]),
        ("null", []),
        ("i = 1 or null", [0]),
        ("null <=> null", [0, 1, 2, 3]),
        ("not (null = null)", []),
        ("s like null", []),
        ("s not like null", []),
        ("s = r'a%c'", [1]),
        ("f = 1.5F", [0]),
        ("cast('0.1' as double) = 0.1F", []),
        ("cast('0.7' as double) = 0.7 and cast('7460.7' as double) = 7460.7", [0, 1, 2, 3]),
        ("cast('0.0000000007' as double) = 0.0000000007 and cast('-0.7' as float) = cast(-0.7 as float)",
         [0, 1, 2, 3]),
        ("cast(n as double) = -2.25D", [1]),
        ("cast(f as decimal(10,2)) = 1.5", [0]),
        ("(i > 1) is null", [2]),
        ("(i > 1) is not true", [0, 2, 3]),
        ("(i = 1) = b", [0, 1]),
        ("(i = 1) <=> (b and i = 1)", [0, 1, 2, 3]),
        ("not ((i > 1 or b) is null)", [0, 1, 3]),
        ("cast((i > 1) as string) in ('true')", [1]),
    ],
)  # fmt: skip
def test_a_filter_keeps_the_rows_that_spark_keeps(table: Table, text: str, rows: list[int] | None) -> None:
    scan = table.snapshot().scan(["row"], text)
    if rows is None:
        with pytest.raises(FilterError, match="does not fit"):
            scan.to_arrow()
        return
    assert scan.to_arrow().column("row").to_pylist() == rows
    assert scan.count() == len(rows)


@pytest.mark.parametrize(
    ("tuples", "rows"),
    [
        ([("i", ">", 0), ("s", "!=", "abc")], [1]),
        ([[("i", "=", 1)], [("i", "=", -5)]], [0, 3]),
        ([("i", "in", [1, 2])], [0, 1]),
        ([("i", "not in", [1, 2])], [3]),
        ([("d", "<", dt.date(1600, 1, 1))], [1]),
        ([("t", ">=", dt.datetime(2024, 1, 1, tzinfo=dt.UTC))], [0]),
        ([("t", ">=", dt.datetime(2024, 1, 1))], [0]),
        ([("n", "==", Decimal("1.5"))], [0]),
        ([("x", "=", b"a")], [3]),
        ([("b", "=", True)], [0, 3]),
        ([("b", "=", np.True_), ("i", "<=", np.int64(1))], [0, 3]),
        ([("f", ">", 2**70)], [1]),
        ([], [0, 1, 2, 3]),
    ],
)  # fmt: skip
def test_tuples_mean_the_same(table: Table, tuples: Any, rows: list[int]) -> None:
    assert table.to_arrow(["row"], tuples).column("row").to_pylist() == rows


@pytest.mark.parametrize(
    "collated",
    [
        field("c", "string") | {"metadata": {"__COLLATIONS": {"c": "ICU.UNICODE_CI"}}},
        field("c", "string collate UTF8_LCASE"),
    ],
)
def test_a_collated_column_is_not_compared(collated: dict[str, Any], tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [collated])
    written.add(pa.table({"c": ["a", "A"]}))
    assert written.table().to_arrow().num_rows == 2
    with pytest.raises(FilterError, match="collation"):
        written.table().to_arrow(filter="c = 'a'")


# ----------------------------------------------------------------------------- random filters

_NUMBERS = [-3, -1, 0, 1, 2, 5]
_TEXTS = ["", "a", "ab", "b", "z" * 40, "z" * 33]
_FLOATS = [NAN, -1.0, 0.0, 0.5, 7.0, math.inf]
_DAYS = [dt.date(1500, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
_VALUES: dict[str, list[Any]] = {
    "p": _NUMBERS,
    "i": _NUMBERS,
    "s": _TEXTS,
    "f": _FLOATS,
    "d": _DAYS,
    "u.v": _NUMBERS,
}


def _sql(value: Any) -> str:
    if isinstance(value, float):
        return f"cast('{value}' as double)"
    if isinstance(value, str):
        return f"'{value}'"
    return f"date'{value}'" if isinstance(value, dt.date) else str(value)


@st.composite
def _leaf(draw: st.DrawFn) -> tuple[Any, ...]:
    name = draw(st.sampled_from(sorted(_VALUES)))
    value = st.sampled_from(_VALUES[name])
    kind = draw(st.sampled_from(["compare", "compare", "in", "null", "like" if name == "s" else "compare"]))
    if kind == "compare":
        return "compare", name, draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])), draw(value)
    if kind == "in":
        return "in", name, draw(st.lists(value, min_size=1, max_size=3)), draw(st.booleans())
    if kind == "like":
        return "like", name, draw(st.sampled_from(["a%", "%b", "_", "z%z", "a_"]))
    return "null", name


_trees = st.recursive(
    _leaf(),
    lambda children: st.one_of(
        st.tuples(st.just("and"), children, children),
        st.tuples(st.just("or"), children, children),
        st.tuples(st.just("not"), children),
    ),
    max_leaves=5,
)


def _text(tree: tuple[Any, ...]) -> str:
    match tree:
        case ("and" | "or" as word, left, right):
            return f"({_text(left)} {word} {_text(right)})"
        case ("not", child):
            return f"(not {_text(child)})"
        case ("compare", name, operator, value):
            return f"{name} {operator} {_sql(value)}"
        case ("in", name, values, null):
            return f"{name} in ({', '.join([_sql(each) for each in values] + ['null'] * null)})"
        case ("like", name, pattern):
            return f"{name} like '{pattern}'"
        case (_, name):
            return f"{name} is null"
    raise AssertionError(tree)


def _order(value: Any) -> Any:
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def _compare(operator: str, left: Any, right: Any) -> bool | None:
    if operator == "<=>":
        return left is None if right is None else left is not None and _order(left) == _order(right)
    if left is None or right is None:
        return None
    one, two = _order(left), _order(right)
    answers: dict[str, bool] = {
        "=": one == two, "<>": one != two, "<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two
    }  # fmt: skip
    return answers[operator]


def _truth(tree: tuple[Any, ...], row: dict[str, Any]) -> bool | None:
    match tree:
        case ("and", left, right):
            answers = (_truth(left, row), _truth(right, row))
            return False if False in answers else None if None in answers else True
        case ("or", left, right):
            answers = (_truth(left, row), _truth(right, row))
            return True if True in answers else None if None in answers else False
        case ("not", child):
            answer = _truth(child, row)
            return None if answer is None else not answer
        case ("compare", name, operator, value):
            return _compare(operator, _of(row, name), value)
        case ("in", name, values, null):
            found = [_compare("=", _of(row, name), each) for each in values] + [None] * null
            return True if True in found else None if None in found else False
        case ("like", name, pattern):
            text = _of(row, name)
            return None if text is None else _like(pattern, text)
        case (_, name):
            return _of(row, name) is None
    raise AssertionError(tree)


def _of(row: dict[str, Any], name: str) -> Any:
    if name == "u.v":
        return None if row["u"] is None else row["u"]["v"]
    return row[name]


def _like(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(_like(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and _like(pattern[1:], text[1:])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, list[dict[str, Any]]]:
    """Files with statistics of every honesty, nulls, NaN, partitions and deletion vectors, and their rows."""
    import random

    chance = random.Random(7)
    fields = [
        field("p", "integer"), field("i", "integer"), field("s", "string"), field("f", "double"),
        field("d", "date"), field("u", struct_of(field("v", "integer"))), field("id", "long"),
    ]  # fmt: skip
    written = Written(
        tmp_path_factory.mktemp("many") / "t", fields, partitions=["p"], features=["deletionVectors"]
    )
    kinds: Any = {"i": pa.int32(), "s": pa.string(), "f": pa.float64(), "d": pa.date32()}
    live: list[dict[str, Any]] = []
    for file in range(14):
        partition = chance.choice([*_NUMBERS, None])
        count = chance.choice([1, 3, 12])
        columns = {
            name: [
                chance.choice([*chance.sample(_VALUES[name], 2), None][: chance.choice([2, 3])])
                for _ in range(count)
            ]
            for name in kinds
        }
        inner = [chance.choice([None, {"v": None}, {"v": chance.choice(_NUMBERS)}]) for _ in range(count)]
        ids = list(range(file * 100, file * 100 + count))
        rows = pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})
        rows = rows.append_column("u", pa.array(inner, pa.struct([("v", pa.int32())])))
        rows = rows.append_column("id", pa.array(ids, pa.int64()))
        gone = sorted(chance.sample(range(count), chance.choice([0, 0, 1])))
        stats = _stats(columns, inner, count) if chance.random() < 0.8 else None
        if stats is not None and gone:
            stats["tightBounds"] = False
        written.add(
            rows,
            values={"p": None if partition is None else str(partition)},
            stats=stats,
            vector=inline(roaring(gone), len(gone)) if gone else None,
            row_group_size=4,
        )
        for index in range(count):
            if index not in gone:
                one = {name: values[index] for name, values in columns.items()}
                live.append({**one, "u": inner[index], "id": ids[index], "p": partition})
    return written.table(), live


def _stats(columns: dict[str, list[Any]], inner: list[Any], count: int) -> dict[str, Any]:
    nested = [None if each is None else each["v"] for each in inner]
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {"u": {"v": nested.count(None)}}
    for name, values in [*columns.items(), ("u.v", nested)]:
        known = [each for each in values if each is not None and each == each]
        if name != "u.v":
            nulls[name] = values.count(None)
        if not known or any(isinstance(each, float) and math.isinf(each) for each in known):
            continue
        smallest, largest = min(known), max(known)
        if isinstance(smallest, str):
            smallest, largest = smallest[:32], largest[:32]
        if isinstance(smallest, dt.date):
            smallest, largest = str(smallest), str(largest)
        if name == "u.v":
            low["u"], high["u"] = {"v": smallest}, {"v": largest}
        else:
            low[name], high[name] = smallest, largest
    return {"numRecords": count, "minValues": low, "maxValues": high, "nullCount": nulls}


@pytest.mark.slow
@given(_trees, st.sampled_from([["id"], ["id", "s", "p"], ["u.v", "id"]]), st.sampled_from([None, 3]))
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_random_filter_agrees_with_the_same_query_on_all_rows(
    many: tuple[Table, list[dict[str, Any]]], tree: tuple[Any, ...], columns: list[str], limit: int | None
) -> None:
    table, rows = many
    wanted = {row["id"]: row for row in rows if _truth(tree, row) is True}
    scan = table.snapshot().scan(columns, _text(tree), limit)
    found = scan.to_arrow()
    ids: list[Any] = found.column("id").to_pylist()
    if limit is None:
        assert sorted(ids) == sorted(wanted)
    else:
        assert len(ids) == min(limit, len(wanted))
        assert set(ids) <= set(wanted)
    assert scan.count() == len(ids)
    for row in found.to_pylist():
        expected = wanted[row["id"]]
        assert row.get("v", _of(expected, "u.v")) == _of(expected, "u.v")
        assert row.get("p", expected["p"]) == expected["p"]
