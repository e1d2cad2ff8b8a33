"""`_last_checkpoint`: a pointer to a recent checkpoint, believed only as far as saving a long listing.

It may be missing, garbage, old, or point to a checkpoint that is not there. All it gives is the version a
listing starts from; what the listing shows decides.
"""

from __future__ import annotations

import orjson

from lakepass.reader.errors import FileMissingError
from lakepass.reader.location import Location
from lakepass.reader.log.names import LAST_CHECKPOINT, MAX_VERSION
from lakepass.reader.storage import Storage, TooLargeError

_LARGEST = 32 << 20
"""A V2 checkpoint may be embedded in it; anything larger is not a hint."""


def last_checkpoint(storage: Storage, root: Location) -> int | None:
    """The version that `_last_checkpoint` names, or None when it says nothing of use."""
    try:
        hint = orjson.loads(storage.read(root.join(LAST_CHECKPOINT), limit=_LARGEST))
    except (FileMissingError, TooLargeError, ValueError):
        return None
    version = hint.get("version") if isinstance(hint, dict) else None
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= MAX_VERSION:
        return None
    return version
