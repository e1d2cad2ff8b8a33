"""JSON written column by column: pieces of text joined by Arrow, a whole batch at a time.

A table of a million files has a million lines. Making a Python object for each would take most of the time
and hold the interpreter's lock; Arrow's kernels do neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as _compute

pc: Any = _compute  # its stubs know no mixture of arrays and scalars
Column = Any
"""An Arrow array."""
Piece = Any
"""An Arrow array of texts, or one text for every row."""


def joined(*pieces: Piece) -> Column:
    """The pieces of each row, one after the other; null where one of them is."""
    return pc.binary_join_element_wise(*(_scalar(piece) for piece in pieces), "")


def _scalar(piece: Piece) -> Any:
    return pa.scalar(piece, pa.string()) if isinstance(piece, str) else piece


def optional(*pieces: Piece) -> Column:
    """The same, empty where one of the pieces is null: a field that is left out."""
    return joined(*pieces).fill_null("")


def quoted(array: Column) -> Column:
    """Each text as a JSON string; null stays null."""
    return joined('"', escaped(array), '"')


def escaped(array: Column) -> Column:
    """Each text as it stands inside a JSON string."""
    codes = _bytes(array)
    if (codes < 0x20).any():
        texts = [None if text is None else orjson.dumps(text)[1:-1].decode() for text in array.to_pylist()]
        return pa.array(texts, pa.string())
    if (codes == 0x5C).any():
        array = pc.replace_substring(array, "\\", "\\\\")
    if (codes == 0x22).any():
        array = pc.replace_substring(array, '"', '\\"')
    return array


def numbers(array: Column) -> Column:
    """Integers as text."""
    return array.cast(pa.string())


def json_maps(maps: Column, keys: Sequence[str]) -> Column:
    """A map of texts as a JSON object that holds exactly `keys`; one that has no value is null."""
    if not keys:
        return pa.repeat("{}", len(maps))
    pieces: list[Piece] = []
    for position, key in enumerate(keys):
        pieces.append(("{" if position == 0 else ",") + orjson.dumps(key).decode() + ":")
        values = pc.map_lookup(maps, pa.scalar(key, maps.type.key_type), "first")
        pieces.append(quoted(values).fill_null("null"))
    return joined(*pieces, "}")


def json_objects(maps: Column) -> list[str | None]:
    """Maps of texts with keys of their own, as JSON objects."""
    return [None if row is None else orjson.dumps(dict(row)).decode() for row in maps.to_pylist()]


def content(lines: Column) -> bytes:
    """All texts of an array without anything between them."""
    return bytes(_bytes(lines))


def _bytes(array: Column) -> Any:
    """The memory of an array's texts."""
    _, offsets, data = array.buffers()
    if data is None or len(array) == 0:
        return np.empty(0, np.uint8)
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    bounds = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
