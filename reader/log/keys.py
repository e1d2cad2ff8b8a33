"""What identifies a logical file: its path and the unique id of its deletion vector.

The id is derived as the protocol says, `<storageType><pathOrInlineDv>` and `@<offset>` where there is one. Keys are
bytes in an Arrow array, so that replay is a few array operations whatever the number of files.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.location import Location
from lakepass.reader.paths import reconciliation_keys


def file_keys(root: Location, paths: pa.Array, vectors: pa.Array) -> pa.Array:
    """One key per file; `vectors` has the shape of `DELETION_VECTOR`."""
    keys = reconciliation_keys(root, paths)
    if vectors.null_count == len(vectors):
        return keys
    # 0x01 stands in no path that may be read, so a path alone never equals a path with an id.
    with_vector = pc.binary_join_element_wise(keys, vector_ids(vectors).cast(pa.binary()), pa.scalar(b"\x01"))
    return pc.if_else(vectors.is_valid(), with_vector, keys)


def vector_ids(vectors: pa.Array) -> pa.Array:
    """The unique id of each deletion vector."""
    kind, place, offset = (pc.struct_field(vectors, [index]) for index in range(3))
    at = pc.if_else(
        offset.is_valid(),
        pc.binary_join_element_wise(pa.scalar("@"), offset.cast(pa.string()), pa.scalar("")),
        "",
    )
    return pc.binary_join_element_wise(
        pc.fill_null(kind, ""), pc.fill_null(place, ""), pc.fill_null(at, ""), pa.scalar("")
    )
