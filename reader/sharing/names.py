"""Names of shared things: `share.schema.table`, and `profile#share.schema.table` as other clients write it.

The protocol's "Names" section: schemas and tables have no period in their names, a share may; 255
characters, no spaces, slashes or control characters. Names are case-insensitive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from lakepass.reader.errors import DeltaError

_RESTRICTED = re.compile(r"[ /\x00-\x1f\x7f]")


class InvalidNameError(DeltaError, ValueError):
    """The text is not the name of a share, a schema or a table."""


@dataclass(frozen=True)
class TableName:
    """The full name of a shared table.

    >>> TableName.parse("sales.eu.orders")
    TableName(share='sales', schema='eu', table='orders')
    """

    share: str
    schema: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """The name in `share.schema.table`; a share's own periods are kept."""
        parts = text.rsplit(".", 2)
        if len(parts) != 3:
            raise InvalidNameError(f"{text!r} is not a table's name: write share.schema.table.")
        return cls(*(check(part, text) for part in parts))

    def __str__(self) -> str:
        return f"{self.share}.{self.schema}.{self.table}"

    @property
    def path(self) -> str:
        """The path of its REST resources below the endpoint."""
        return f"/shares/{encoded(self.share)}/schemas/{encoded(self.schema)}/tables/{encoded(self.table)}"

    @property
    def folded(self) -> tuple[str, str, str]:
        """Equal for all spellings of the same name."""
        return self.share.casefold(), self.schema.casefold(), self.table.casefold()


def split_schema(text: str) -> tuple[str, str]:
    """Share and schema of `share.schema`."""
    share, separator, schema = text.rpartition(".")
    if not separator:
        raise InvalidNameError(f"{text!r} is not a schema's name: write share.schema.")
    return check(share, text), check(schema, text)


def split_reference(text: str) -> tuple[str | None, str]:
    """Profile and name of `profile#share.schema.table`; no profile when there is no `#`."""
    profile, _, name = text.rpartition("#")
    return profile or None, name


def check(part: str, whole: str) -> str:
    """`part`, if it can be the name of something."""
    if not part or len(part) > 255 or _RESTRICTED.search(part) or part in (".", ".."):
        raise InvalidNameError(
            f"{part!r} in {whole!r} cannot be a name: 1 to 255 characters, no space, slash or control."
        )
    return part


def encoded(part: str) -> str:
    """`part` as one segment of a URL's path."""
    return quote(part, safe="")
