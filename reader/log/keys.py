"""What identifies a logical file: its path and the unique id of its deletion vector.

The id is derived as the protocol says, `<storageType><pathOrInlineDv>` and `@<offset>` where there is one.
Keys are bytes in an Arrow array, so that replay is a few array operations whatever the number of files.
"""

from __future__ import annotations

import pyarrow as pa

from lakepass.reader.location import Location
from lakepass.reader.log.arrays import ArrowArray, compute
from lakepass.reader.paths import reconciliation_keys


def file_keys(root: Location, paths: ArrowArray, vectors: ArrowArray) -> ArrowArray:
    """One key per file; `vectors` has the shape of `DELETION_VECTOR`."""
    keys = reconciliation_keys(root, paths)
    if vectors.null_count == len(vectors):
        return keys
    # 0x01 stands in no path that may be read, so a path alone never equals a path with an id.
    with_vector = compute.binary_join_element_wise(
        keys, vector_ids(vectors).cast(pa.binary()), pa.scalar(b"\x01")
    )
    return compute.if_else(vectors.is_valid(), with_vector, keys)


def vector_ids(vectors: ArrowArray) -> ArrowArray:
    """The unique id of each deletion vector."""
    kind, place, offset = (compute.struct_field(vectors, [index]) for index in range(3))
    at = compute.if_else(
        offset.is_valid(),
        compute.binary_join_element_wise(pa.scalar("@"), offset.cast(pa.string()), pa.scalar("")),
        "",
    )
    return compute.binary_join_element_wise(
        compute.fill_null(kind, ""), compute.fill_null(place, ""), compute.fill_null(at, ""), pa.scalar("")
    )
