"""The protocol's compatibility table for access modes, cell by cell, and when `auto` changes its mind."""

from __future__ import annotations

import pytest

from lakepass.reader.errors import (
    AccessRefusedError,
    CorruptTableError,
    DeltaError,
    FileMissingError,
    FilterError,
    MissingExtraError,
    NotATableError,
    PathRefusedError,
    SharingError,
    StorageError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakepass.reader.location import LocationError
from lakepass.reader.sharing.access import (
    Access,
    AccessModeError,
    Choice,
    CredentialKindError,
    choose,
    listed_modes,
    reason_to_fall_back,
)
from lakepass.reader.sharing.listings import TableEntry

URL, DIR, DIR_OR_URL = Choice("url"), Choice("dir"), Choice("dir", may_fall_back=True)


@pytest.mark.parametrize(
    ("wanted", "offered", "expected"),
    [
        ("url", None, URL),
        ("url", ["url"], URL),
        ("url", ["dir"], None),
        ("url", ["url", "dir"], URL),
        ("dir", None, None),
        ("dir", ["url"], None),
        ("dir", ["dir"], DIR),
        ("dir", ["url", "dir"], DIR),
        ("auto", None, URL),
        ("auto", ["url"], URL),
        ("auto", ["dir"], DIR),
        ("auto", ["url", "dir"], DIR_OR_URL),
        # Beyond the table: unknown modes are passed over, case does not matter, an empty list says nothing.
        ("auto", ["url", "teleport"], URL),
        ("auto", ["DIR", "Url"], DIR_OR_URL),
        ("auto", ["teleport"], None),
        ("auto", [], URL),
    ],
)
def test_every_cell_of_the_compatibility_table(
    wanted: Access, offered: list[str] | None, expected: Choice | None
) -> None:
    if expected is None:
        with pytest.raises(AccessModeError, match=r"s\.d\.t cannot be read"):
            choose(wanted, offered, "s.d.t")
    else:
        assert choose(wanted, offered, "s.d.t") == expected


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        (None, None),
        ([], None),
        (["url", "dir"], ("url", "dir")),
        ("url", ("url",)),
        ([None, "url", 3], ("url",)),
    ],
)
def test_modes_are_taken_from_whatever_was_sent(sent: object, known: tuple[str, ...] | None) -> None:
    assert listed_modes(sent) == known
    assert TableEntry.parse({"name": "t", "accessModes": sent}).access_modes == known


def test_a_given_location_opens_dir_where_it_is_not_announced() -> None:
    assert choose("dir", None, "s.d.t", location_given=True) == DIR
    assert choose("dir", ["url"], "s.d.t", location_given=True) == DIR


@pytest.mark.parametrize(
    "error",
    [
        MissingExtraError("azure", "reading from Azure"),
        LocationError("oss://b/t has the scheme 'oss'"),
        CredentialKindError("an R2 token"),
        AccessRefusedError("403"),
        SharingError("refused", 403),
        SharingError("not a location of this table", 400),
        UnsupportedTableError("catalog-managed", ("catalogManaged",)),
        StorageError("the store does not answer"),
    ],
)
def test_auto_falls_back_when_dir_cannot_work_here(error: DeltaError) -> None:
    assert reason_to_fall_back(error)


@pytest.mark.parametrize(
    "error",
    [
        NotATableError("no log"),
        CorruptTableError("a damaged commit"),
        VersionNotFoundError("version 99"),
        FileMissingError("part-0.parquet"),
        FilterError("no such column"),
        PathRefusedError("outside the table"),
        SharingError("the token is wrong", 401),
        SharingError("down", 503),
        SharingError("broke off"),
    ],
)
def test_auto_does_not_hide_a_table_that_is_wrong_or_a_server_that_is_down(error: DeltaError) -> None:
    assert reason_to_fall_back(error) is None
