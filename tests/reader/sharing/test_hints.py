"""Hints say no more than the filter: what cannot be said exactly is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakepass.reader.expressions.sql import parse_sql
from lakepass.reader.schema import parse_schema
from lakepass.reader.sharing.hints import hints

TYPES = {
    "id": "long",
    "small": "integer",
    "day": "date",
    "country": "string",
    "price": "double",
    "amount": "decimal(10,2)",
    "at": "timestamp",
    "ok": "boolean",
    "odd name": "string",
}
TABLE = parse_schema(
    json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in TYPES.items()
            ],
        }
    )
)


def said(sql: str, partitions: tuple[str, ...] = ("day", "country")) -> tuple[list[str], Any]:
    body = hints(parse_sql(sql, TABLE), partitions)
    tree = body.get("jsonPredicateHints")
    return body.get("predicateHints", []), None if tree is None else json.loads(tree)


def pair(op: str, name: str, kind: str, value: str) -> dict[str, Any]:
    return {
        "op": op,
        "children": [
            {"op": "column", "name": name, "valueType": kind},
            {"op": "literal", "value": value, "valueType": kind},
        ],
    }


def test_no_filter_no_hints() -> None:
    assert hints(None, ()) == {}


@pytest.mark.parametrize(
    ("sql", "texts", "tree"),
    [
        ("day = '2021-04-29'", ["day = '2021-04-29'"], pair("equal", "day", "date", "2021-04-29")),
        ("'DE' < country", ["country > 'DE'"], pair("greaterThan", "country", "string", "DE")),
        (
            "NOT (day < '2021-01-01')",
            ["day >= '2021-01-01'"],
            pair("greaterThanOrEqual", "day", "date", "2021-01-01"),
        ),
        ("id <= 7", ["id <= 7"], pair("lessThanOrEqual", "id", "long", "7")),
        ("ok", ["ok = true"], pair("equal", "ok", "bool", "true")),
    ],
)
def test_simple_conditions_are_said_in_both_forms(sql: str, texts: list[str], tree: Any) -> None:
    assert said(sql) == (texts, tree)


def test_null_checks() -> None:
    column = {"op": "column", "name": "country", "valueType": "string"}
    is_null = {"op": "isNull", "children": [column]}
    assert said("country IS NULL") == (["country IS NULL"], is_null)
    assert said("country IS NOT NULL") == (["country IS NOT NULL"], {"op": "not", "children": [is_null]})


def test_in_becomes_alternatives() -> None:
    texts, tree = said("country IN ('DE', 'FR')")
    assert texts == ["country IN ('DE', 'FR')"]
    assert tree == {"op": "or", "children": [pair("equal", "country", "string", c) for c in ("DE", "FR")]}


def test_json_keeps_to_partition_columns_where_there_are_some() -> None:
    texts, tree = said("country = 'DE' AND id > 5")
    assert texts == ["country = 'DE'", "id > 5"]
    assert tree == pair("equal", "country", "string", "DE")


def test_what_cannot_be_said_is_left_out_of_a_conjunction() -> None:
    texts, tree = said("day > '2021-01-01' AND amount > 3.5")
    assert texts == ["day > '2021-01-01'"]
    assert tree == pair("greaterThan", "day", "date", "2021-01-01")


@pytest.mark.parametrize(
    "sql",
    [
        "day = '2021-01-01' OR amount > 3.5",
        "country LIKE 'D%'",
        "cast(id as string) = '7'",
        "id <=> NULL",
    ],
)
def test_what_cannot_be_said_exactly_is_not_said(sql: str) -> None:
    assert said(sql) == ([], None)


def test_text_that_dialects_escape_differently_goes_as_json_only() -> None:
    texts, tree = said("country = 'it''s'")
    assert (texts, tree) == ([], pair("equal", "country", "string", "it's"))


def test_a_partition_timestamp_is_not_sent_because_zones_differ() -> None:
    assert said("at > '2021-01-01T00:00:00Z'", ("at",)) == ([], None)


def test_odd_names_are_quoted() -> None:
    assert said("`odd name` = 'x'", ())[0] == ["`odd name` = 'x'"]


def test_negated_float_comparisons_are_not_turned_round() -> None:
    assert said("NOT (price < 3.0)") == ([], None)
