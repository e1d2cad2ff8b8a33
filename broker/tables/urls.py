"""From the paths that a log names to signed URLs.

A log is data from outside. A URL is signed only for a file that lies inside the table's root or one of its
registered auxiliary locations; a path elsewhere fails the answer, and the signer is never asked.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakepass.broker.protocol.json_columns import Column
from lakepass.broker.tables.storage import UrlSigner
from lakepass.reader import paths
from lakepass.reader.errors import PathRefusedError
from lakepass.reader.location import Location

# An escape, a scheme, a climb, an empty segment, a control character: whatever makes a path not plain.
_NOT_PLAIN = r"[%:\\\x00-\x1f\x7f]|(?:^|/)\.{0,2}(?:/|$)"


class FileUrls:
    """Signed URLs for the files of one table, all with the same end."""

    def __init__(self, root: Location, signers: Mapping[Location, UrlSigner]) -> None:
        self._root = root
        self._signers = sorted(
            ((location.join(""), location, signer) for location, signer in signers.items()),
            key=lambda place: len(place[0]),
            reverse=True,
        )
        self._root_signer = signers[root]
        self.expires_at_ms = min(signer.expires_at_ms for signer in signers.values())

    def sign(self, logged: Column) -> Column:
        """The URL of each path, as a text array."""
        if not pc.any(pc.match_substring_regex(logged, _NOT_PLAIN), min_count=0).as_py():
            prefix = self._root.prefix
            return pa.array(
                self._root_signer.sign([prefix + path for path in logged.to_pylist()]), pa.string()
            )
        return pa.array([self.sign_one(path) for path in logged.to_pylist()], pa.string())

    def sign_one(self, logged: str) -> str:
        """The URL of one path."""
        full = paths.resolve(self._root, logged)
        for start, location, signer in self._signers:
            if full.startswith(start):
                key = full.removeprefix(f"{location.scheme}://{location.authority}/")
                return signer.sign([key])[0]
        raise PathRefusedError(
            f"{full} lies outside the locations that the table is shared with. Register its directory as "
            "an auxiliary "
            "location if its files belong to the table."
        )
