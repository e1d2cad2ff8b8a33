"""Data files, schemas and variants from someone who means harm: a DeltaError, never a crash or wrong rows."""

from __future__ import annotations

import contextlib
import json
import random
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakepass.reader.data.variant import to_python
from lakepass.reader.errors import CorruptTableError, DeltaError, FileMissingError, UnsupportedTableError
from lakepass.reader.schema import parse_schema
from lakepass.reader.table import Table
from tests.reader.written import Written, field, struct_of


def _table(folder: Path, data: bytes | None) -> Table:
    written = Written(folder, [field("id", "long"), field("name", "string")])
    path = written.add(pa.table({"id": [1, 2, 3], "name": ["a", "b", None]}))
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    return written.table()


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("parquet") / "file.parquet"
    rows = pa.table({"id": range(500), "name": [str(each) * 5 for each in range(500)]})
    pq.write_table(rows, path, row_group_size=100)
    return path.read_bytes()


DAMAGE: dict[str, Any] = {
    "empty": lambda data: b"",
    "not Parquet": lambda data: b"PK\x03\x04" + data,
    "only the magic": lambda data: b"PAR1",
    "cut in the middle": lambda data: data[: len(data) // 2],
    "cut at the footer": lambda data: data[:-4],
    "footer of 2 GB": lambda data: data[:-8] + struct.pack("<I", 0x7FFFFFFF) + b"PAR1",
    "footer of nothing": lambda data: data[:-8] + struct.pack("<I", 0) + b"PAR1",
    "garbage in the footer": lambda data: data[:-200] + b"\xff" * 192 + data[-8:],
    "pages zeroed": lambda data: b"PAR1" + b"\x00" * 2000 + data[2004:],
    "an encrypted footer": lambda data: b"PARE" + data[4:-4] + b"PARE",
    "text": lambda data: b"hello, world\n" * 50,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_refused_by_name(name: str, parquet: bytes, tmp_path: Path) -> None:
    table = _table(tmp_path / "t", DAMAGE[name](parquet))
    with pytest.raises(CorruptTableError, match=r"part-0\.parquet"):
        table.to_arrow()


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileMissingError, match=r"part-0\.parquet"):
        _table(tmp_path / "t", None).to_arrow()


def test_damaged_bytes_give_rows_or_a_delta_error(parquet: bytes, tmp_path: Path) -> None:
    chance = random.Random(11)
    table = _table(tmp_path / "t", parquet)
    path = tmp_path / "t" / "part-0.parquet"
    for _ in range(150):
        data = bytearray(parquet)
        for _ in range(chance.choice([1, 2, 8])):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(bytes(data))
        for arguments in ({}, {"filter": "id = 250"}):
            try:
                rows = table.to_arrow(**arguments)  # type: ignore[arg-type]
            except DeltaError as error:
                assert "part-0.parquet" in str(error)
            else:
                assert rows.num_rows <= 500


def test_a_footer_that_claims_other_rows_is_refused(tmp_path: Path) -> None:
    from lakepass.reader.data.files import DataFile

    table = _table(tmp_path / "t", _parquet(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})))
    opened = DataFile(
        (tmp_path / "t" / "part-0.parquet").as_uri(),
        table.snapshot().storages.storage_for((tmp_path / "t" / "part-0.parquet").as_uri()),
        None,
    )
    opened.row_counts = [4]
    with pytest.raises(CorruptTableError, match="not 4 as its footer says"):
        list(opened.batches(0, (0,)))
    opened.close()


@pytest.mark.parametrize("levels", [310, 600])
def test_a_file_that_is_nested_too_deeply_is_refused(levels: int, tmp_path: Path) -> None:
    nested: Any = pa.array([1])
    for _ in range(levels):
        nested = pa.StructArray.from_arrays([nested], names=["x"])
    written = Written(tmp_path / "t", [field("id", "long")])
    written.add(pa.table({"id": [1], "x": nested}), store_schema=False)
    with pytest.raises(CorruptTableError, match=r"part-0\.parquet .* levels deep"):
        written.table().to_arrow()


