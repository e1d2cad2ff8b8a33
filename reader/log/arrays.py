"""Arrow arrays over memory that is already there.

`pa.array` looks at its argument through pandas, and imports pandas for that where it is installed, which takes longer
than replaying a million files. Arrays whose type is known are put together from their buffers instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def int32_array(values: npt.NDArray[np.int32]) -> pa.Int32Array:
    """An Arrow array on a NumPy one, without nulls."""
    return _over(np.ascontiguousarray(values, dtype=np.int32), pa.int32())


def int64_array(values: npt.NDArray[np.int64]) -> pa.Int64Array:
    """An Arrow array on a NumPy one, without nulls."""
    return _over(np.ascontiguousarray(values, dtype=np.int64), pa.int64())


def bool_array(values: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """An Arrow array of the same truths, without nulls."""
    bits = np.packbits(values, bitorder="little")
    buffers: list[Any] = [None, pa.py_buffer(bits)]
    return pa.Array.from_buffers(pa.bool_(), len(values), buffers)  # type: ignore[return-value] # the stubs lose the type


def string_array(values: Sequence[str]) -> pa.StringArray:
    """A few texts.

    >>> string_array(["a", "bc"]).to_pylist()
    ['a', 'bc']
    """
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int32)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    buffers: list[Any] = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)  # type: ignore[return-value] # the stubs lose the type


def _over(values: npt.NDArray[Any], kind: pa.DataType) -> Any:
    buffers: list[Any] = [None, pa.py_buffer(values)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def integers(array: pa.Array[Any]) -> npt.NDArray[Any]:
    """The numbers of an integer array without nulls, as NumPy on the same memory."""
    if array.null_count:
        raise ValueError("the array has nulls")
    kind = np.dtype(f"i{array.type.bit_width // 8}")
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, dtype=kind)
    return np.frombuffer(data, dtype=kind)[array.offset : array.offset + len(array)]


def truths(array: pa.Array[Any]) -> npt.NDArray[np.bool_]:
    """Where a boolean array is true; null is not."""
    values = pc.fill_null(array, False) if array.null_count else array
    data = values.buffers()[1]
    if data is None:
        return np.empty(0, dtype=bool)
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    return bits[values.offset : values.offset + len(values)].astype(bool)
