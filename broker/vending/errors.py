"""Why a credential was not given.

Each error has two texts: the message, which may reach a recipient and so names no cloud account, role or
answer of the cloud, and `detail`, for the provider's log beside the request id. Neither holds a secret.
"""

from __future__ import annotations

from lakepass.reader.secrets import scrub


class VendingError(Exception):
    """A credential was asked for and not given."""

    def __init__(self, message: str, *, detail: str = "") -> None:
        super().__init__(message)
        self.detail = scrub(detail) or message


class ScopeRefused(VendingError):
    """No credential can be limited to this directory, so none is given: a wider one never takes its place."""


class CloudRefused(VendingError):
    """The cloud answered no: the broker's own identity, role or trust is not set up for this location."""


class CloudUnavailable(VendingError):
    """The cloud did not answer, or asked to be left alone for a while; `retry_after` is in seconds."""

    def __init__(self, message: str, *, detail: str = "", retry_after: int = 5) -> None:
        super().__init__(message, detail=detail)
        self.retry_after = retry_after
