"""Deletion vectors: every encoding gives its positions, and what contradicts itself is refused."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakepass.reader.data.deletion_vectors import Descriptor, load, z85_decode
from lakepass.reader.errors import CorruptTableError, PathRefusedError
from tests.reader.written import Written, field, framed, inline, roaring, z85


def _load(data: bytes, cardinality: int) -> Any:
    descriptor = Descriptor("i", z85(data), None, len(data), cardinality)
    return load(descriptor, lambda _: "", lambda *_: b"")


@given(
    st.sets(st.integers(0, 300_000), min_size=1, max_size=300),
    st.booleans(),
    st.integers(0, 200_000),
    st.integers(1, 150_000),
)
@settings(max_examples=60, deadline=None)
def test_a_vector_keeps_exactly_the_other_rows(
    positions: set[int], runs: bool, start: int, length: int
) -> None:
    vector = _load(roaring(sorted(positions), runs=runs), len(positions))
    assert vector.positions().tolist() == sorted(positions)
    keep = vector.keep(start, length)
    kept = np.ones(length, bool) if keep is None else keep
    wanted = [start + row not in positions for row in range(length)]
    assert kept.tolist() == wanted


@pytest.mark.parametrize("step", [1, 2, 20])
def test_full_and_sparse_containers_are_read(step: int) -> None:
    positions = list(range(0, 200_000, step))
    vector = _load(roaring(positions), len(positions))
    assert vector.positions().tolist() == positions
    assert vector.last == positions[-1]


def test_positions_beyond_32_bits_are_read() -> None:
    positions = [1, (1 << 32) + 5, (3 << 32) + 70_000]
    assert _load(roaring(positions), 3).positions().tolist() == positions


def test_a_vector_in_a_file_is_found_with_prefix_and_offset(tmp_path: Path) -> None:
    identity = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    first, second = roaring([0]), roaring([1, 3])
    (tmp_path / "t" / "ab").mkdir(parents=True)
    place = tmp_path / "t" / "ab" / f"deletion_vector_{identity}.bin"
    place.write_bytes(b"\x01" + framed(first) + framed(second))
    written = _written(tmp_path / "t2")
    (tmp_path / "t2" / "ab").mkdir()
    (tmp_path / "t2" / "ab" / place.name).write_bytes(place.read_bytes())
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "ab" + z85(identity.bytes),
        "offset": 1 + len(first) + 8,
        "sizeInBytes": len(second),
        "cardinality": 2,
    }
    written.add(pa.table({"id": [0, 1, 2, 3, 4]}), vector=vector)
    assert written.table().to_arrow().to_pydict() == {"id": [0, 2, 4]}


def test_a_vector_by_absolute_path_is_read(tmp_path: Path) -> None:
    written = _written(tmp_path / "t")
    data = roaring([2])
    place = tmp_path / "t" / "some vector.bin"
    place.write_bytes(b"\x01" + framed(data))
    vector = {
        "storageType": "p",
        "pathOrInlineDv": place.as_uri(),
        "offset": 1,
        "sizeInBytes": len(data),
        "cardinality": 1,
    }
    written.add(pa.table({"id": [0, 1, 2]}), vector=vector)
    assert written.table().to_arrow().to_pydict() == {"id": [0, 1]}


def _written(folder: Path) -> Written:
    return Written(folder, [field("id", "long")], features=["deletionVectors"])


GOOD = roaring([1, 3, 70_000])
BAD: dict[str, tuple[bytes, int]] = {
    "another magic number": (struct.pack("<i", 1681511375) + GOOD[4:], 3),
    "cut short": (GOOD[:-3], 3),
    "cut to nothing": (b"", 0),
    "bytes left over": (GOOD + b"\x00\x00\x00\x00", 3),
    "2^60 bitmaps": (struct.pack("<iq", 1681511377, 1 << 60), 3),
    "negative bitmaps": (struct.pack("<iq", 1681511377, -1), 3),
    "another cardinality": (GOOD, 4),
    "2^60 rows": (GOOD, 1 << 60),
    "negative rows": (GOOD, -1),
    "a strange cookie": (GOOD[:16] + b"\xff" + GOOD[17:], 3),
    "too many containers": (GOOD[:20] + struct.pack("<I", 1 << 31) + GOOD[24:], 3),
    "positions out of order": (
        GOOD.replace(b"\x01\x00\x03\x00", b"\x03\x00\x01\x00", 1)[:-2] + b"\x00\x00",
        3,
    ),
    "runs that overlap": (
        struct.pack("<iqiI", 1681511377, 1, 0, 12347)
        + b"\xff"
        + struct.pack("<HHHHHHH", 0, 9, 2, 5, 9, 7, 9),
        20,
    ),
    "runs beyond the block": (
        struct.pack("<iqiI", 1681511377, 1, 0, 12347)
        + b"\xff"
        + struct.pack("<HHHHH", 0, 9, 1, 65000, 60000),
        60001,
    ),
    "bitmap keys out of order": (
        struct.pack("<iq", 1681511377, 2) + (struct.pack("<i", 5) + GOOD[16:]) * 2,
        6,
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_vector_that_contradicts_itself_is_refused(name: str, tmp_path: Path) -> None:
    data, cardinality = BAD[name]
    written = _written(tmp_path / "t")
    written.add(pa.table({"id": range(80_000)}), vector=inline(data, cardinality))
    with pytest.raises(CorruptTableError, match="deletion vector") as caught:
        written.table().to_arrow()
    assert "Restore" in str(caught.value) or "damaged" in str(caught.value)


FILES: dict[str, bytes] = {
    "no file format version": b"\x02" + framed(GOOD),
    "an empty file": b"",
    "a wrong size": b"\x01" + struct.pack(">i", 7) + framed(GOOD)[4:],
    "a wrong checksum": b"\x01" + framed(GOOD)[:-1] + b"\x00",
    "a file cut short": (b"\x01" + framed(GOOD))[:-6],
}


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_vector_file_is_refused_by_name(name: str, tmp_path: Path) -> None:
    written = _written(tmp_path / "t")
    (tmp_path / "t" / "vector.bin").write_bytes(FILES[name])
    vector = {
        "storageType": "p",
        "pathOrInlineDv": (tmp_path / "t" / "vector.bin").as_uri(),
        "offset": 1,
        "sizeInBytes": len(GOOD),
        "cardinality": 3,
    }
    written.add(pa.table({"id": range(80_000)}), vector=vector)
    with pytest.raises(CorruptTableError, match=r"vector\.bin"):
        written.table().to_arrow()


@pytest.mark.parametrize("place", ["../outside.bin", "file:///etc/hostname", "s3://elsewhere/vector.bin"])
def test_a_vector_outside_of_the_table_is_refused(place: str, tmp_path: Path) -> None:
    written = _written(tmp_path / "t")
    vector = {"storageType": "p", "pathOrInlineDv": place, "offset": 1, "sizeInBytes": 40, "cardinality": 3}
    written.add(pa.table({"id": [1]}), vector=vector)
    with pytest.raises(PathRefusedError):
        written.table().to_arrow()


def test_a_vector_of_2_gb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    written = _written(tmp_path / "t")
    vector = inline(GOOD, 3) | {"storageType": "u", "sizeInBytes": 2**31 - 1}
    written.add(pa.table({"id": [1]}), vector=vector)
    with pytest.raises(CorruptTableError, match="2147483647 bytes"):
        written.table().to_arrow()


def test_a_vector_for_more_rows_than_the_file_has_is_refused(tmp_path: Path) -> None:
    written = _written(tmp_path / "t")
    written.add(pa.table({"id": [1, 2]}), vector=inline(roaring([5]), 1))
    with pytest.raises(CorruptTableError, match="has only 2 rows"):
        written.table().to_arrow()


@pytest.mark.parametrize("text", ["abcd", 'ab"de', "#####", "äöüßa"])
def test_text_that_is_not_base_85_is_refused(text: str) -> None:
    with pytest.raises(CorruptTableError, match="base-85"):
        z85_decode(text)
