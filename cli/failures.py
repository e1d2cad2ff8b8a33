"""How a command fails: one line that says what, why and what next, and an exit code for scripts.

| code | meaning |
|---|---|
| 0 | done |
| 1 | the table, the log or the request is wrong |
| 2 | the command was typed wrong |
| 3 | refused: no such share or table, not granted, a token that is wrong or has ended |
| 4 | the server or the store cannot be reached or does not answer |
| 5 | something has to be installed first |
| 130 | interrupted |
"""

from __future__ import annotations

import os
import socket
import sys

from rich.console import Console

from lakepass.reader.errors import (
    AccessRefusedError,
    FileMissingError,
    MissingExtraError,
    SharingError,
    StorageError,
)

FAILED, REFUSED, UNREACHABLE, NOT_INSTALLED, INTERRUPTED = 1, 3, 4, 5, 130
_BUSY = (408, 425, 429)


def report_failure(error: BaseException) -> int:
    """Print `error` to standard error and give the exit code for it."""
    if isinstance(error, BrokenPipeError):
        # The reader of our output has seen enough (`lakepass read … | head`): that is not an error. Standard
        # output is pointed elsewhere so that the interpreter's own flush at exit does not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    message = str(error) or type(error).__name__
    console.print(f"[bold red]error:[/bold red] {_escaped(message)}")
    return exit_code(error)


def exit_code(error: BaseException) -> int:
    """The exit code for `error`, as in the table above."""
    if isinstance(error, MissingExtraError):
        return NOT_INSTALLED
    if isinstance(error, SharingError):
        if error.status in (401, 403, 404):
            return REFUSED
        wrong = error.status is not None and 400 <= error.status < 500 and error.status not in _BUSY
        return FAILED if wrong else UNREACHABLE
    if isinstance(error, AccessRefusedError) or _has_expired(error):
        return REFUSED
    if isinstance(error, FileMissingError):
        return FAILED
    # An error of the operating system is most often about a file here, such as one that is written to.
    if isinstance(error, StorageError | ConnectionError | TimeoutError | socket.gaierror):
        return UNREACHABLE
    return FAILED


def _has_expired(error: BaseException) -> bool:
    # Only now: profiles bring an HTTP client with them, and `lakepass --help` is to be quick.
    from lakepass.reader.sharing.profile import ExpiredProfileError

    return isinstance(error, ExpiredProfileError)


def _escaped(message: str) -> str:
    return message.replace("[", "\\[")
