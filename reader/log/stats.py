"""Statistics of files as typed columns, only those that are asked for.

`stats` in an action is JSON text; a checkpoint may hold the same as a struct (`stats_parsed`). Both become
one struct of exactly the columns wanted: a batch of JSON texts is parsed at once, as newline-joined lines
with an explicit schema. What cannot be read as the wanted type becomes null, which only means that the file
cannot be skipped by it. Decimals are JSON numbers, which lose digits on the way: their bounds are moved
outwards by more than that loss.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from lakepass.reader.log.arrays import ArrowArray, compute
from lakepass.reader.log.json_lines import parse_lines

_BOUNDS = {"minValues": -1, "maxValues": 1}


def stats_type(wanted: pa.Schema) -> pa.StructType:
    """The struct that a schema of statistics stands for."""
    return pa.struct(list(wanted))


def parse_json_stats(texts: ArrowArray, wanted: pa.Schema) -> ArrowArray:
    """JSON statistics as a struct with exactly the fields of `wanted`.

    >>> wanted = pa.schema([("numRecords", pa.int64()), ("minValues", pa.struct([("id", pa.int64())]))])
    >>> texts = pa.array(['{"numRecords":3,"minValues":{"id":7,"x":"a"}}', None])
    >>> parse_json_stats(texts, wanted).to_pylist()
    [{'numRecords': 3, 'minValues': {'id': 7}}, None]
    """
    target = stats_type(wanted)
    if len(texts) == 0 or texts.null_count == len(texts):
        return _nulls(len(texts), target)
    known = texts.is_valid()
    lines = compute.fill_null(texts, "{}") if texts.null_count else texts
    try:
        plain = pa.schema([pa.field(field.name, _plain(field.type)) for field in wanted])
        table = parse_lines(lines, plain)
    except pa.ArrowInvalid:
        table = None
    if table is None:
        return _one_by_one(texts, wanted)
    columns = [table.column(field.name).combine_chunks() for field in plain]
    read = pa.StructArray.from_arrays(columns, fields=list(plain), mask=compute.invert(known))
    return conform_stats(read, wanted)


def conform_stats(stats: ArrowArray, wanted: pa.Schema) -> ArrowArray:
    """Typed statistics with exactly the fields of `wanted`; a field that is missing or cannot be converted is
    null.
    """
    columns = [
        _conform(_child(stats, field.name), field.type, _BOUNDS.get(field.name, 0)) for field in wanted
    ]
    filled = [
        _nulls(len(stats), field.type) if column is None else column
        for column, field in zip(columns, wanted, strict=True)
    ]
    return pa.StructArray.from_arrays(filled, fields=list(wanted), mask=stats.is_null())


def stats_as_json(stats: ArrowArray) -> ArrowArray:
    """Parsed statistics as the JSON text that the log would have, for readers that take nothing else.

    >>> stats = pa.array([{"numRecords": 2, "minValues": {"d": datetime.date(2024, 1, 1)}}])
    >>> stats_as_json(stats).to_pylist()
    ['{"minValues":{"d":"2024-01-01"},"numRecords":2}']
    """
    return pa.array([None if row is None else _json_text(row) for row in stats.to_pylist()], pa.string())


def _json_text(value: Any) -> str:
    if isinstance(value, dict):
        known = ((name, each) for name, each in value.items() if each is not None)
        return "{" + ",".join(f"{json.dumps(name)}:{_json_text(each)}" for name, each in known) + "}"
    if isinstance(value, decimal.Decimal):
        # All of its digits: a bound must not become narrower than it was.
        return format(value, "f")
    if isinstance(value, datetime.datetime) and value.tzinfo:
        value = value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    elif isinstance(value, datetime.date):
        value = value.isoformat()
    elif isinstance(value, float) and not math.isfinite(value):
        value = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return json.dumps(value if isinstance(value, int | float | str) else None, ensure_ascii=False)


def _nulls(length: int, kind: Any) -> ArrowArray:
    return pa.nulls(length, kind)


def _child(value: ArrowArray, name: str) -> ArrowArray | None:
    if not pa.types.is_struct(value.type):
        return None
    index = value.type.get_field_index(name)
    return None if index < 0 else compute.struct_field(value, [index])


def _plain(wanted: pa.DataType) -> pa.DataType:
    """The type that JSON itself has for a statistic."""
    if pa.types.is_struct(wanted):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in wanted])
    if pa.types.is_integer(wanted):
        return pa.int64()
    if pa.types.is_floating(wanted) or pa.types.is_decimal(wanted):
        return pa.float64()
    if pa.types.is_boolean(wanted):
        return pa.bool_()
    return pa.string()


def _conform(value: ArrowArray | None, wanted: pa.DataType, side: int) -> ArrowArray | None:
    if value is None or value.type == wanted:
        return value
    if pa.types.is_struct(wanted):
        if not pa.types.is_struct(value.type):
            return None
        children = [_conform(_child(value, field.name), field.type, side) for field in wanted]
        filled = [
            _nulls(len(value), field.type) if child is None else child
            for child, field in zip(children, wanted, strict=True)
        ]
        return pa.StructArray.from_arrays(filled, fields=list(wanted), mask=value.is_null())
    if pa.types.is_decimal(wanted) and pa.types.is_floating(value.type):
        return _decimals(value, wanted, side)
    try:
        return _cast(value, wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([_scalar(each, wanted) for each in value], wanted)


def _cast(value: ArrowArray, wanted: pa.DataType) -> ArrowArray:
    if pa.types.is_timestamp(wanted) and pa.types.is_string(value.type):
        if wanted.tz is None:
            # Some writers put a zone behind a timestamp that has none.
            value = compute.replace_substring_regex(value, r"(?:Z|[+-]00:?00)$", "")
        else:
            zoned = compute.match_substring_regex(value, r"(?:Z|[+-]\d\d:?\d\d)$")
            value = compute.if_else(zoned, value, compute.binary_join_element_wise(value, "Z", ""))
    return value.cast(wanted)


def _scalar(value: Any, wanted: pa.DataType) -> Any:
    if not value.is_valid:
        return None
    try:
        return _cast(pa.array([value.as_py()], value.type), wanted)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, OverflowError):
        return None


def _decimals(value: ArrowArray, wanted: Any, side: int) -> ArrowArray:
    """Decimals from the nearest double, moved outwards to the next step of the wanted scale that surely
    bounds.
    """
    numbers = value.to_numpy(zero_copy_only=False)
    rounding = {-1: decimal.ROUND_FLOOR, 1: decimal.ROUND_CEILING}.get(side, decimal.ROUND_HALF_EVEN)
    moved = np.nextafter(numbers, np.inf * side) if side else numbers
    with decimal.localcontext() as context:
        # Python's own 28 digits are fewer than a decimal column has.
        context.prec = 76
        step = decimal.Decimal(1).scaleb(-wanted.scale)
        largest = decimal.Decimal(10) ** (wanted.precision - wanted.scale) - step
        return pa.array(
            [
                (
                    None
                    if not np.isfinite(each)
                    else max(-largest, min(largest, decimal.Decimal(float(each)))).quantize(step, rounding)
                )
                for each in moved
            ],
            wanted,
        )


def _one_by_one(texts: ArrowArray, wanted: pa.Schema) -> ArrowArray:
    """The careful way, when a text in the batch does not have the plain types (NaN as text, damage)."""
    rows = [_loaded(text) for text in texts.to_pylist()]
    columns = [
        _column([row.get(field.name) for row in rows], field.type, _BOUNDS.get(field.name, 0))
        for field in wanted
    ]
    return pa.StructArray.from_arrays(columns, fields=list(wanted), mask=texts.is_null())


def _loaded(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        row = orjson.loads(text)
    except ValueError:
        # Infinity and NaN as bare words are not JSON, but some writers put them there and Arrow reads them.
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            return {}
    return row if isinstance(row, dict) else {}


def _column(values: list[Any], wanted: pa.DataType, side: int) -> ArrowArray:
    if pa.types.is_struct(wanted):
        rows = [value if isinstance(value, dict) else None for value in values]
        children = [
            _column([None if row is None else row.get(field.name) for row in rows], field.type, side)
            for field in wanted
        ]
        mask = pa.array([row is None for row in rows])
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    plain = _plain(wanted)
    column = pa.array([_plain_value(value, plain) for value in values], plain)
    conformed = _conform(column, wanted, side)
    return _nulls(len(values), wanted) if conformed is None else conformed


def _plain_value(value: Any, plain: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_boolean(plain):
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if pa.types.is_integer(plain):
        return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None
    if pa.types.is_floating(plain):
        if isinstance(value, str):
            return {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get(value)
        return float(value) if isinstance(value, int | float) else None
    return value if isinstance(value, str) else None
