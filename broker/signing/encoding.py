"""Object keys as they stand in a URL's path: every byte but the unreserved ones and slashes is encoded.

Thousands of files share a directory, so that its encoding is worked out once, and most file names need
none.
"""

from __future__ import annotations

import re
from urllib.parse import quote

_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*", re.ASCII)
_MOST_DIRECTORIES = 10_000


class KeyEncoder:
    """Encodes the keys of one answer."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._directories: dict[str, str] = {}

    def path(self, key: str) -> str:
        """The URL's path of an object, which begins with the base."""
        directory, slash, name = key.rpartition("/")
        start = self._directories.get(directory)
        if start is None:
            if len(self._directories) >= _MOST_DIRECTORIES:
                self._directories.clear()
            start = self._directories[directory] = self._base + quote(directory, safe="/~") + slash
        return start + (name if _PLAIN.fullmatch(name) else quote(name, safe="~"))
