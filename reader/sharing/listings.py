"""What a server lists: shares, schemas and tables, with pages followed only as far as they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

from lakepass.reader.sharing.access import listed_modes

Item = TypeVar("Item")


@dataclass(frozen=True)
class Share:
    """A share that was granted to the recipient."""

    name: str
    id: str | None = None
    display_name: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, item: Mapping[str, Any]) -> Share:
        """From an item of List Shares."""
        name, comment = item.get("displayName"), item.get("comment")
        return cls(str(item["name"]), item.get("id"), name, comment, dict(item.get("properties") or {}))


@dataclass(frozen=True)
class Schema:
    """A schema of a share."""

    name: str
    share: str

    def __str__(self) -> str:
        return f"{self.share}.{self.name}"

    @classmethod
    def parse(cls, item: Mapping[str, Any]) -> Schema:
        """From an item of List Schemas."""
        return cls(str(item["name"]), str(item.get("share") or ""))


@dataclass(frozen=True)
class TableEntry:
    """A table as a listing shows it; `str()` gives the name that `SharingClient.table` takes."""

    name: str
    schema: str
    share: str
    id: str | None = None
    share_id: str | None = None
    location: str | None = None
    auxiliary_locations: tuple[str, ...] = ()
    access_modes: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.share}.{self.schema}.{self.name}"

    @classmethod
    def parse(cls, item: Mapping[str, Any]) -> TableEntry:
        """From an item of List Tables or List All Tables."""
        return cls(
            str(item["name"]),
            str(item.get("schema") or ""),
            str(item.get("share") or ""),
            item.get("id"),
            item.get("shareId"),
            item.get("location"),
            tuple(item.get("auxiliaryLocations") or ()),
            listed_modes(item.get("accessModes")),
        )


class Listing(Sequence[Item], Generic[Item]):
    """A list whose pages are fetched as it is walked; `len()` and negative positions fetch what is left.

    >>> pages = {None: (["a", "b"], "2"), "2": (["c"], None)}
    >>> listing = Listing(lambda token: pages[token])
    >>> listing[0], len(listing), list(listing)
    ('a', 3, ['a', 'b', 'c'])
    """

    def __init__(self, page: Callable[[str | None], tuple[Sequence[Item], str | None]]) -> None:
        self._page = page
        self._items: list[Item] = []
        self._token: str | None = None
        self._complete = False

    def _more(self) -> bool:
        if self._complete:
            return False
        items, self._token = self._page(self._token)
        self._items.extend(items)
        self._complete = not self._token
        return True

    def __iter__(self) -> Iterator[Item]:
        position = 0
        while True:
            while position < len(self._items):
                yield self._items[position]
                position += 1
            if not self._more():
                return

    def __len__(self) -> int:
        while self._more():
            pass
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        wanted = index.stop if isinstance(index, slice) else index + 1
        while wanted is None or wanted <= 0 or len(self._items) < wanted:
            if not self._more():
                break
        return self._items[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        shown = ", ".join(str(item) for item in self._items)
        return f"[{shown}{'' if self._complete else ', …' if shown else '…'}]"
