"""Footers: what is read of them is what pyarrow reads, and a damaged one never ends the process."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakepass.reader import DeltaError, Table
from lakepass.reader.footer import Footer
from tests.reader.written import Written, field, struct_of
from tests.tables.fixtures import names, place

UNORDERED = ("INT96", "FIXED_LEN_BYTE_ARRAY")


@pytest.mark.parametrize("name", names())
def test_chunks_are_what_pyarrow_says_of_them(name: str, tmp_path: Path) -> None:
    for file in place(name, tmp_path).path.rglob("*.parquet"):
        metadata, footer = _opened(file)
        for group in range(metadata.num_row_groups):
            for leaf in range(metadata.num_columns):
                told: Any = metadata.row_group(group).column(leaf)
                chunk = footer.chunk(group, leaf)
                assert chunk.compressed == told.total_compressed_size
                assert chunk.uncompressed == told.total_uncompressed_size
                assert chunk.has_dictionary == told.has_dictionary_page
                stats = told.statistics
                assert chunk.null_count == (stats.null_count if stats and stats.has_null_count else None)
                if told.physical_type not in UNORDERED:
                    assert (chunk.low, chunk.high) == _bounds(stats)


def _opened(file: Path) -> tuple[pq.FileMetaData, Footer]:
    metadata = pq.read_metadata(file)
    with pa.OSFile(str(file), "rb") as source:
        return metadata, Footer(source, metadata)


def _bounds(stats: Any) -> tuple[Any, Any]:
    if not stats or not stats.has_min_max:
        return None, None
    bounds = stats.min_raw, stats.max_raw
    unknown = any(isinstance(each, float) and math.isnan(each) for each in bounds)
    return (None, None) if unknown else bounds


def test_old_statistics_are_those_of_numbers_only(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    pq.write_table(pa.table({"n": [3, 1], "t": ["b", "a"]}), file)
    _, footer = _opened(file)
    group = footer._fields[4][0]
    # As writers did before an order was defined: other fields, and no word about the order.
    del footer._fields[7]
    for column in group[1]:
        stats = column[3][12]
        stats[1], stats[2] = stats.pop(5), stats.pop(6)
    assert footer.chunk(0, 0)[-2:] == (1, 3)
    assert footer.chunk(0, 1)[-2:] == (None, None)


ROWS: dict[str, Any] = {
    "n": list(range(90)),
    "l": [[n, None] for n in range(90)],
    "s": [{"t": f"text {n % 7}"} for n in range(90)],
}
FIELDS = [
    field("n", "long"),
    field("l", {"type": "array", "elementType": "long", "containsNull": True}),
    field("s", struct_of(field("t", "string"))),
]


def test_a_footer_that_contradicts_itself_does_not_end_the_process(tmp_path: Path) -> None:
    """A two becomes a zero: where it made a column optional, pyarrow's own view of the column aborts."""
    table, whole, begin, file = _table(tmp_path)
    for at in range(begin, len(whole) - 8):
        if whole[at] == 2:
            _read(table, file, whole[:at] + b"\0" + whole[at + 1 :])


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_footer_is_an_error_or_harmless(seed: int, tmp_path: Path) -> None:
    table, whole, begin, file = _table(tmp_path)
    choose = random.Random(seed)
    outcomes = set()
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(choose.randint(1, 3)):
            damaged[choose.randrange(begin, len(whole) - 8)] = choose.randrange(256)
        outcomes.add(_read(table, file, bytes(damaged)))
    assert outcomes == {True, False}


def _table(folder: Path) -> tuple[Table, bytes, int, Path]:
    """A table of one file with three row groups, the file's bytes, and where its footer begins."""
    written = Written(folder / "t", FIELDS)
    file = written.add(pa.table(ROWS), row_group_size=30, store_schema=False)
    whole = file.read_bytes()
    return written.table(), whole, len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), file


def _read(table: Table, file: Path, content: bytes) -> bool:
    """Whether the table is read from a file with another content; anything but a DeltaError is a failure."""
    file.write_bytes(content)
    try:
        return table.to_arrow(filter="n >= 30 and s.t < 'text 5'").num_rows <= 90
    except DeltaError:
        return False
