"""Keeping secrets out of what is shown: every text quoted from a store, a server or a library passes here.

Libraries put whole signed addresses, SAS tokens and authorization headers into their errors. `scrub` takes
out the query of any address, and whatever has the shape of a signature, token or key.
"""

from __future__ import annotations

import logging
import re
from urllib.parse import urlsplit

HIDDEN = "…"
_STORED = ("s3://", "abfss://", "gs://", "file:")
"""Paths of tables, which hold no secrets and may have any character in them."""

_ADDRESS_QUERY = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?#\"'<>]+)\?[^\s\"'<>]+", re.IGNORECASE)
_ADDRESS_USER = re.compile(r"(\bhttps?://)[^\s/@\"'<>]+@", re.IGNORECASE)
_AUTHORIZATION = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{4,}", re.IGNORECASE)
_PAIR = re.compile(
    r"\b(sig|signature|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature|x-goog-credential|"
    r"(?:access|secret)[_-]?(?:access[_-]?)?key(?:[_-]?id)?|(?:session|oauth|sas|bearer|refresh|access)[_-]?token|"
    r"client[_-]?secret|password)"
    r"(\"?'?\s*[=:]\s*\"?'?)[^\s&\"',;<>}]+",
    re.IGNORECASE,
)


def scrub(text: str, *secrets: str) -> str:
    """`text` without `secrets` and without anything that looks like one.

    >>> scrub("GET https://b.s3.amazonaws.com/k?X-Amz-Signature=abc failed")
    'GET https://b.s3.amazonaws.com/k?… failed'
    """
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _ADDRESS_QUERY.sub(rf"\1?{HIDDEN}", text)
    text = _ADDRESS_USER.sub(rf"\1{HIDDEN}@", text)
    text = _AUTHORIZATION.sub(rf"\1 {HIDDEN}", text)
    return _PAIR.sub(rf"\1\2{HIDDEN}", text)


def shown_address(address: str) -> str:
    """An address without user, query and fragment.

    >>> shown_address("https://u:p@host/path?sig=1#2")
    'https://host/path'
    """
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def shown_path(path: str) -> str:
    """A file's path for a message: a signed address without what it is signed with.

    >>> shown_path("https://host/part 1.parquet?sig=1#id"), shown_path("s3://bucket/day=?/part.parquet")
    ('https://host/part 1.parquet', 's3://bucket/day=?/part.parquet')
    """
    stored = "://" not in path or path.startswith(_STORED)
    return path if stored else shown_address(path)


class _ScrubbedAddresses(logging.Filter):
    """httpx logs the address of every request, which for a signed one is a secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always lets the record through, without queries."""
        if isinstance(record.args, tuple):
            record.args = tuple(
                shown_address(str(value)) if "://" in str(value) else value for value in record.args
            )
        return True


def scrub_http_log() -> None:
    """From now on, what httpx logs shows addresses without their queries."""
    logger = logging.getLogger("httpx")
    if not any(isinstance(one, _ScrubbedAddresses) for one in logger.filters):
        logger.addFilter(_ScrubbedAddresses())
