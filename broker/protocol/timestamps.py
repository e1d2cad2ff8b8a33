"""Timestamps in requests: ISO 8601 with a time and a zone, such as `2022-01-01T00:00:00Z`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from lakepass.broker.errors import InvalidParameter

_FORM = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def parse_timestamp(name: str, value: object) -> datetime:
    """The moment a request names, to the millisecond; the rest is cut off, as the log's times are."""
    # A plus sign that was not encoded in a URL arrives as a space.
    text = str(value).strip().replace(" ", "+")
    match = _FORM.fullmatch(text) if isinstance(value, str) else None
    if match is not None:
        fraction = int((match[2] or ".0")[1:7].ljust(6, "0"))
        try:
            moment = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
            return moment.astimezone(UTC).replace(microsecond=fraction)
        except (ValueError, OverflowError):
            pass
    raise InvalidParameter(
        f"Invalid {name}: {str(value)[:50]!r}. It has a time and a zone: 2022-01-01T00:00:00Z."
    )
