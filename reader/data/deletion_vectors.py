"""Deletion vectors: which row positions of a data file are gone.

Carries out "Deletion Vectors" and "Deletion Vector Format" of the protocol. A vector is a 64-bit roaring
bitmap. It is kept in its compressed containers and expanded into a mask for one batch of rows at a time, so
that memory follows the batch and not what a file claims. What a file says about itself (version, size,
checksum, magic number, cardinality, order) is checked before it is believed.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lakepass.reader.errors import CorruptTableError
from lakepass.reader.secrets import shown_path

Mask = npt.NDArray[np.bool_]

MAX_BYTES = 256 * 1024 * 1024
"""The largest serialized vector that is read: one bit for each of two billion rows."""

_PORTABLE = 1681511377
_NATIVE = 1681511376
"""An older layout, each bitmap after its size; the protocol's own inline example is written in it."""
_FILE_VERSION = 1
_COOKIE_RUNS = 12347
_COOKIE = 12346
_NO_OFFSETS_BELOW = 4
_BLOCK = 65536
_UUID_CHARACTERS = 20

_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_NOTHING = np.zeros(0, dtype=np.uint16)
_DIGITS = np.full(256, 255, dtype=np.uint8)
_DIGITS[np.frombuffer(_ALPHABET, dtype=np.uint8)] = np.arange(85, dtype=np.uint8)


@dataclass(frozen=True)
class Descriptor:
    """What the log says about a file's deletion vector."""

    storage_type: str
    path_or_inline: str = field(repr=False)
    """In a shared table it may be a signed address."""
    offset: int | None
    size: int
    cardinality: int

    def relative_path(self) -> str:
        """For storage type `u`: where the vector's file lies under the table's root.

        >>> Descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6).relative_path()
        'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
        """
        prefix, encoded = self.path_or_inline[:-_UUID_CHARACTERS], self.path_or_inline[-_UUID_CHARACTERS:]
        name = f"deletion_vector_{uuid.UUID(bytes=z85_decode(encoded))}.bin"
        return f"{prefix}/{name}" if prefix else name


ReadRange = Callable[[str, int, int], bytes]
"""Reads (path, offset, length) from the table's stores."""


def load(descriptor: Descriptor, resolve: Callable[[Descriptor], str], read: ReadRange) -> DeletionVector:
    """The deletion vector that `descriptor` tells of, verified.

    `resolve` gives the path of a vector that is stored in a file; `read` reads a range of it.

    >>> inline = Descriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", None, 40, 6)
    >>> load(inline, lambda d: "", lambda *_: b"").positions().tolist()
    [3, 4, 7, 11, 18, 29]
    """
    if not 0 <= descriptor.size <= MAX_BYTES or descriptor.cardinality < 0:
        raise _damaged("in the log", f"it claims {descriptor.size} bytes and {descriptor.cardinality} rows")
    if descriptor.storage_type == "i":
        where = "inline in the log"
        data = z85_decode(descriptor.path_or_inline)
        if not 0 <= len(data) - descriptor.size < 4:
            raise _damaged(where, f"it has {len(data)} bytes, not {descriptor.size} as the log says")
        data = data[: descriptor.size]
    elif descriptor.storage_type in ("u", "p"):
        if descriptor.storage_type == "u" and len(descriptor.path_or_inline) < _UUID_CHARACTERS:
            raise _damaged("in the log", f"its path {descriptor.path_or_inline[:40]!r} is too short")
        where = resolve(descriptor)
        data = _from_file(where, descriptor, read)
    else:
        raise _damaged("in the log", f"its storage type {descriptor.storage_type[:10]!r} is not u, i or p")
    vector = _parse(data, where)
    if vector.cardinality != descriptor.cardinality:
        raise _damaged(
            where, f"it holds {vector.cardinality} rows, not {descriptor.cardinality} as the log says"
        )
    return vector


