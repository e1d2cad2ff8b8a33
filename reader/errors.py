"""Errors of the reader. Each message says what was asked, why it cannot be, and what to do next.

No message ever holds a secret: storage and sharing code scrubs what it quotes (`lakepass.reader.secrets`).
"""

from __future__ import annotations


class DeltaError(Exception):
    """Anything that keeps a table from being read correctly. Catch this one to catch them all.

    >>> from lakepass.reader import Table
    >>> try:
    ...     Table("/no/such/table").snapshot()
    ... except DeltaError as error:
    ...     print(type(error).__name__)
    NotATableError
    """


class NotATableError(DeltaError):
    """There is no Delta log at the location."""


class CorruptTableError(DeltaError):
    """The log, a checkpoint, a deletion vector or a data file contradicts the protocol."""


class UnsupportedTableError(DeltaError):
    """The table needs a reader version or features that are not supported; `features` names them."""

    def __init__(self, message: str, features: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.features = features


class VersionNotFoundError(DeltaError):
    """The version or timestamp asked for lies outside what the log still holds."""


class PathRefusedError(DeltaError):
    """The log names a file outside the table's root and its declared auxiliary locations."""


class FilterError(DeltaError):
    """A filter or a column list cannot be understood or does not fit the table's schema."""


class StorageError(DeltaError):
    """The store did not give what was asked: missing, refused, throttled or out of reach."""


class FileMissingError(StorageError):
    """A file that the log names is not in the store."""


class AccessRefusedError(StorageError):
    """The store refused the credential (expired, or not for this path)."""


class SharingError(DeltaError):
    """A Delta Sharing server refused or broke off a request; `status` and `code` tell how."""

    def __init__(self, message: str, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class MissingExtraError(DeltaError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs an optional dependency. Install it with: pip install 'lakepass[{extra}]'"
        )
        self.extra = extra
