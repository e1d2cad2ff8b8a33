"""Numbers in requests: JSON numbers, or the same as text, which several clients send."""

from __future__ import annotations

import re

from lakepass.broker.errors import InvalidParameter, MalformedRequest

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
_INTEGER = re.compile(r"[+-]?\d{1,19}")


def parse_integer(
    name: str, value: object, *, code: type[InvalidParameter | MalformedRequest] = MalformedRequest
) -> int:
    """An integer; `code` is the error's class for what is not one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and _INTEGER.fullmatch(value.strip()):
        return int(value)
    raise code(
        f"{name}: expected a number but the string didn't have the appropriate format: {str(value)[:50]!r}."
    )
