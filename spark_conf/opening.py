"""What a user types for a table, and the table it opens.

`profile#share.schema.table` is a shared table; without the profile, `LAKEPASS_PROFILE` names it. A path or
the address of a directory is a table that the machine may read on its own identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from lakepass.reader.credentials import Credential
from lakepass.reader.location import Location
from lakepass.reader.sharing.client import SharingClient
from lakepass.reader.sharing.names import TableName, split_reference
from lakepass.reader.sharing.profile import Profile
from lakepass.reader.sharing.table import SharedTable
from lakepass.reader.sharing.vended import Vended
from lakepass.reader.table import Table
from lakepass.spark_conf.errors import SparkReadError

Mode = Literal["auto", "dir", "url"]


@dataclass(frozen=True)
class Reference:
    """A table as it was typed; picklable, and holds no secret."""

    text: str
    mode: Mode = "auto"

    @property
    def is_shared(self) -> bool:
        """Whether the table comes from a share rather than from a directory."""
        return "#" in self.text or not (self.text.startswith("/") or ":/" in self.text)

    def open(self) -> Table:
        """The table."""
        if not self.is_shared:
            return Table(self.text)
        profile, name = split_reference(self.text)
        return SharingClient(profile).table(name, access=self.mode)

    def profile(self) -> Profile:
        """The profile of a shared table."""
        return Profile.load(split_reference(self.text)[0])

    def name(self) -> TableName:
        """The name of a shared table."""
        return TableName.parse(split_reference(self.text)[1])


def check_mode(text: str) -> Mode:
    """The access mode that a text names."""
    folded = text.strip().lower()
    if folded == "dir":
        return "dir"
    if folded == "url":
        return "url"
    if folded == "auto":
        return "auto"
    raise SparkReadError(f"mode={text!r} is not known: use 'auto', 'dir' or 'url'.")


def locations(table: SharedTable) -> list[Location]:
    """Where the table's files are: its root, then its auxiliary locations."""
    return list(table._providers)


def vended(table: SharedTable, location: Location) -> Vended:
    """The credential for one of the table's locations, with where it is renewed."""
    return table._providers[location].vended


def ends(credential: Credential) -> str:
    """When a credential ends, for people."""
    if credential.expires_at is None:
        return "never"
    left = credential.expires_at - datetime.now(UTC)
    minutes = max(0, round(left.total_seconds() / 60))
    return f"{credential.expires_at:%Y-%m-%d %H:%M:%S} UTC (in {minutes} min)"
