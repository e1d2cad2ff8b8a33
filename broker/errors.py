"""What a request is answered with when it cannot be carried out: a status, a code and a sentence.

The body is always `{"errorCode", "message"}`. No message shows a stack trace, a secret, or where a table
lies in storage: a recipient with `url` access only has no need to know it.
"""

from __future__ import annotations

from collections.abc import Mapping


class RequestError(Exception):
    """A request that is refused; subclasses give the status and the code."""

    status = 400
    code = "INVALID_PARAMETER_VALUE"

    def __init__(self, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.headers = dict(headers or {})


class InvalidParameter(RequestError):
    """A parameter has a value that cannot be served."""


class MalformedRequest(RequestError):
    """The request is not in the form that the protocol asks for."""

    code = "MALFORMED_REQUEST"


class UnsupportedOperation(RequestError):
    """The table cannot be served in the way that was asked."""

    code = "UNSUPPORTED_OPERATION"


class Unauthenticated(RequestError):
    """The bearer token is missing or not valid."""

    status = 401
    code = "UNAUTHENTICATED"

    def __init__(self, message: str) -> None:
        super().__init__(message, {"WWW-Authenticate": "Bearer"})


class Forbidden(RequestError):
    """The caller is known but may not do this."""

    status = 403
    code = "PERMISSION_DENIED"


class NotFound(RequestError):
    """The thing does not exist, or is not shared with the caller: the answer is the same."""

    status = 404
    code = "RESOURCE_DOES_NOT_EXIST"


class Conflict(RequestError):
    """A thing of that name exists already, or something still depends on it."""

    status = 409
    code = "RESOURCE_CONFLICT"


class TooLarge(RequestError):
    """The body is larger than the server takes."""

    status = 413
    code = "REQUEST_TOO_LARGE"


class UnsupportedMediaType(RequestError):
    """The body is not JSON."""

    status = 415
    code = "UNSUPPORTED_MEDIA_TYPE"


class TableDamaged(RequestError):
    """The table itself is broken: no other request would fare better."""

    status = 500
    code = "TABLE_DAMAGED"


class StorageFailed(RequestError):
    """The store behind the table refused or failed the broker."""

    status = 502
    code = "STORAGE_ERROR"


class StorageUnavailable(RequestError):
    """The store is slow, throttling or out of reach; the same request may work later."""

    status = 503
    code = "TEMPORARILY_UNAVAILABLE"

    def __init__(self, message: str, retry_after: int = 5) -> None:
        super().__init__(message, {"Retry-After": str(retry_after)})
