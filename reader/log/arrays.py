"""Arrow arrays over memory that is already there.

`pa.array` looks at its argument through pandas, and imports pandas for that where it is installed, which
takes longer than replaying a million files. Arrays whose type is known are put together from their buffers
instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

ArrowArray: TypeAlias = Any
"""An Arrow array. The stubs' generic type loses the operations of the array it stands for."""
compute: Any = pyarrow.compute
"""The stubs know fewer overloads than the library has."""


def int32_array(values: npt.NDArray[np.int32]) -> ArrowArray:
    """An Arrow array on a NumPy one, without nulls."""
    return _over(np.ascontiguousarray(values, dtype=np.int32), pa.int32())


def int64_array(values: npt.NDArray[np.int64]) -> ArrowArray:
    """An Arrow array on a NumPy one, without nulls."""
    return _over(np.ascontiguousarray(values, dtype=np.int64), pa.int64())


def bool_array(values: npt.NDArray[np.bool_]) -> ArrowArray:
    """An Arrow array of the same truths, without nulls."""
    bits = np.packbits(values, bitorder="little")
    buffers: list[Any] = [None, buffer_of(bits)]
    return pa.Array.from_buffers(pa.bool_(), len(values), buffers)


def string_array(values: Sequence[str]) -> ArrowArray:
    """A few texts.

    >>> string_array(["a", "bc"]).to_pylist()
    ['a', 'bc']
    """
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int32)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    buffers: list[Any] = [None, buffer_of(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def _over(values: npt.NDArray[Any], kind: pa.DataType) -> Any:
    buffers: list[Any] = [None, buffer_of(values)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def integers(array: ArrowArray) -> npt.NDArray[Any]:
    """The numbers of an integer array without nulls, as NumPy on the same memory."""
    if array.null_count:
        raise ValueError("the array has nulls")
    kind = np.dtype(f"i{array.type.bit_width // 8}")
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, dtype=kind)
    return np.frombuffer(memoryview(data), dtype=kind)[array.offset : array.offset + len(array)]


def truths(array: ArrowArray) -> npt.NDArray[np.bool_]:
    """Where a boolean array is true; null is not."""
    values = compute.fill_null(array, False) if array.null_count else array
    data = values.buffers()[1]
    if data is None:
        return np.empty(0, dtype=bool)
    bits = np.unpackbits(np.frombuffer(memoryview(data), dtype=np.uint8), bitorder="little")
    return bits[values.offset : values.offset + len(values)].astype(bool)


def buffer_of(values: npt.NDArray[Any]) -> pa.Buffer:
    """A NumPy array's memory as Arrow has it."""
    return pa.py_buffer(np.ascontiguousarray(values).data)
