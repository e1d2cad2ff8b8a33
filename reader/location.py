"""A location: the directory of a table, or of files that belong to it, in a store.

Validated once, here. The text is taken literally (never percent-decoded), so that the scope built from it
opens exactly the keys that begin with it. Whatever could name a second place is refused: `.` and `..`,
empty segments, encoded slashes, backslashes, control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from lakepass.reader.errors import DeltaError

_ALIASES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "abfs": "abfss",
    "abfss": "abfss",
    "gs": "gs",
    "file": "file",
}
_ENCODED_SEPARATOR = re.compile(r"%(2f|5c)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")
_AZURE_AUTHORITY = re.compile(r"(\$root|\$web|[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)@([A-Za-z0-9.:-]+)")


class LocationError(DeltaError, ValueError):
    """The text is not a location that can be read or scoped."""


@dataclass(frozen=True, order=True)
class Location:
    """A directory in a store; equal when they name the same place, whatever alias or trailing slash was used.

    >>> Location.parse("s3a://lake/sales/orders/") == Location.parse("s3://lake/sales/orders")
    True
    >>> Location.parse("s3://lake/t/a").contains(Location.parse("s3://lake/t/ab"))
    False
    """

    scheme: str
    """`s3`, `abfss`, `gs` or `file`."""
    authority: str
    """The bucket, or `container@account-host` on Azure; empty for local files."""
    path: str
    """The key prefix without leading or trailing slash; empty only for a bucket's root."""

    @classmethod
    def parse(cls, text: str, *, allow_root: bool = False) -> Location:
        """The location that `text` names.

        A bucket's root has an empty path, for which no narrower scope exists: only a reader with credentials
        of its own may ask for it (`allow_root`).
        """
        if not isinstance(text, str) or not text.strip():
            raise LocationError("A location is needed, such as s3://bucket/path/to/table.")
        scheme, separator, rest = text.partition("://")
        if not separator:
            if text.startswith("/"):
                scheme, rest = "file", text
            elif text.startswith("file:/"):
                scheme, rest = "file", text.removeprefix("file:")
            else:
                raise LocationError(
                    f"{text!r} is not a location: it needs a scheme (s3://, abfss://, gs://) "
                    "or an absolute path."
                )
        known = _ALIASES.get(scheme.lower())
        if known is None:
            raise LocationError(
                f"{text!r} has the scheme {scheme!r}; known are s3, s3a, abfs, abfss, gs and file."
            )
        authority, slash, path = rest.partition("/")
        path = path.removesuffix("/")
        _check_path(text, path)
        if known == "file":
            if authority not in ("", "localhost"):
                raise LocationError(f"{text!r} names a host; a local location is file:///absolute/path.")
            if not slash:
                raise LocationError(f"{text!r} is not an absolute path.")
            return cls(known, "", path)
        authority = _check_authority(text, known, authority)
        if not path and not allow_root:
            raise LocationError(
                f"{text!r} is a whole bucket or container. A credential cannot be scoped to less than "
                "that, so name a directory in it."
            )
        return cls(known, authority, path)

    def __str__(self) -> str:
        slash = "/" if self.path or self.scheme == "file" else ""
        return f"{self.scheme}://{self.authority}{slash}{self.path}"

    @property
    def cloud(self) -> str | None:
        """`aws`, `azure`, `gcp`, or None for local files."""
        return {"s3": "aws", "abfss": "azure", "gs": "gcp"}.get(self.scheme)

    @property
    def bucket(self) -> str:
        """The bucket, or the container on Azure."""
        return self.authority.partition("@")[0]

    @property
    def account_host(self) -> str:
        """On Azure, the account's host, such as `account.dfs.core.windows.net`."""
        return self.authority.partition("@")[2]

    @property
    def account(self) -> str:
        """On Azure, the storage account's name."""
        return self.account_host.partition(".")[0]

    @property
    def prefix(self) -> str:
        """What every key below this directory begins with: the path and a slash, or nothing for a root."""
        return f"{self.path}/" if self.path else ""

    def contains(self, other: Location) -> bool:
        """Whether `other` is this directory or lies below it."""
        return (
            (self.scheme, self.authority) == (other.scheme, other.authority)
            and (other.path == self.path or other.path.startswith(self.prefix))
        )  # fmt: skip

    def join(self, relative: str) -> str:
        """The text of a key below this directory."""
        base = str(self)
        return f"{base}{relative}" if base.endswith("/") else f"{base}/{relative}"


_T = TypeVar("_T")


def longest_match(locations: Iterable[tuple[Location, _T]], wanted: Location) -> tuple[Location, _T] | None:
    """The pair whose location contains `wanted` most closely."""
    matching = [pair for pair in locations if pair[0].contains(wanted)]
    return max(matching, key=lambda pair: len(pair[0].path)) if matching else None


def _check_path(text: str, path: str) -> None:
    if _CONTROL.search(text):
        raise LocationError(f"{text!r} holds a control character.")
    if "\\" in text:
        raise LocationError(f"{text!r} holds a backslash, which stores disagree about.")
    if _ENCODED_SEPARATOR.search(path):
        raise LocationError(f"{text!r} holds an encoded slash; write the location without percent-encoding.")
    if path and any(segment in ("", ".", "..") for segment in path.split("/")):
        raise LocationError(f"{text!r} holds an empty, '.' or '..' segment; write the directory's own path.")


def _check_authority(text: str, scheme: str, authority: str) -> str:
    if scheme == "abfss":
        match = _AZURE_AUTHORITY.fullmatch(authority)
        if match is None:
            raise LocationError(
                f"{text!r} is not an Azure location: abfss://container@account.dfs.core.windows.net/path."
            )
        return f"{match[1]}@{match[2].lower()}"
    if not _BUCKET.fullmatch(authority):
        raise LocationError(f"{text!r} does not name a bucket: {scheme}://bucket/path.")
    return authority
