"""An answer about a table: the version it starts from, its format, and its lines as a stream of chunks.

Lines are made as they are sent. What goes wrong before the first chunk becomes an error status; what goes
wrong later ends the stream with an `endStreamAction` that says so.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from lakepass.broker.catalog.lookups import TableRow
from lakepass.broker.errors import RequestError
from lakepass.broker.protocol.capabilities import Capabilities, Format
from lakepass.broker.protocol.state_lines import end_line
from lakepass.broker.tables.failures import EXPECTED, translated

logger = logging.getLogger("lakepass.broker")

FILES_AT_ONCE = 1000
"""Files whose lines are made together: large enough for Arrow, small enough to hold."""


@dataclass
class Answer:
    """What is sent for one request."""

    table: TableRow
    version: int | None
    form: Format
    capabilities: Capabilities
    chunks: Iterator[bytes]
    _making: threading.Lock = field(default_factory=threading.Lock)

    def first(self) -> bytes | None:
        """The first chunk; an error here is raised, as what the request is refused with."""
        try:
            return next(self.chunks, None)
        except EXPECTED as error:
            raise translated(error, self.table) from error

    def next(self) -> bytes | None:
        """A later chunk; an error becomes the stream's last line."""
        with self._making:
            try:
                return next(self.chunks, None)
            except Exception as error:
                if isinstance(error, (RequestError, *EXPECTED)):
                    message = translated(error, self.table).message
                else:
                    logger.exception("the stream for %s broke", self.table.full_name)
                    message = f"The server failed while it sent '{self.table.full_name}'."
                self.chunks = iter(())
                return end_line(error=message)

    def close(self) -> None:
        """Stop making lines, when the client has gone.

        Waits for the chunk under way, and for what is being read ahead: not for the event loop.
        """
        with self._making:
            close = getattr(self.chunks, "close", None)
            self.chunks = iter(())
            if close is not None:
                close()
