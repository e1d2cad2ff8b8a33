"""Statistics as typed columns."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakepass.reader.log.stats import parse_json_stats
from tests.reader.log_folder import LogFolder, add, metadata, protocol


def bounds(kind: pa.DataType, low: Any, high: Any) -> tuple[Any, Any]:
    column = pa.struct([("c", kind)])
    wanted = pa.schema([("minValues", column), ("maxValues", column)])
    text = orjson.dumps({"minValues": {"c": low, "other": [1]}, "maxValues": {"c": high}}).decode()
    (row,) = parse_json_stats(pa.array([text]), wanted).to_pylist()
    return row["minValues"]["c"], row["maxValues"]["c"]


@pytest.mark.parametrize(
    ("kind", "low", "high", "read"),
    [
        (pa.int64(), -5, 2**62, (-5, 2**62)),
        (pa.int8(), -128, 127, (-128, 127)),
        (pa.int8(), -1000, 5, (None, 5)),
        (pa.int32(), "x", 5, (None, 5)),
        (pa.int32(), 1.5, 5, (None, 5)),
        (pa.float64(), 1, 2.5, (1.0, 2.5)),
        (pa.float64(), "-Infinity", "Infinity", (float("-inf"), float("inf"))),
        (pa.float32(), 0.1, 0.2, (0.10000000149011612, 0.20000000298023224)),
        (pa.string(), "a", "é", ("a", "é")),
        (pa.string(), 5, "z", (None, "z")),
        (pa.date32(), "2024-02-29", "9999-12-31", (date(2024, 2, 29), date(9999, 12, 31))),
        (pa.date32(), "never", "2024-02-29", (None, date(2024, 2, 29))),
        (pa.timestamp("us"), "2024-01-01T00:00:00.123456", "2024-01-01 10:00:00Z",
         (datetime(2024, 1, 1, 0, 0, 0, 123456), datetime(2024, 1, 1, 10))),
    ],
)  # fmt: skip
def test_types(kind: pa.DataType, low: Any, high: Any, read: tuple[Any, Any]) -> None:
    assert bounds(kind, low, high) == read


def test_timestamps_with_a_zone() -> None:
    low, high = bounds(pa.timestamp("us", "UTC"), "2024-01-01T00:00:00.000Z", "2024-01-01T02:00:00.000+02:00")
    assert low == high == datetime(2024, 1, 1, tzinfo=timezone.utc)  # noqa: UP017


@settings(max_examples=200, deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**27), max_value=10**27))
def test_decimals_never_bound_too_narrowly(value: Decimal) -> None:
    kind = pa.decimal128(38, 10)
    column = pa.struct([("c", kind)])
    wanted = pa.schema([("minValues", column), ("maxValues", column)])
    text = f'{{"minValues":{{"c":{value}}},"maxValues":{{"c":{value}}}}}'
    (row,) = parse_json_stats(pa.array([text]), wanted).to_pylist()
    assert row["minValues"]["c"] <= value <= row["maxValues"]["c"]
    assert row["maxValues"]["c"] - row["minValues"]["c"] <= abs(value) / 10**14 + Decimal("1e-9")


@pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 10), (30, 2), (38, 38), (5, 2)])
def test_decimals_of_all_digits_and_beyond_are_bounded(precision: int, scale: int) -> None:
    kind = pa.decimal128(precision, scale)
    column = pa.struct([("c", kind)])
    wanted = pa.schema([("minValues", column), ("maxValues", column)])
    largest = Decimal("9" * precision + f"e-{scale}")
    smallest = largest.copy_negate()
    for low, high in ((smallest, largest), (-1e300, 1e300)):
        text = f'{{"minValues":{{"c":{low:e}}},"maxValues":{{"c":{high:e}}}}}'
        (row,) = parse_json_stats(pa.array([text]), wanted).to_pylist()
        assert (row["minValues"]["c"], row["maxValues"]["c"]) == (smallest, largest)


WANTED = pa.schema(
    [
        ("numRecords", pa.int64()),
        ("minValues", pa.struct([("a", pa.int64()), ("n", pa.struct([("s", pa.string())]))])),
        ("nullCount", pa.struct([("a", pa.int64())])),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "n", "s", "z"]), inner, max_size=3)
    ),
    max_leaves=6,
)
TEXTS = st.none() | st.text(max_size=6) | st.dictionaries(
    st.sampled_from(["numRecords", "minValues", "nullCount", "x"]), JSON, max_size=3
).map(lambda row: __import__("json").dumps(row))  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_a_text_is_read_the_same_in_whatever_company(texts: list[str | None]) -> None:
    """One odd text makes the batch go the careful way, which must not change what the others say."""
    together = parse_json_stats(pa.array(texts, pa.string()), WANTED).to_pylist()
    alone = [parse_json_stats(pa.array([text], pa.string()), WANTED).to_pylist()[0] for text in texts]
    assert repr(together) == repr(alone)
    assert [row is None for row in together] == [text is None for text in texts]


def test_parsed_statistics_of_a_checkpoint(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path / "table").create(add("a"))
    text = '{"numRecords":3,"minValues":{"id":9}}'
    file = folder.checkpoint(0, protocol(), metadata(), add("a"), add("b"), add("c", stats=text))
    table = pq.read_table(file)
    kind = pa.struct(
        [("numRecords", pa.int64()), ("minValues", pa.struct([("id", pa.int32()), ("x", pa.string())]))]
    )
    rows = [
        row
        and {**row, "stats_parsed": {"numRecords": 5, "minValues": {"id": 7}} if row["path"] == "a" else None}
        for row in table.column("add").to_pylist()
    ]
    adds = pa.array(rows, pa.struct([*table.schema.field("add").type, ("stats_parsed", kind)]))
    pq.write_table(table.set_column(table.schema.get_field_index("add"), "add", adds), file)
    wanted = pa.schema(
        [("numRecords", pa.int64()), ("minValues", pa.struct([("id", pa.int64()), ("new", pa.date32())]))]
    )
    (batch,) = folder.table().snapshot().file_batches(stats=wanted)
    found = {row["path"]: row["stats"] for row in batch.to_pylist()}
    assert found == {
        "a": {"numRecords": 5, "minValues": {"id": 7, "new": None}},
        "b": None,
        "c": {"numRecords": 3, "minValues": {"id": 9, "new": None}},
    }
    (batch,) = folder.table().snapshot().file_batches(stats="json")
    texts = {row["path"]: row["stats"] for row in batch.to_pylist()}
    assert texts == {"a": '{"numRecords":5,"minValues":{"id":7}}', "b": None, "c": text}
