"""Names of columns as users write them: dotted paths into structs, backticks around odd names."""

from __future__ import annotations

import difflib

from lakepass.reader.errors import FilterError
from lakepass.reader.expressions.tree import Column
from lakepass.reader.types import VOID, StructField, StructType


def split_path(text: str) -> tuple[str, ...]:
    """The parts of a dotted path.

    >>> split_path("a.`b.c`.d")
    ('a', 'b.c', 'd')
    """
    parts: list[str] = []
    at = 0
    while True:
        if text[at : at + 1] == "`":
            part, at = _quoted(text, at)
        else:
            end = text.find(".", at)
            end = len(text) if end < 0 else end
            part, at = text[at:end], end
        if not part:
            raise FilterError(f"{text!r} is not a column name: a part of it is empty.")
        parts.append(part)
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            raise FilterError(f"{text!r} is not a column name: after a backtick comes a dot or the end.")
        at += 1


def resolve(path: tuple[str, ...], table: StructType) -> Column:
    """The column that a path leads to; an error names what there is instead."""
    fields: list[StructField] = []
    level: StructType = table
    for depth, name in enumerate(path):
        found = level.find(name)
        if found is None or found.type == VOID:
            raise FilterError(_missing(path, depth, level))
        fields.append(found)
        if depth + 1 < len(path):
            if not isinstance(found.type, StructType):
                raise FilterError(
                    f"There is no column {'.'.join(path)!r}: {'.'.join(path[: depth + 1])!r} is of type "
                    f"{str(found.type)[:100]}, not a struct, and has no fields."
                )
            level = found.type
    return Column(tuple(fields))


def find(text: str, table: StructType) -> Column:
    """The column that a user's text names; a column whose own name holds a dot comes first.

    >>> from lakepass.reader.types import LONG
    >>> str(find("id", StructType((StructField("id", LONG),))))
    'id'
    """
    if not isinstance(text, str) or not text:
        raise FilterError(f"A column is named by text, not by {text!r}.")
    if any(each.name == text for each in table.fields):
        return resolve((text,), table)
    return resolve(split_path(text), table)


def _quoted(text: str, at: int) -> tuple[str, int]:
    part = ""
    while True:
        end = text.find("`", at + 1)
        if end < 0:
            raise FilterError(f"{text!r} is not a column name: a backtick is not closed.")
        part += text[at + 1 : end]
        if text[end + 1 : end + 2] != "`":
            return part, end + 1
        part += "`"
        at = end + 1


def _missing(path: tuple[str, ...], depth: int, level: StructType) -> str:
    names = [each.name for each in level.fields if each.type != VOID]
    place = f"{'.'.join(path[:depth])!r}" if depth else "the table"
    close = difflib.get_close_matches(path[depth], names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    shown = ", ".join(names[:50]) + (", …" if len(names) > 50 else "")
    return f"There is no column {'.'.join(path)!r}: {place} has {shown or 'no columns'}.{hint}"