def z85_decode(text: str) -> bytes:
    """Bytes from ZeroMQ's base-85 text.

    >>> z85_decode("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    raw = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
    digits = _DIGITS[raw]
    if not text.isascii() or len(digits) % 5 or (digits == 255).any():
        raise _damaged("in the log", f"{text[:40]!r} is not base-85 text")
    groups = digits.reshape(-1, 5).astype(np.uint64)
    words = groups @ np.array([85**4, 85**3, 85**2, 85, 1], dtype=np.uint64)
    if (words > 0xFFFFFFFF).any():
        raise _damaged("in the log", f"{text[:40]!r} is not base-85 text")
    return words.astype(">u4").tobytes()


@dataclass(frozen=True)
class _Container:
    """65,536 positions from `base` on, in one of roaring's three encodings."""

    base: int
    kind: str
    data: npt.NDArray[Any]

    def positions(self) -> npt.NDArray[np.int64]:
        if self.kind == "array":
            return self.data.astype(np.int64)
        return np.flatnonzero(self.mask())

    def mask(self) -> Mask:
        if self.kind == "bitset":
            return np.unpackbits(self.data.view(np.uint8), bitorder="little").view(np.bool_)
        gone = np.zeros(_BLOCK, dtype=np.bool_)
        if self.kind == "array":
            gone[self.data] = True
        else:
            for start, length in self.data.reshape(-1, 2).tolist():
                gone[start : start + length + 1] = True
        return gone

    def clear(self, keep: Mask, start: int) -> None:
        """Set `keep`, whose first element is row `start`, to False where this container has a position."""
        first, last = max(self.base, start), min(self.base + _BLOCK, start + len(keep))
        if self.kind == "array":
            chosen = self.data.astype(np.int64) + (self.base - start)
            keep[chosen[(chosen >= 0) & (chosen < len(keep))]] = False
        else:
            keep[first - start : last - start] &= ~self.mask()[first - self.base : last - self.base]


class DeletionVector:
    """A set of row positions, asked for one stretch of rows at a time."""

    def __init__(self, containers: list[_Container], cardinality: int) -> None:
        self.cardinality = cardinality
        self._containers = containers
        self._bases = np.array([each.base for each in containers], dtype=np.int64)

    @property
    def last(self) -> int:
        """The largest position, or -1 when there is none."""
        if not self._containers:
            return -1
        final = self._containers[-1]
        return final.base + int(final.positions()[-1])

    def keep(self, start: int, length: int) -> Mask | None:
        """True for each of `length` rows from `start` on that is not deleted; None when none of them is."""
        low = int(np.searchsorted(self._bases, start - _BLOCK, side="right"))
        high = int(np.searchsorted(self._bases, start + length, side="left"))
        if low >= high:
            return None
        mask = np.ones(length, dtype=np.bool_)
        for container in self._containers[low:high]:
            container.clear(mask, start)
        return mask

    def positions(self) -> npt.NDArray[np.int64]:
        """Every position, in order. For small vectors; a scan uses `keep`."""
        parts = [each.positions() + each.base for each in self._containers]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _from_file(path: str, descriptor: Descriptor, read: ReadRange) -> bytes:
    offset = descriptor.offset or 0
    if offset < 0:
        raise _damaged(path, f"the log gives the offset {offset}")
    # Version byte, then for each vector: size, data, checksum. An absent offset points past the version byte.
    start = max(offset, 1)
    if read(path, 0, 1) != bytes([_FILE_VERSION]):
        raise _damaged(path, "the file does not begin with version 1")
    framed = read(path, start, descriptor.size + 8)
    if len(framed) != descriptor.size + 8:
        raise _damaged(path, f"the file ends before the {descriptor.size} bytes at offset {start} do")
    (size,) = struct.unpack(">i", framed[:4])
    data = framed[4:-4]
    (checksum,) = struct.unpack(">I", framed[-4:])
    if size != descriptor.size:
        raise _damaged(
            path, f"at offset {start} it holds {size} bytes, not {descriptor.size} as the log says"
        )
    if checksum != zlib.crc32(data):
        raise _damaged(path, f"the checksum at offset {start} does not fit the data")
    return data


def _parse(data: bytes, where: str) -> DeletionVector:
    try:
        return _Parser(data, where).vector()
    except (struct.error, ValueError, IndexError):
        raise _damaged(where, "it ends early") from None


