"""Names of shares, schemas, tables and recipients.

The specification's section "Names": at most 255 characters, no space, slash or control character, and no
period in schema and table names. They are compared without regard to case, through `name_key`.
"""

from __future__ import annotations

import re
import unicodedata

_FORBIDDEN = re.compile(r"[\s/\x00-\x1f\x7f]")


def check_name(name: str, *, dots: bool = False) -> str:
    """The name itself; raises ValueError saying what is wrong with it."""
    if not name:
        raise ValueError("a name is needed")
    if len(name) > 255:
        raise ValueError(f"the name has {len(name)} characters; at most 255 are allowed")
    if _FORBIDDEN.search(name):
        raise ValueError(f"the name {name!r} holds a space, a slash or a control character")
    if not dots and "." in name:
        raise ValueError(f"the name {name!r} holds a period, which only share names may")
    return name


def name_key(name: str) -> str:
    """What a name is looked up by: equal for names that differ only in case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
