"""Lines of JSON from commits, compactions and JSON checkpoints, in pieces of bounded size.

Commits are newline-delimited JSON, one action per line, and may be large. They are read in pieces that end at
a line's end, so that memory depends on neither the size of a commit nor on what it claims; one line alone
must fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from lakepass.reader.errors import CorruptTableError
from lakepass.reader.storage import FileStatus, Storage

PIECE = 32 << 20
MAX_LINE = 64 << 20
"""The longest action that is read: a schema or statistics of thousands of columns stay far below."""
_BOM = b"\xef\xbb\xbf"


def pieces(storage: Storage, status: FileStatus, content: bytes | None = None) -> Iterator[bytes]:
    """The file's bytes, cut at line ends, with memory for one piece and one line."""
    if content is not None:
        yield content
        return
    if status.size <= PIECE:
        # The listing may be older than the file; asking for all of it is one request either way.
        yield storage.read(status.path, limit=MAX_LINE)
        return
    rest = b""
    offset = 0
    while offset < status.size:
        data = storage.read(status.path, offset=offset, length=min(PIECE, status.size - offset), limit=PIECE)
        if not data:
            break
        offset += len(data)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest = data[cut:]
        else:
            rest += data
        if len(rest) > MAX_LINE:
            raise CorruptTableError(
                f"{status.path} holds a line of more than {MAX_LINE} bytes. No action is that long: the file"
                " is damaged or made to exhaust its reader."
            )
    if rest:
        yield rest


def actions(data: bytes, where: str) -> Iterator[dict[str, Any]]:
    """Each line as a dictionary, checked: the careful way to read, for the few actions that are not files."""
    for number, line in enumerate(_lines(data), start=1):
        try:
            action = orjson.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorruptTableError(
                f"{where}, line {number} of a piece, is not JSON ({_reason(error)}). The file was cut off or "
                "damaged; restore it, or read a version before it."
            ) from None
        if not isinstance(action, dict):
            raise CorruptTableError(
                f"{where}, line {number} of a piece, is not an action: a JSON object is wanted. The file is"
                " damaged."
            )
        yield action


def _lines(data: bytes) -> Iterable[bytes]:
    for line in data.removeprefix(_BOM).split(b"\n"):
        stripped = line.strip()
        if stripped:
            yield stripped


def _reason(error: BaseException) -> str:
    return str(error).split(":", 1)[0][:100]
