"""Lines of JSON into Arrow columns, at once and safely.

Arrow's JSON reader is many times faster than a loop over lines, and gives columns without an object per row.
It is made for friendly input, though: a bare `null` between objects crashes it, text that is not UTF-8 passes
unseen, several objects on one line are taken as several rows. Each of these is looked for first, and the
caller is told to go the careful way instead.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from lakepass.reader.log.arrays import ArrowArray, compute

_NULL_AFTER_OBJECT = re.compile(rb"\}\s*null")
_BLOCK = 512 << 10
"""Small enough that every core has some of a batch to parse."""
_LARGEST = 1 << 30


_FOLLOWS = np.zeros(256, dtype=bool)
_FOLLOWS[list(b',}]"\\\n')] = True
"""What comes after a closing brace in compact JSON, also in JSON text inside a string."""


class NotPlainError(pa.ArrowInvalid):
    """The text is not what the fast reader may be given."""


def parse_lines(lines: ArrowArray, schema: pa.Schema) -> pa.Table:
    """One row for each text, each a JSON object; raises ArrowInvalid when it cannot be done safely."""
    joined = compute.binary_join_element_wise(lines, pa.scalar("\n"), pa.scalar(""))
    _, offsets, data = joined.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[joined.offset : joined.offset + len(joined) + 1]
    return parse_text(data.slice(int(bounds[0]), int(bounds[-1] - bounds[0])), schema, len(lines))


def parse_text(data: pa.Buffer, schema: pa.Schema, rows: int | None = None) -> pa.Table:
    """One row for each line; raises ArrowInvalid when it cannot be done safely."""
    size = data.size
    if size > _LARGEST:
        raise NotPlainError("too long for one go")
    codes = np.frombuffer(memoryview(data), dtype=np.uint8)
    breaks = np.flatnonzero(codes == ord("\n"))
    starts = np.concatenate(([0], breaks[breaks + 1 < size] + 1)) if size else np.array([], dtype=np.int64)
    if not (codes[starts] == ord("{")).all():
        raise NotPlainError("a line does not begin with an object")
    if rows is not None and len(starts) != rows:
        # A text with a line break in it is two lines.
        raise NotPlainError("the number of lines is another one")
    _check_text(codes, data)
    longest = int(np.diff(np.append(starts, size)).max()) if len(starts) else 0
    source: Any = pa.BufferReader(data)
    table = pj.read_json(
        source,
        read_options=pj.ReadOptions(block_size=max(_BLOCK, longest + 1), use_threads=True),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(starts):
        raise NotPlainError("a line holds more or less than one object")
    return table


def _check_text(codes: npt.NDArray[np.uint8], data: pa.Buffer) -> None:
    """Refuses what the fast reader would crash on or let pass; looks at plain text without a copy."""
    if not (codes < 128).all():
        try:
            data.to_pybytes().decode()
        except UnicodeDecodeError:
            raise NotPlainError("the text is not UTF-8") from None
    ends = np.flatnonzero(codes == ord("}"))
    after = codes[(ends + 1).clip(max=len(codes) - 1)]
    # No null follows a brace within an object; only where something unusual does, a closer look.
    if not _FOLLOWS[after].all() and _NULL_AFTER_OBJECT.search(data.to_pybytes()):
        raise NotPlainError("a null stands where an object should")
