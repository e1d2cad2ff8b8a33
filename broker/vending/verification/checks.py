"""What a credential for one directory must do, and what it must not.

A refused list is conclusive: stores decide by the prefix. A refused read of a name that does not exist is
not, because a store may hide what is missing; so objects that are known to exist are read where the caller
can name some, such as those of other shared tables in the same bucket.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from lakepass.broker.vending.verification.probe import Missing, Probe, Refused
from lakepass.reader.location import Location
from lakepass.reader.secrets import scrub


class Verdict(StrEnum):
    """What a check found."""

    OK = "ok"
    LEAK = "leak"
    """Allowed, and must not be."""
    ACCEPTED = "accepted"
    """Allowed because the administrator said so (`allow_container_scope`, `list_bare_prefix`)."""
    UNREADABLE = "unreadable"
    """Refused or missing, and must work."""
    UNSURE = "unsure"
    """The store gave no clear answer."""


@dataclass(frozen=True)
class Check:
    """One attempt, what should have come of it and what did."""

    what: str
    expected: str
    got: str
    verdict: Verdict


@dataclass(frozen=True)
class Allowance:
    """What the administrator has accepted beyond the directory."""

    container: bool = False
    """The credential is for the whole container: reads and lists outside the directory are known of."""
    bare_prefix: bool = False
    """Listing the directory's name without its slash is switched on."""


def verify_location(
    probe: Probe,
    location: Location,
    *,
    root: bool,
    strangers: Iterable[str] = (),
    allowance: Allowance = Allowance(),
) -> Iterator[Check]:
    """Check the credential that `probe` holds against its location.

    `root` says that the table's log is there. `strangers` are objects in the same bucket, outside the
    location, that exist.
    """
    names = yield from _what_must_work(probe, location, root=root)
    yield from _lists(probe, location, allowance)
    yield from _reads(probe, location, strangers, allowance)
    yield from _writes(probe, location, names)


def _what_must_work(probe: Probe, location: Location, *, root: bool) -> Generator[Check, None, list[str]]:
    names: list[str] = []
    yield _must(f"list {location.prefix}", lambda: names.extend(probe.list(location.prefix)))
    if not names:
        yield Check("find a file below it", "allowed", "nothing there", Verdict.UNREADABLE)
        return names
    if root:
        logged: list[str] = []
        yield _must("list _delta_log/", lambda: logged.extend(probe.list(f"{location.prefix}_delta_log/")))
        if logged:
            yield _must(f"read {_short(logged[0], location)}", lambda: probe.read(logged[0]))
    data = next((name for name in names if "/_delta_log/" not in name and not name.endswith("/")), None)
    if data is not None:
        yield _must(f"read {_short(data, location)}", lambda: probe.read(data))
    return names


def _lists(probe: Probe, location: Location, allowance: Allowance) -> Iterator[Check]:
    parent = location.path.rpartition("/")[0]
    prefixes: list[tuple[str, str | None, bool]] = [
        ("list the whole bucket", None, allowance.container),
        ("list with an empty prefix", "", allowance.container),
    ]
    if parent:
        prefixes.append((f"list the parent {parent}/", f"{parent}/", allowance.container))
    prefixes += [
        (f"list a sibling {location.path}2/", f"{location.path}2/", allowance.container),
        (f"list half its name {location.path[:-1]}", location.path[:-1], allowance.container),
    ]
    if location.scheme != "abfss":
        # Azure takes a directory without its slash for the directory; elsewhere it shows what begins alike.
        bare = allowance.container or allowance.bare_prefix
        prefixes.append((f"list its name without the slash {location.path}", location.path, bare))
    for what, prefix, accepted in prefixes:
        if prefix == "" and what.startswith("list half"):
            continue  # a name of one letter: that is the empty prefix again
        yield _must_not(what, partial(probe.list, prefix), accepted=accepted)


def _reads(
    probe: Probe, location: Location, strangers: Iterable[str], allowance: Allowance
) -> Iterator[Check]:
    for name in strangers:
        yield _must_not(f"read {name}", partial(probe.read, name), accepted=allowance.container)
    parent = location.path.rpartition("/")[0]
    nowhere = f"lakepass-verify-{secrets.token_hex(6)}"
    for name in (f"{location.path}2/{nowhere}", f"{parent}/{nowhere}" if parent else nowhere, nowhere):
        yield _must_not(f"read {name} (not there)", partial(probe.read, name), accepted=allowance.container)


def _writes(probe: Probe, location: Location, names: list[str]) -> Iterator[Check]:
    new = f"lakepass-verify-{secrets.token_hex(6)}"
    inside, beside = f"{location.prefix}{new}", f"{location.path}2/{new}"
    for name in (inside, beside, new):
        yield _must_not_write(probe, f"write {name}", name, partial(probe.write, name))
    yield _must_not(f"delete {inside}", lambda: probe.delete(inside))
    yield _must_not(f"delete {beside}", lambda: probe.delete(beside))
    if names:
        source = names[0]
        for target in (inside, beside):
            copying = partial(probe.copy, source, target)
            yield _must_not_write(probe, f"copy a file to {target}", target, copying)


def _must(what: str, attempt: Callable[[], object]) -> Check:
    try:
        attempt()
    except Refused as error:
        return Check(what, "allowed", f"refused ({error})", Verdict.UNREADABLE)
    except Missing:
        return Check(what, "allowed", "missing", Verdict.UNREADABLE)
    except Exception as error:
        return Check(what, "allowed", _unclear(error), Verdict.UNREADABLE)
    return Check(what, "allowed", "allowed", Verdict.OK)


def _must_not(what: str, attempt: Callable[[], object], *, accepted: bool = False) -> Check:
    """A name that is missing was looked for, so the request was let through: that is a leak as well."""
    try:
        attempt()
    except Refused:
        return Check(what, "refused", "refused", Verdict.OK)
    except Missing:
        got = "let through, nothing there"
    except Exception as error:
        return Check(what, "refused", _unclear(error), Verdict.UNSURE)
    else:
        got = "allowed"
    return Check(what, "refused", got, Verdict.ACCEPTED if accepted else Verdict.LEAK)


def _must_not_write(probe: Probe, what: str, name: str, attempt: Callable[[], None]) -> Check:
    check = _must_not(what, attempt)
    if check.verdict is Verdict.LEAK:
        with suppress(Exception):
            probe.delete(name)
    return check


def _short(name: str, location: Location) -> str:
    return name.removeprefix(location.prefix)


def _unclear(error: Exception) -> str:
    return scrub(f"{type(error).__name__}: {error}")[:200]