class _Parser:
    """Reads the portable roaring format; each step checks that the bytes it wants are there."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.where = where
        self.at = 0
        self.cardinality = 0

    def vector(self) -> DeletionVector:
        (magic,) = self.unpack("<i")
        order = "<"
        if magic not in (_PORTABLE, _NATIVE):
            (magic,) = struct.unpack_from(">i", self.data)
            order = ">"
        containers: list[_Container] = []
        if magic == _PORTABLE and order == "<":
            self.portable(containers)
        elif magic == _NATIVE:
            self.native(containers, order)
        else:
            raise _damaged(self.where, f"its magic number is {magic}, not {_PORTABLE}")
        if self.at != len(self.data):
            raise _damaged(self.where, f"{len(self.data) - self.at} bytes are left over")
        return DeletionVector(containers, self.cardinality)

    def portable(self, containers: list[_Container]) -> None:
        (buckets,) = self.unpack("<q")
        self.check_count(buckets)
        previous = -1
        for _ in range(buckets):
            (key,) = self.unpack("<i")
            if key <= previous:
                raise _damaged(self.where, "its keys are not in order")
            previous = key
            self.bitmap(key << 32, containers)

    def native(self, containers: list[_Container], order: str) -> None:
        (buckets,) = self.unpack(f"{order}i")
        self.check_count(buckets)
        for key in range(buckets):
            (size,) = self.unpack(f"{order}i")
            end = self.at + size
            self.bitmap(key << 32, containers)
            if self.at != end:
                raise _damaged(self.where, "a bitmap is not as long as it says")

    def check_count(self, buckets: int) -> None:
        if not 0 <= buckets <= len(self.data) // 8:
            raise _damaged(self.where, f"it claims {buckets} bitmaps in {len(self.data)} bytes")

    def bitmap(self, base: int, containers: list[_Container]) -> None:
        (cookie,) = self.unpack("<I")
        if cookie & 0xFFFF == _COOKIE_RUNS:
            count = (cookie >> 16) + 1
            flags = np.unpackbits(self.array("u1", (count + 7) // 8), bitorder="little")
            with_offsets = count >= _NO_OFFSETS_BELOW
        elif cookie == _COOKIE:
            (count,) = self.unpack("<I")
            if count > _BLOCK:
                raise _damaged(self.where, f"it claims {count} containers")
            flags = np.zeros(count, dtype=np.uint8)
            with_offsets = True
        else:
            raise _damaged(self.where, f"{cookie} is not a roaring bitmap's cookie")
        header = self.array("<u2", count * 2).reshape(-1, 2)
        keys, sizes = header[:, 0].astype(np.int64), header[:, 1].astype(np.int64) + 1
        if (np.diff(keys) <= 0).any():
            raise _damaged(self.where, "its containers are not in order")
        if with_offsets:
            self.array("<u4", count)
        for key, size, is_run in zip(keys.tolist(), sizes.tolist(), flags.tolist(), strict=False):
            containers.append(self.container(base + (key << 16), size, bool(is_run)))

    def container(self, base: int, size: int, is_run: bool) -> _Container:
        if is_run:
            (count,) = self.unpack("<H")
            runs = self.array("<u2", count * 2)
            pairs = runs.reshape(-1, 2).astype(np.int64)
            ends = pairs[:, 0] + pairs[:, 1]
            if count == 0 or (ends >= _BLOCK).any() or (pairs[1:, 0] <= ends[:-1]).any():
                raise _damaged(self.where, "its runs are not in order")
            self.cardinality += int(pairs[:, 1].sum()) + count
            return _Container(base, "run", runs)
        self.cardinality += size
        if size <= 4096:
            values = self.array("<u2", size)
            if (values[1:] <= values[:-1]).any():
                raise _damaged(self.where, "its positions are not in order")
            return _Container(base, "array", values)
        bits = self.array("u1", _BLOCK // 8)
        if int(np.bitwise_count(bits).sum()) != size:
            raise _damaged(self.where, "a container does not hold as many positions as it says")
        return _Container(base, "bitset", bits)

    def unpack(self, form: str) -> tuple[int, ...]:
        values: tuple[int, ...] = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def array(self, kind: str, count: int) -> npt.NDArray[Any]:
        values = np.frombuffer(self.data, dtype=kind, count=count, offset=self.at) if count else _NOTHING
        self.at += values.nbytes
        return values


def _damaged(where: str, why: str) -> CorruptTableError:
    return CorruptTableError(
        f"The deletion vector {shown_path(where)} cannot be used: {why}. Rows that were deleted would come "
        "back, so the file it belongs to is not read. Restore the vector's file, or read a version of the "
        "table before it."
    )