def _parquet(rows: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(rows, out)
    return out.getvalue().to_pybytes()


def _deep(levels: int, kind: str) -> Any:
    inner: Any = "long"
    for _ in range(levels):
        if kind == "array":
            inner = {"type": "array", "elementType": inner, "containsNull": True}
        elif kind == "map":
            inner = {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True}
        else:
            inner = struct_of(field("x", inner))
    return struct_of(field("top", inner))


@pytest.mark.parametrize("kind", ["struct", "array", "map"])
@pytest.mark.parametrize("levels", [101, 300])
def test_a_schema_that_is_too_deep_is_refused(kind: str, levels: int) -> None:
    with pytest.raises(DeltaError):
        parse_schema(json.dumps(_deep(levels, kind)))
    assert parse_schema(json.dumps(_deep(90, kind)))


def test_a_schema_ten_thousand_deep_is_refused() -> None:
    one = '{"type":"struct","fields":[{"name":"x","nullable":true,"metadata":{},"type":'
    with pytest.raises(CorruptTableError, match="schema"):
        parse_schema(one * 10_000 + '"long"' + "}]}" * 10_000)


SCHEMAS = {
    "no text": "",
    "not JSON": "{",
    "not an object": "[]",
    "a number": "7",
    "another type": '{"type":"array","elementType":"long"}',
    "fields are not a list": '{"type":"struct","fields":{}}',
    "a field is not an object": '{"type":"struct","fields":[1]}',
    "a field has no name": '{"type":"struct","fields":[{"type":"long"}]}',
    "a name is a number": '{"type":"struct","fields":[{"name":1,"type":"long"}]}',
    "a type is a number": '{"type":"struct","fields":[{"name":"a","type":1}]}',
    "an array without elements": '{"type":"struct","fields":[{"name":"a","type":{"type":"array"}}]}',
    "metadata is a list": '{"type":"struct","fields":[{"name":"a","type":"long","metadata":[]}]}',
    "a column twice": '{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"a","type":"long"}]}',
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_damaged_schema_is_refused(name: str) -> None:
    with pytest.raises(CorruptTableError, match="schema"):
        parse_schema(SCHEMAS[name])


@pytest.mark.parametrize("kind", ["interval", "decimal(39,0)", "decimal(5,6)", "geometry", "x" * 10_000])
def test_an_unknown_type_is_refused_by_name(kind: str) -> None:
    with pytest.raises(UnsupportedTableError) as caught:
        parse_schema(json.dumps(struct_of(field("a", kind))))
    assert kind[:20] in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_partition_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", [field("id", "long")], partitions=["nope"])
    written.add(pa.table({"id": [1]}))
    with pytest.raises(CorruptTableError, match="nope"):
        written.table().to_arrow()


def test_mapping_without_physical_names_is_refused(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "t",
        [field("id", "long")],
        features=["columnMapping"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    written.add(pa.table({"id": [1]}))
    with pytest.raises(CorruptTableError, match="physicalName"):
        written.table().to_arrow()


NAMES = b"\x01\x01\x00\x01a"
VARIANTS = {
    "no metadata": (b"", b"\x00"),
    "another version": (b"\x02\x00\x00", b"\x00"),
    "metadata of 2^32 names": (b"\xc1\xff\xff\xff\xff", b"\x00"),
    "no value": (NAMES, b""),
    "an unknown type": (NAMES, bytes([40 << 2])),
    "a number cut short": (NAMES, bytes([6 << 2, 1])),
    "a text of 4 GB": (NAMES, bytes([16 << 2]) + b"\xff\xff\xff\xff"),
    "an array of 2^32": (NAMES, bytes([0b10011]) + b"\xff\xff\xff\xff"),
    "an object with a name it lacks": (NAMES, bytes.fromhex("02010900020c07")),
    "an array that holds itself": (NAMES, bytes.fromhex("0302000000") + b"\x03\x02\x00\x00\x00" * 200),
    "text that is not UTF-8": (NAMES, bytes([1 << 2 | 1, 0xFF])),
    "a decimal of scale 200": (NAMES, bytes([8 << 2, 200, 1, 0, 0, 0])),
    "a date beyond the calendar": (NAMES, bytes([11 << 2, 255, 255, 255, 127])),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_damaged_variant_is_refused(name: str) -> None:
    with pytest.raises(CorruptTableError, match="variant"):
        to_python(*VARIANTS[name])


@given(st.binary(max_size=40), st.binary(max_size=80))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_variant_or_refused(metadata: bytes, value: bytes) -> None:
    with contextlib.suppress(CorruptTableError):
        to_python(b"\x01" + metadata, value)
