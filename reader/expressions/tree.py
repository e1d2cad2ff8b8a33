"""The nodes of a filter, after names and types are known.

One tree, several evaluators. A comparison's two sides always have the same type: `building` puts the casts
that Spark would put. `<>`, `between`, `not in` and the rest are built from these nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from lakepass.reader.types import BOOLEAN, DeltaType, StructField


@dataclass(frozen=True)
class Column:
    """A column, or a field inside of struct columns, as the fields that lead to it."""

    fields: tuple[StructField, ...]

    @property
    def type(self) -> DeltaType:
        """The type of the last field."""
        return self.fields[-1].type

    @property
    def path(self) -> tuple[str, ...]:
        """The logical names that lead to it."""
        return tuple(each.name for each in self.fields)

    @property
    def physical_path(self) -> tuple[str, ...]:
        """The names that lead to it in statistics and, under mapping, in files."""
        return tuple(each.physical_name for each in self.fields)

    def __str__(self) -> str:
        return ".".join(name if name.isidentifier() else f"`{name}`" for name in self.path)


@dataclass(frozen=True)
class Literal:
    """A constant, null or not."""

    scalar: pa.Scalar  # type: ignore[type-arg]  # of any Arrow type
    type: DeltaType


@dataclass(frozen=True)
class Cast:
    """A value as another type; what does not fit is an error, as in Spark's ANSI mode."""

    child: Value
    type: DeltaType


@dataclass(frozen=True)
class Comparison:
    """`=`, `<`, `<=`, `>`, `>=` or `<=>` of two values of the same type."""

    operator: str
    left: Value
    right: Value


@dataclass(frozen=True)
class In:
    """Whether a value equals one of several constants of its type."""

    child: Value
    values: pa.Array  # type: ignore[type-arg]  # of any Arrow type; holds no null
    has_null: bool


@dataclass(frozen=True)
class Like:
    """Whether a text has the shape of a pattern."""

    child: Value
    regex: str
    prefix: str
    """What every matching text begins with."""


@dataclass(frozen=True)
class IsNull:
    """Whether a value is null; itself never null."""

    child: Value


@dataclass(frozen=True)
class And:
    """Both, in three-valued logic."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True)
class Or:
    """Either, in three-valued logic."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True)
class Not:
    """The opposite; null stays null."""

    child: Predicate


@dataclass(frozen=True)
class Truth:
    """A boolean value (a column, a constant, a cast) used as a condition."""

    value: Value


@dataclass(frozen=True)
class Answer:
    """The answer to a condition used as a boolean value, as in `(a > 1) is null`."""

    condition: Predicate

    @property
    def type(self) -> DeltaType:
        """Always boolean."""
        return BOOLEAN


Value: TypeAlias = Column | Literal | Cast | Answer
Predicate: TypeAlias = Comparison | In | Like | IsNull | And | Or | Not | Truth


def columns_of(node: Predicate | Value) -> Iterator[Column]:
    """Every column that a filter names, as often as it names it."""
    match node:
        case Column():
            yield node
        case Comparison(left=left, right=right) | And(left, right) | Or(left, right):
            yield from columns_of(left)
            yield from columns_of(right)
        case Cast(child=child) | In(child=child) | Like(child=child) | IsNull(child) | Not(child):
            yield from columns_of(child)
        case Truth(value) | Answer(value):
            yield from columns_of(value)
        case Literal():
            pass


def type_of(node: Predicate | Value) -> DeltaType:
    """The type of a node's value; a condition is boolean."""
    return node.type if isinstance(node, Value) else BOOLEAN


def like_regex(pattern: str, escape: str) -> tuple[str, str]:
    """The regular expression of a LIKE pattern and the fixed text it begins with.

    >>> like_regex("a!%b%", "!")
    ('(?s)\\\\Aa%b.*\\\\z', 'a%b')
    """
    out: list[str] = []
    prefix: list[str] = []
    fixed = True
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            at += 1
            if at == len(pattern) or pattern[at] not in ("_", "%", escape):
                raise ValueError(pattern)
            character = pattern[at]
        elif character in "%_":
            out.append(".*" if character == "%" else ".")
            fixed = False
            at += 1
            continue
        out.append(re.escape(character) if character.isascii() else character)
        if fixed:
            prefix.append(character)
        at += 1
    return f"(?s)\\A{''.join(out)}\\z", "".join(prefix)
