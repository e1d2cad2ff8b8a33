"""The set of files that commits have named, asked by millions of keys at once.

Arrow's `is_in` builds its table anew for every batch that asks. This set is prepared once: each key has a
64-bit fingerprint of its length and some of its bytes, and a small bitmap tells for nearly all keys of a
checkpoint that they are not in the set. The few that remain are compared byte by byte, so the answer is exact
whatever the fingerprints do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lakepass.reader.log.arrays import ArrowArray, bool_array, compute, int64_array, truths

_WINDOW = 8
_WINDOWS = 4
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_PER_KEY = 32


class SeenKeys:
    """A fixed set of keys (an Arrow array of bytes, each once)."""

    def __init__(self, keys: ArrowArray) -> None:
        self._keys = keys
        self._sorted: npt.NDArray[np.uint64] | None = None
        prints = _fingerprints(keys)
        if prints is None:
            return
        order = np.argsort(prints)
        in_order = prints[order]
        if (in_order[1:] == in_order[:-1]).any():
            # Two keys look alike: then fingerprints cannot tell which one a key would be.
            return
        self._sorted = in_order
        self._order = order
        self._bits = int(len(keys) * _SLOTS_PER_KEY).bit_length()
        self._bitmap = np.zeros(1 << self._bits, dtype=bool)
        self._bitmap[self._slots(prints)] = True

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """How much memory the set holds."""
        if self._sorted is None:
            return int(self._keys.nbytes)
        return int(self._keys.nbytes) + self._sorted.nbytes + self._order.nbytes + self._bitmap.nbytes

    def contains(self, keys: ArrowArray) -> ArrowArray | None:
        """For each key whether it is in the set; None when none is."""
        if len(self._keys) == 0:
            return None
        prints = _fingerprints(keys) if self._sorted is not None else None
        if prints is None or self._sorted is None:
            found = compute.is_in(keys, value_set=self._keys)
            return found if compute.any(found).as_py() else None
        rows = np.flatnonzero(self._bitmap[self._slots(prints)])
        places = np.searchsorted(self._sorted, prints[rows]).clip(max=len(self._sorted) - 1)
        alike = self._sorted[places] == prints[rows]
        rows, places = rows[alike], places[alike]
        if len(rows) == 0:
            return None
        equal = compute.equal(keys.take(int64_array(rows)), self._keys.take(int64_array(self._order[places])))
        mask = np.zeros(len(keys), dtype=bool)
        mask[rows[truths(equal)]] = True
        return bool_array(mask)

    def _slots(self, prints: npt.NDArray[np.uint64]) -> Any:
        return prints >> np.uint64(64 - self._bits)


def _fingerprints(keys: ArrowArray) -> npt.NDArray[np.uint64] | None:
    """A number for each key, or None where some key is too short to have one this way."""
    count = len(keys)
    if count == 0 or keys.null_count:
        return None
    _, offset_buffer, data = keys.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[keys.offset : keys.offset + count + 1]
    lengths = np.diff(offsets)
    if data is None or int(lengths.min()) < _WINDOW:
        return None
    starts = offsets[:-1].astype(np.int64)
    room = (lengths - _WINDOW).astype(np.int64)
    size = int(offsets[-1]) - _WINDOW + 1
    # Every position of the text as the start of eight bytes, without a copy.
    words: npt.NDArray[np.uint64] = np.ndarray((size,), dtype="<u8", buffer=data, strides=(1,))
    prints = lengths.astype(np.uint64) * _MIX
    for window in range(1, _WINDOWS + 1):
        prints = (prints ^ words[starts + room * window // _WINDOWS]) * _MIX
        prints ^= prints >> np.uint64(29)
    return prints * _MIX
