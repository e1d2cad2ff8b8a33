"""Tables on S3, ADLS Gen2 and Google Cloud Storage, through obstore.

obstore lists with a start, takes a credential provider on all three clouds, and retries throttling and
dropped connections with backoff. What it does not do is done here: a refused credential is renewed once and
the request made once more; errors name store, path and operation, and nothing that a request was signed with.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import obstore
import pyarrow as pa
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from lakepass.reader.credentials import (
    AwsKeys,
    AzureSas,
    Credential,
    CredentialProvider,
    GcpToken,
    Renewing,
    StoreSettings,
)
from lakepass.reader.errors import AccessRefusedError, DeltaError, FileMissingError, StorageError
from lakepass.reader.location import Location
from lakepass.reader.secrets import scrub
from lakepass.reader.storage.interface import DEFAULT_LIMIT, FileStatus, TooLargeError
from lakepass.reader.storage.ranged import ranged

_RETRIES: Any = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=10), "base": 2},
}
_STATUS = re.compile(r"status code: (\d{3})(?: ([A-Za-z ]+))?")
_CODE = re.compile(r"<Code>([A-Za-z]+)</Code>|\"code\":\s*\"?(\w+)")
_REFUSALS = re.compile(
    r"ExpiredToken|InvalidToken|TokenRefreshRequired|InvalidAccessKeyId|SignatureDoesNotMatch|AuthenticationFailed|"
    r"AccessDenied|RequestTimeTooSkewed"
)
_T = TypeVar("_T")


class ObjectStorage:
    """The objects below one location, with one credential."""

    def __init__(self, location: Location, credentials: CredentialProvider | None = None) -> None:
        self.location = location
        self._credentials = credentials if isinstance(credentials, Renewing | None) else Renewing(credentials)
        self._lock = threading.Lock()
        self._opened: Any = None

    def __repr__(self) -> str:
        return f"ObjectStorage({self.location})"

    def __reduce__(self) -> tuple[type[ObjectStorage], tuple[Location, CredentialProvider | None]]:
        return ObjectStorage, (self.location, self._credentials)

    def list(self, directory: str, start_after: str = "") -> Iterator[FileStatus]:
        """The objects directly below a directory after a name, in order, page by page."""
        prefix = self._key(directory.rstrip("/"))
        offset = f"{prefix}/{start_after}" if start_after else None
        pages = self._call(
            "list", directory, lambda store: self._first_page(obstore.list(store, prefix, offset=offset))
        )
        page, stream = pages
        cut = len(prefix) + 1
        while page is not None:
            for entry in page:
                key = entry["path"]
                if "/" not in key[cut:]:
                    modified = entry["last_modified"].timestamp() * 1000
                    yield FileStatus(f"{self._base}{key}", entry["size"], int(modified))
            page = self._call("list", directory, lambda _store: next(stream, None))

    @staticmethod
    def _first_page(stream: Any) -> tuple[Any, Any]:
        return next(stream, None), stream

    def read(
        self, path: str, *, offset: int = 0, length: int | None = None, limit: int = DEFAULT_LIMIT
    ) -> bytes:
        """Bytes of an object."""
        key = self._key(path)
        if length is not None:
            if length > limit:
                raise TooLargeError(path, length, limit)
            return bytes(self._range(path, key, offset, length)) if length else b""

        def whole(store: Any) -> bytes:
            answer = obstore.get(store, key)
            size = answer.meta["size"]
            if size - offset > limit:
                raise TooLargeError(path, size, limit)
            return bytes(answer.bytes())[offset:]

        return self._call("read", path, whole)

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """The object for ranged reads."""
        key = self._key(path)
        if size is None:
            size = self._call("read", path, lambda store: obstore.head(store, key)["size"])
        return ranged(path, size, lambda offset, length: self._range(path, key, offset, length))

    def _range(self, path: str, key: str, offset: int, length: int) -> bytes:
        return self._call(
            "read", path, lambda store: bytes(obstore.get_range(store, key, start=offset, length=length))
        )

    @property
    def _base(self) -> str:
        return f"{self.location.scheme}://{self.location.authority}/"

    def _key(self, path: str) -> str:
        return path.removeprefix(self._base)

    def _call(self, operation: str, path: str, request: Callable[[Any], _T]) -> _T:
        _check_process(operation, path)
        store, credential = self._store()
        try:
            return request(store)
        except DeltaError:
            raise
        except (BaseError, OSError, ValueError) as error:
            refused = _is_refusal(error)
            if not refused or self._credentials is None or credential is None:
                raise self._failed(operation, path, error) from None
            if not self._credentials.refused(credential):
                raise self._failed(operation, path, error) from None
        self._opened = None
        store, _ = self._store()
        try:
            return request(store)
        except DeltaError:
            raise
        except (BaseError, OSError, ValueError) as error:
            raise self._failed(operation, path, error) from None

    def _store(self) -> tuple[Any, Credential | None]:
        """The store, and the credential that it uses now."""
        credential = self._credentials() if self._credentials else None
        with self._lock:
            if self._opened is None:
                self._opened = _open(self.location, credential, self._credentials)
            return self._opened, credential

    def _failed(self, operation: str, path: str, error: Exception) -> StorageError:
        text = str(error)
        shown = path if len(path) < 500 else path[:500] + "…"
        if isinstance(error, FileNotFoundError):
            return FileMissingError(
                f"Cannot {operation} {shown}: there is no such object. If the log names it, it was deleted"
                " (vacuum) or moved; read a newer version or restore the file."
            )
        reason = _reason(text)
        if _is_refusal(error):
            return AccessRefusedError(
                f"Cannot {operation} {shown}: the store refused the credential ({reason}). It may have ended,"
                " or not be for this path."
            )
        return StorageError(
            f"Cannot {operation} {shown}: {reason}. The request was retried where that could help."
        )


_process: int | None = None
"""The process that first used obstore. Its threads are not in a forked child, where requests never end."""


def _check_process(operation: str, path: str) -> None:
    global _process  # noqa: PLW0603 # a fact about the process
    if _process is None:
        _process = os.getpid()
    elif _process != os.getpid():
        raise StorageError(
            f"Cannot {operation} {path}: this process was forked from one that had already read from an"
            " object store, and its requests would hang. Use the start method 'spawn' or 'forkserver':"
            " multiprocessing.get_context('spawn'), ProcessPoolExecutor(mp_context=...)."
        )


def _open(location: Location, credential: Credential | None, renewing: Renewing | None) -> Any:
    """The store of a location; it asks for the credential again by itself as that comes near its end."""
    settings = credential.store if credential else StoreSettings()
    endpoint = settings.endpoint
    client: dict[str, Any] = {"timeout": timedelta(seconds=120), "connect_timeout": timedelta(seconds=10)}
    if endpoint and endpoint.startswith("http://"):
        client["allow_http"] = True
    options: dict[str, Any] = {"client_options": client, "retry_config": _RETRIES}
    if renewing is not None:
        # The environment may speak for the machine's own identity, never for a credential that was given.
        options |= {"credential_provider": _Provider(location, renewing), "skip_signature": False}
    if location.scheme == "s3":
        if settings.region:
            options["region"] = settings.region
        if endpoint:
            options["endpoint"] = endpoint
            if os.environ.get("AWS_ENDPOINT_URL_S3"):  # which goes before the one that was given
                options["config"] = {"aws_endpoint_url_s3": endpoint}
        # A bucket with dots has no certificate of its own; an endpoint is named without the bucket.
        virtual = not (endpoint or "." in location.bucket or settings.path_style)
        return S3Store(location.bucket, virtual_hosted_style_request=virtual, **options)
    if location.scheme == "abfss":
        host = location.account_host.replace(".dfs.", ".blob.", 1)
        options |= {"account_name": location.account, "endpoint": endpoint or f"https://{host}"}
        return AzureStore(location.bucket, **options)
    if endpoint:
        options["base_url"] = endpoint
    return GCSStore(location.bucket, **options)


class _Provider:
    """A credential in the words of obstore."""

    def __init__(self, location: Location, renewing: Renewing) -> None:
        self._location = location
        self._renewing = renewing

    def __call__(self) -> dict[str, Any]:
        credential = self._renewing()
        keys = credential.keys
        if self._location.scheme == "s3" and isinstance(keys, AwsKeys):
            answer = {
                "access_key_id": keys.access_key_id,
                "secret_access_key": keys.secret_access_key,
                "token": keys.session_token,
            }
        elif self._location.scheme == "abfss" and isinstance(keys, AzureSas):
            answer = {"sas_token": keys.sas_token.removeprefix("?")}
        elif self._location.scheme == "gs" and isinstance(keys, GcpToken):
            answer = {"token": keys.oauth_token}
        else:
            raise _mismatch(self._location, keys)
        return {**answer, "expires_at": credential.expires_at}


def _mismatch(location: Location, keys: object) -> AccessRefusedError:
    return AccessRefusedError(
        f"The credential for {location} is of another cloud ({type(keys).__name__}). The provider that was"
        " given for this location answers for a different store."
    )


def _is_refusal(error: Exception) -> bool:
    text = str(error)
    if isinstance(error, FileNotFoundError):
        return False
    status = _STATUS.search(text)
    code = _CODE.search(text)
    return bool(
        (status and status[1] in ("401", "403")) or (code and _REFUSALS.fullmatch(code[1] or code[2] or ""))
    )


def _reason(text: str) -> str:
    status, code = _STATUS.search(text), _CODE.search(text)
    parts = [f"status {status[1]}"] if status else []
    if code:
        parts.append(code[1] or code[2])
    # Without an answer from the store, the library's first words tell what happened on the way.
    return ", ".join(parts) or scrub(text.split("\n", 1)[0])[:300]
