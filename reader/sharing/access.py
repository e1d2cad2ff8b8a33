"""Which way to read a shared table: pre-signed URLs (`url`) or a credential for its directory (`dir`).

The protocol's "Access Modes": a table's metadata lists what the server offers, and nothing listed means
`url`. Given a choice, `dir`: it costs the server one credential instead of a signature per file, and lets
the reader plan on the log itself. `auto` goes from `dir` to `url` only for the reasons in
`reason_to_fall_back`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lakepass.reader.errors import (
    AccessRefusedError,
    CorruptTableError,
    DeltaError,
    FileMissingError,
    MissingExtraError,
    SharingError,
    StorageError,
    UnsupportedTableError,
)
from lakepass.reader.location import LocationError

Access = Literal["auto", "dir", "url"]
Mode = Literal["dir", "url"]
_KNOWN: tuple[Mode, ...] = ("dir", "url")


class AccessModeError(DeltaError):
    """The server does not offer the table in a mode that was asked for."""


@dataclass(frozen=True)
class Choice:
    """The mode to begin with, and whether `url` may follow when `dir` turns out not to work."""

    mode: Mode
    may_fall_back: bool = False


def choose(
    wanted: Access, offered: Sequence[str] | None, table: str, *, location_given: bool = False
) -> Choice:
    """The way to read, from what the caller wants and what the server's `accessModes` says.

    A caller who gives the table's location may read in `dir` mode from a server that vends credentials
    without saying so, as the reference server does.

    >>> choose("auto", ["url", "dir"], "s.d.t")
    Choice(mode='dir', may_fall_back=True)
    >>> choose("auto", None, "s.d.t")
    Choice(mode='url', may_fall_back=False)
    """
    if wanted not in ("auto", *_KNOWN):
        raise AccessModeError(f"access={wanted!r} is not known: use 'auto', 'dir' or 'url'.")
    listed = {mode.strip().lower() for mode in offered or ()}
    modes = {mode for mode in _KNOWN if mode in listed} if listed else {"url"}
    if wanted == "dir" and (location_given or "dir" in modes):
        return Choice("dir")
    if wanted == "url" and "url" in modes:
        return Choice("url")
    if wanted == "auto" and "dir" in modes:
        return Choice("dir", "url" in modes)
    if wanted == "auto" and "url" in modes:
        return Choice("url")
    said = ", ".join(sorted(listed)) if listed else "nothing, which means url"
    if wanted == "auto":
        advice = "Upgrade lakepass: a newer version may know these."
    elif wanted == "dir":
        advice = (
            "Use access='url' or 'auto', ask the provider for directory access, or give the table's "
            "location if the server vends credentials without announcing it."
        )
    else:
        advice = "Use access='dir' or 'auto', or ask the provider for url access."
    raise AccessModeError(
        f"{table} cannot be read with access={wanted!r}: the server offers {said}. {advice}"
    )


def listed_modes(value: object) -> tuple[str, ...] | None:
    """The modes in an `accessModes` field as it was sent; None when it says nothing.

    >>> listed_modes(["url", None]), listed_modes("dir"), listed_modes([])
    (('url',), ('dir',), None)
    """
    found = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(mode for mode in found if isinstance(mode, str)) or None


def reason_to_fall_back(error: DeltaError) -> str | None:
    """Why `dir` does not work here although the table may be fine; None when `url` could not do better.

    A damaged or missing log, a version that is not there, a wrong filter: these are the table's or
    the caller's, and a second way to read would only hide them.
    """
    if isinstance(error, MissingExtraError):
        return f"the support for its cloud is not installed (pip install 'lakepass[{error.extra}]')"
    if isinstance(error, LocationError):
        return "its location is not one this reader can reach"
    if isinstance(error, AccessRefusedError):
        return "the vended credential does not open the location"
    if isinstance(error, SharingError) and error.status in (400, 403, 404, 405, 501):
        return "the server refused a credential for the location"
    if isinstance(error, CredentialKindError):
        return "the server vends a kind of credential this reader does not know"
    if isinstance(error, UnsupportedTableError):
        return "its log needs what this reader does not support"
    if isinstance(error, StorageError) and not isinstance(error, FileMissingError | CorruptTableError):
        return "its store cannot be reached from here"
    return None


class CredentialKindError(DeltaError):
    """The vended credential is for a cloud, or of a kind, that this reader does not know."""
