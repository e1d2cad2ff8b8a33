"""The paths a log names: what file each one means, and when two of them mean the same file.

A `path` in an action is a URI (RFC 2396), relative to the table's root or absolute, and must be percent-
decoded once. The log is data from outside, so a path that climbs, hides a control character or names an
unknown scheme is refused here; whether it lies in a place that may be read at all is decided by `Storages`.

Replay compares millions of paths. `reconciliation_keys` therefore works on whole Arrow arrays: it decodes by
moving bytes, not by looking at one path after another.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakepass.reader.errors import PathRefusedError
from lakepass.reader.location import Location, LocationError
from lakepass.reader.log.arrays import ArrowArray, buffer_of, compute, truths

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST = 8192
"""S3 keys end at 1,024 bytes and file systems at 4,096; with every byte encoded nothing real is longer than
this.
"""


def resolve(root: Location, logged: str) -> str:
    """The full path of the file that a log calls `logged`.

    >>> root = Location.parse("s3a://lake/orders")
    >>> resolve(root, "day=2024-01-01/part%201.parquet")
    's3://lake/orders/day=2024-01-01/part 1.parquet'
    >>> resolve(root, "s3n://lake/orders/x.parquet")
    's3://lake/orders/x.parquet'
    >>> resolve(root, "../x.parquet")
    Traceback (most recent call last):
    lakepass.reader.errors.PathRefusedError: Refused '../x.parquet' in the log of s3://lake/orders: ...
    """
    if not logged or len(logged) > _LONGEST:
        raise _refused(root, logged, "it is empty" if not logged else f"it is {len(logged)} characters long")
    scheme = _SCHEME.match(logged)
    if scheme is None and not logged.startswith("/"):
        return root.join(_decoded(root, logged, logged))
    if logged.startswith("//"):
        raise _refused(root, logged, "it names a host without a scheme")
    if scheme is None:
        # As Hadoop does: an absolute path without a scheme is in the table's own store.
        return _absolute(root.scheme, root.authority, _decoded(root, logged, logged))
    rest = logged[scheme.end() :]
    authority, path = "", rest
    if rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
    elif not rest.startswith("/"):
        raise _refused(root, logged, f"after {scheme[0]!r} no absolute path follows")
    try:
        # A file below it, so that a bucket's root is not what is parsed.
        place = Location.parse(f"{scheme[1]}://{authority}/file")
    except LocationError:
        raise _refused(root, logged, "it is in no store that is known") from None
    return _absolute(place.scheme, place.authority, _decoded(root, logged, path))


def reconciliation_keys(root: Location, paths: ArrowArray) -> ArrowArray:
    """For every path, bytes that are equal when the paths name the same file.

    >>> paths = pa.array(["a%20b", "a b", "file:/t/a b", "/t/a%20b", "file:/elsewhere/a b"])
    >>> keys = reconciliation_keys(Location.parse("/t"), paths)
    >>> [key == keys[0] for key in keys]
    [True, True, True, True, False]
    """
    keys = paths.cast(pa.binary())
    data, offsets = _memory(keys)
    if len(data) == 0:
        return keys
    if _holds(data, b":") or (data[offsets[:-1].clip(max=len(data) - 1)] == ord("/")).any():
        absolute = compute.match_substring_regex(paths, r"^(?:/|[A-Za-z][A-Za-z0-9+.\-]*:)")
        places = _place_keys(root, compute.if_else(absolute, keys, b""))
        keys = compute.if_else(absolute, places, _percent_decoded(compute.if_else(absolute, b"", keys)))
    elif _holds(data, b"%"):
        keys = _percent_decoded(keys)
    return _single_slashes(keys)


def _place_keys(root: Location, places: ArrowArray) -> ArrowArray:
    """Keys of absolute paths: those below the root become relative, the others keep their place."""
    place = f"{root.scheme}://{root.authority}/".encode()
    for pattern, replacement in (
        (rb"^file:(?://(?:localhost)?)?/+", b"file:///"),
        (rb"^(?i:s3[an]?)://", b"s3://"),
        (rb"^(?i:abfss?)://", b"abfss://"),
        (rb"^/+", place.replace(b"\\", b"\\\\")),
    ):
        places = compute.replace_substring_regex(
            places, pattern=pattern.decode(), replacement=replacement.decode()
        )
    places = _single_slashes(_percent_decoded(places))
    inside = root.join("").encode()
    below = compute.starts_with(places, pattern=inside)
    # A zero byte keeps a place apart from a relative path that decodes to the same text.
    elsewhere = compute.binary_join_element_wise(pa.scalar(b"\x00"), places, pa.scalar(b""))
    return compute.if_else(
        below, compute.binary_replace_slice(places, start=0, stop=len(inside), replacement=b""), elsewhere
    )


def _single_slashes(keys: ArrowArray) -> ArrowArray:
    """Hadoop reads `a//b` as `a/b`, so they are one file; the slashes after a scheme stay."""
    data, _ = _memory(keys)
    if not ((data[:-1] == ord("/")) & (data[1:] == ord("/"))).any():
        return keys
    return compute.replace_substring_regex(keys, pattern=r"([^:/])/+", replacement=r"\1/")


def _memory(array: ArrowArray) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """The bytes of a binary array and where each value begins, without a copy."""
    _, offset_buffer, data_buffer = array.buffers()
    if data_buffer is None or len(array) == 0:
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int32)
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    return np.frombuffer(data_buffer, dtype=np.uint8)[first:last], offsets - first if first else offsets


def _holds(data: npt.NDArray[np.uint8], byte: bytes) -> bool:
    return bool((data == byte[0]).any())


_HEX = np.full(256, 255, dtype=np.uint8)
for _digit in b"0123456789abcdefABCDEF":
    _HEX[_digit] = int(chr(_digit), 16)


def _percent_decoded(array: ArrowArray) -> ArrowArray:
    """Each value with its `%XX` turned into bytes, in one pass over the array's own memory."""
    count = len(array)
    validity, offsets_buffer, data_buffer = array.buffers()
    if data_buffer is None or count == 0:
        return array
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[array.offset : array.offset + count + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8)[: offsets[-1]]
    starts = np.flatnonzero(data == ord("%"))
    starts = starts[starts + 2 < len(data)]
    high, low = _HEX[data[starts + 1]], _HEX[data[starts + 2]]
    # An escape must end inside the value it begins in.
    ends = offsets[np.searchsorted(offsets, starts, side="right").clip(max=count)]
    good = (high < 16) & (low < 16) & (starts + 2 < ends) & (starts >= offsets[0])
    starts, high, low = starts[good], high[good], low[good]
    if len(starts) == 0:
        return array
    decoded = data.copy()
    decoded[starts] = (high << 4) | low
    keep = np.ones(len(data), dtype=bool)
    keep[starts + 1] = False
    keep[starts + 2] = False
    shorter = offsets - 2 * np.searchsorted(starts, offsets, side="left").astype(np.int32)
    kept = decoded[keep]
    nulls = None
    if validity is not None and array.null_count:
        nulls = buffer_of(np.packbits(truths(array.is_valid()), bitorder="little"))
    buffers: list[Any] = [nulls, buffer_of(shorter), buffer_of(kept)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _decoded(root: Location, logged: str, path: str) -> str:
    try:
        text = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        raise _refused(root, logged, "its percent-encoding is not UTF-8") from None
    if _CONTROL.search(text):
        raise _refused(root, logged, "it holds a control character")
    segments = text.split("/")
    if ".." in segments or "." in segments:
        raise _refused(root, logged, "it climbs with '..'" if ".." in segments else "it holds a '.' segment")
    if not segments[-1]:
        raise _refused(root, logged, "it is a directory")
    return "/".join(segment for segment in segments if segment)


def _absolute(scheme: str, authority: str, path: str) -> str:
    return f"{scheme}://{authority}/{path}"


def _refused(root: Location, logged: str, why: str) -> PathRefusedError:
    shown = logged if len(logged) <= 200 else logged[:200] + "…"
    return PathRefusedError(f"Refused {shown!r} in the log of {root}: {why}.")
