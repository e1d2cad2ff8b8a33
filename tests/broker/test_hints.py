"""Predicate hints: files that cannot match are left out, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.broker.lake import DELTA, Lake, files


def _parts(lake: Lake, body: dict[str, Any], table: str = "change_feed") -> list[str]:
    return sorted(file["partitionValues"]["part"] for file in files(lake.query(table, body)))


def _column(name: str, kind: str) -> dict[str, str]:
    return {"op": "column", "name": name, "valueType": kind}


def _literal(value: str, kind: str) -> dict[str, str]:
    return {"op": "literal", "value": value, "valueType": kind}


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        (["part = 0"], ["0"]),
        (["part = CAST('1' AS INT)"], ["1"]),
        (["0 < part"], ["1"]),
        (["part >= 0", "part < 1"], ["0"]),
        (["part <> 1"], ["0"]),
        (["part IS NOT NULL"], ["0", "1"]),
        (["part IS NULL"], []),
        (["id < -5"], []),
        (["id >= 0"], ["0", "1"]),
        (["nothing = 3"], ["0", "1"]),
        (["this is no SQL at all ((("], ["0", "1"]),
        (["part = 0", "nonsense("], ["0"]),
        (["part = 'x'"], ["0", "1"]),
        ([""], ["0", "1"]),
        (["1"], ["0", "1"]),
        (["part = 0; DROP TABLE x"], ["0", "1"]),
        (["(" * 3000 + "part = 0" + ")" * 3000], ["0", "1"]),
    ],
)
def test_sql_hints(lake: Lake, hints: list[str], expected: list[str]) -> None:
    assert _parts(lake, {"predicateHints": hints}) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"op": "equal", "children": [_column("part", "int"), _literal("0", "int")]}, ["0"]),
        ({"op": "lessThan", "children": [_literal("0", "int"), _column("part", "int")]}, ["1"]),
        ({"op": "lessThanOrEqual", "children": [_column("part", "int"), _literal("0", "int")]}, ["0"]),
        ({"op": "greaterThan", "children": [_column("part", "long"), _literal("0", "long")]}, ["1"]),
        ({"op": "greaterThanOrEqual", "children": [_column("id", "int"), _literal("5000", "int")]}, []),
        ({"op": "isNull", "children": [_column("part", "int")]}, []),
        ({"op": "not", "children": [{"op": "isNull", "children": [_column("part", "int")]}]}, ["0", "1"]),
        (
            {
                "op": "and",
                "children": [
                    {"op": "not", "children": [{"op": "isNull", "children": [_column("part", "int")]}]},
                    {"op": "equal", "children": [_column("part", "int"), _literal("1", "int")]},
                ],
            },
            ["1"],
        ),
        (
            {
                "op": "or",
                "children": [
                    {"op": "equal", "children": [_column("part", "int"), _literal("1", "int")]},
                    {"op": "equal", "children": [_column("part", "int"), _literal("0", "int")]},
                ],
            },
            ["0", "1"],
        ),
        ({"op": "equal", "children": [_column("none", "int"), _literal("0", "int")]}, ["0", "1"]),
        ({"op": "equal", "children": [_column("part", "int"), _literal("x", "int")]}, ["0", "1"]),
        ({"op": "equal", "children": [_column("part", "int")]}, ["0", "1"]),
        ({"op": "power", "children": []}, ["0", "1"]),
        ([], ["0", "1"]),
        (7, ["0", "1"]),
    ],
)
def test_json_hints(lake: Lake, tree: Any, expected: list[str]) -> None:
    assert _parts(lake, {"jsonPredicateHints": json.dumps(tree)}) == expected


def test_json_hints_that_are_no_json(lake: Lake) -> None:
    for text in ("", "{", "null", '{"op":"not","children":[' * 2000):
        assert _parts(lake, {"jsonPredicateHints": text}) == ["0", "1"]


def test_hints_and_pages_and_limits_together(lake: Lake) -> None:
    whole = [file["id"] for file in files(lake.query("plain", {"predicateHints": ["id >= 0"]}))]
    gathered: list[str] = []
    token = None
    while True:
        body = {"predicateHints": ["id >= 0"], "maxFiles": 1} | ({"pageToken": token} if token else {})
        page = lake.query("plain", body)
        gathered += [file["id"] for file in files(page)]
        token = json.loads(page.text.splitlines()[-1])["endStreamAction"].get("nextPageToken")
        if token is None:
            break
    assert gathered == whole
    limited = files(lake.query("change_feed", {"predicateHints": ["part = 1"], "limitHint": 1}))
    assert [file["partitionValues"]["part"] for file in limited] == ["1"]


def test_hints_on_a_mapped_table_use_its_logical_names(lake: Lake) -> None:
    everything = files(lake.query("change_feed_mapping", {}, DELTA))
    some = files(lake.query("change_feed_mapping", {"predicateHints": ["part = 0"]}, DELTA))
    assert 0 < len(some) < len(everything)
    assert files(lake.query("change_feed_mapping", {"predicateHints": ["id > 100000"]}, DELTA)) == []
