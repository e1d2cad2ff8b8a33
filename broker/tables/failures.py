"""What a failure behind a table is answered with.

The reader's and the clouds' own messages name stores and paths, which a recipient has no need to know: they
go to the log beside the request id, and the recipient gets a sentence of ours.
"""

from __future__ import annotations

import logging

from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.config import ConfigurationError
from lakepass.broker.errors import (
    InvalidParameter,
    NotFound,
    RequestError,
    StorageFailed,
    StorageUnavailable,
    TableDamaged,
    UnsupportedOperation,
)
from lakepass.broker.vending.errors import CloudUnavailable, VendingError
from lakepass.reader.errors import (
    AccessRefusedError,
    CorruptTableError,
    DeltaError,
    FileMissingError,
    MissingExtraError,
    NotATableError,
    PathRefusedError,
    StorageError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakepass.reader.secrets import scrub

logger = logging.getLogger("lakepass.broker")

EXPECTED = (DeltaError, VendingError, ConfigurationError)
"""What reading a table may raise."""


def translated(error: Exception, table: TableRow) -> RequestError:
    """The refusal that stands for an error behind `table`; the error itself goes to the log."""
    name = table.full_name
    if isinstance(error, RequestError):
        return error
    detail = error.detail if isinstance(error, VendingError) else str(error)
    logger.warning("%s: %s: %s", name, type(error).__name__, scrub(detail))
    match error:
        case VersionNotFoundError():
            return InvalidParameter(f"The log of '{name}' does not hold the versions or times asked for.")
        case UnsupportedTableError():
            features = f" ({', '.join(error.features)})" if error.features else ""
            return UnsupportedOperation(f"'{name}' uses features that this server cannot read{features}.")
        case PathRefusedError():
            return UnsupportedOperation(
                f"'{name}' has files outside the locations that it is shared with. The provider has to "
                "add them."
            )
        case NotATableError():
            return NotFound(f"The data of '{name}' is not there. Tell the provider.")
        case CorruptTableError():
            return TableDamaged(f"The log of '{name}' is damaged. Tell the provider.")
        case AccessRefusedError():
            return StorageFailed(f"The store of '{name}' refused the server. Tell the provider.")
        case FileMissingError():
            return StorageFailed(f"A file that '{name}' needs is missing in its store. Tell the provider.")
        case CloudUnavailable():
            return StorageUnavailable(f"The cloud of '{name}' does not answer. Try again.", error.retry_after)
        case StorageError():
            return StorageUnavailable(f"The store of '{name}' does not answer as it should. Try again.")
        case VendingError() | ConfigurationError() | MissingExtraError():
            return StorageFailed(f"The server is not set up to reach '{name}'. Tell the provider.")
        case _:
            return TableDamaged(f"'{name}' cannot be read. Tell the provider.")
