"""Numbers of an answer that came as text.

The protocol's Long fields are JSON numbers, but the JSON that protobuf makes holds 64-bit numbers as
strings, and other servers write 10 as 10.0. Both say clearly what is meant, so both are taken. Fields are
told by name; what a table's owner writes (partition values, properties) is text and stays so.
"""

from __future__ import annotations

import re
from typing import Any

_NUMBERS = frozenset(
    {
        "baseRowId", "cardinality", "createdTime", "defaultRowCommitVersion", "deletionTimestamp",
        "expirationTime", "expirationTimestamp", "minReaderVersion", "minUrlExpirationTimestamp",
        "minWriterVersion", "modificationTime", "numFiles", "offset", "size", "sizeInBytes", "timestamp",
        "version",
    }
)  # fmt: skip
_TEXTS = frozenset({"configuration", "options", "partitionValues", "tags"})
_WHOLE = re.compile(r"-?[0-9]{1,19}")


def with_numbers(value: Any) -> Any:
    """`value`, a decoded action, with its number fields as numbers.

    >>> with_numbers({"file": {"size": "10", "partitionValues": {"size": "10"}}})
    {'file': {'size': 10, 'partitionValues': {'size': '10'}}}
    """
    if not isinstance(value, dict):
        return value
    return {
        name: _number(one) if name in _NUMBERS else one if name in _TEXTS else with_numbers(one)
        for name, one in value.items()
    }


def _number(value: Any) -> Any:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
