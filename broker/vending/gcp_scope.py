"""The scope of a Google Cloud credential: a Credential Access Boundary for one directory of one bucket.

A boundary caps what a token may do: here the permissions of `roles/storage.objectViewer`, on one bucket,
for objects and folders whose name begins with the directory and its slash, and for lists with such a
prefix. The three are joined by "or" because a list request carries the bucket as its resource, and a read
has no list prefix. The default of `api.getAttribute` is empty: any other would make every request look like
a list below the directory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakepass.broker.vending.errors import ScopeRefused
from lakepass.reader.location import Location

_CEL_ESCAPES = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def access_boundary(location: Location, *, source_ranges: Sequence[str] = ()) -> dict[str, Any]:
    """The boundary that reads and lists below `location` and does nothing else."""
    if location.scheme != "gs" or not location.path:
        raise ScopeRefused(
            f"A credential cannot be limited to less than the whole bucket {location}: name a directory "
            "in it."
        )
    if source_ranges:
        raise ScopeRefused(
            f"A Google Cloud token for {location} cannot be held to the recipient's address ranges. "
            "Remove them from the recipient, or set gcp.bind_source_ip: false to give it a token that "
            "works from anywhere."
        )
    bucket = f"projects/_/buckets/{location.bucket}"
    objects = cel_text(f"{bucket}/objects/{location.prefix}")
    folders = cel_text(f"{bucket}/folders/{location.prefix}")
    prefix = cel_text(location.prefix)
    expression = (
        f"resource.name.startsWith({objects}) || "
        f"resource.name.startsWith({folders}) || "
        f"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith({prefix})"
    )
    return {
        "accessBoundary": {
            "accessBoundaryRules": [
                {
                    "availableResource": f"//storage.googleapis.com/{bucket}",
                    "availablePermissions": ["inRole:roles/storage.objectViewer"],
                    "availabilityCondition": {"expression": expression},
                }
            ]
        }
    }


def cel_text(text: str) -> str:
    """`text` as a string literal of the Common Expression Language."""
    if any(ord(character) < 0x20 and character not in _CEL_ESCAPES for character in text):
        raise ScopeRefused("A location with control characters cannot be put into a condition.")
    return "'" + "".join(_CEL_ESCAPES.get(character, character) for character in text) + "'"
