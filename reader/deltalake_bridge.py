"""The deltalake package on our credentials: its storage options, and a `DeltaTable` where it reads rightly.

S3: where the server says that it answers for them (`lakepass.renewal.awsContainerCredentials`), deltalake
fetches and renews the keys itself, with the profile's token from a private file; static keys otherwise,
which end. Azure: a SAS, which ends. Cloud Storage: refused, since deltalake's store ignores a token in
silence and would use the machine's own identity. Tables whose rows deltalake gets wrong are refused too.

deltalake's stores also look at the environment, and some of its variables go before what they are given. Keys
of the machine never stand in for vended ones: what can be said against a variable is said, and where nothing
helps, another form is used or the table refused.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lakepass.reader.credentials import AwsKeys, AzureSas, Credential
from lakepass.reader.errors import MissingExtraError, UnsupportedTableError
from lakepass.reader.location import Location

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from lakepass.reader.log.actions import Metadata, Protocol

log = logging.getLogger("lakepass.deltalake")

_SECRETS = ("key_id", "access_key", "token", "sas")
_BEFORE_AWS_RENEWAL = (
    "access_key_id",
    "web_identity_token_file",
    "container_credentials_relative_uri",
)
"""What object_store takes before container credentials, as variables with or without AWS_ before them."""
_BEFORE_SAS = ("storage_account_key", "storage_access_key", "storage_master_key", "account_key", "access_key")
"""What object_store takes before a SAS."""


class StorageOptions(dict[str, str]):
    """Options for deltalake, whose secrets do not show; `expires_at` is when they end, None if they renew."""

    expires_at: datetime | None = None

    def __repr__(self) -> str:
        shown = {name: "…" if name.endswith(_SECRETS) else value for name, value in self.items()}
        return f"StorageOptions({shown}, expires_at={self.expires_at})"

    __str__ = __repr__


def ambient_options(location: Location) -> StorageOptions:
    """For a table opened without credentials: none, so that deltalake too uses the machine's own identity."""
    if location.scheme == "gs":
        log.info("deltalake reads %s with the machine's own Google identity, as this reader does", location)
    return StorageOptions()


def static_options(location: Location, credential: Credential) -> StorageOptions:
    """Options that hold the keys themselves, and say when they end."""
    keys, store = credential.keys, credential.store
    if isinstance(keys, AwsKeys):
        options = s3_options(credential)
        options["aws_access_key_id"] = keys.access_key_id
        options["aws_secret_access_key"] = keys.secret_access_key
        if keys.session_token:
            options["aws_session_token"] = keys.session_token
        elif named := _in_environment("aws_", ("session_token", "token")):
            raise _taken_over(location, named)
    elif isinstance(keys, AzureSas):
        if named := _in_environment("azure_", _BEFORE_SAS):
            raise _taken_over(location, named)
        options = StorageOptions(
            azure_storage_account_name=location.account,
            azure_storage_sas_token=keys.sas_token,
            azure_skip_signature="false",
            azure_storage_use_emulator="false",
        )
        if store.endpoint:
            options["azure_storage_endpoint"] = store.endpoint
            if store.endpoint.startswith("http://"):
                options["azure_allow_http"] = "true"
    else:
        raise UnsupportedTableError(
            f"deltalake cannot read {location} with a vended token: its store ignores the token in silence "
            "and uses the machine's own Google identity instead. Read the table with lakepass (to_arrow, "
            "polars, duckdb)."
        )
    options.expires_at = credential.expires_at
    if credential.expires_at is not None:
        log.warning("the storage options for %s end at %s", location, credential.expires_at.isoformat())
    return options


def can_renew(location: Location) -> bool:
    """Whether deltalake would take keys that it renews, and not the machine's own instead."""
    named = _in_environment("aws_", _BEFORE_AWS_RENEWAL)
    if named:
        log.warning(
            "deltalake gets keys for %s that end: because of %s in the environment it would not use those"
            " that it can renew",
            location,
            named,
        )
    return named is None


def _in_environment(prefix: str, keys: Sequence[str]) -> str | None:
    """The first variable that deltalake's store would read as one of the keys; it does not mind the case."""
    known = {each for key in keys for each in (key, prefix + key)}
    return next((name for name, value in os.environ.items() if value and name.lower() in known), None)


def _taken_over(location: Location, variable: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"deltalake cannot read {location} with the vended credential: it would use {variable} from the "
        "environment instead, which is this machine's own identity. Unset it, or read the table with "
        "lakepass (to_arrow, polars, duckdb)."
    )


def renewing_options(credential: Credential, address: str, authorization: str) -> StorageOptions:
    """Options with which deltalake asks `address` for keys, again before they end."""
    options = s3_options(credential)
    options["aws_container_credentials_full_uri"] = address
    options["aws_container_authorization_token_file"] = str(_tokens.file(address, authorization))
    return options


def s3_options(credential: Credential) -> StorageOptions:
    """Where the store is."""
    store = credential.store
    options = StorageOptions(aws_region=store.region or "us-east-1", aws_skip_signature="false")
    if store.endpoint:
        options["aws_endpoint"] = options["aws_endpoint_url_s3"] = store.endpoint
        options["aws_virtual_hosted_style_request"] = "false"
        if store.endpoint.startswith("http://"):
            options["aws_allow_http"] = "true"
    elif store.path_style:
        options["aws_virtual_hosted_style_request"] = "false"
    return options


def open_with_deltalake(
    location: Location,
    options: Mapping[str, str],
    protocol: Protocol,
    metadata: Metadata,
    *,
    query_builder: bool = False,
    version: int | None = None,
) -> DeltaTable:
    """A `DeltaTable`, unless deltalake would read the table wrongly without saying so."""
    mapping = metadata.configuration.get("delta.columnMapping.mode", "none").lower()
    if mapping != "none" and protocol.min_reader_version == 2 and not query_builder:
        raise UnsupportedTableError(
            f"{location} maps its columns ({mapping}), and deltalake's to_pyarrow_table and to_pandas give "
            "NULLs for them without an error. Read it with lakepass (to_arrow, polars, duckdb); or, if you "
            "will only use deltalake's QueryBuilder, which reads it rightly, say "
            "deltalake(query_builder=True).",
            ("columnMapping",),
        )
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise MissingExtraError("deltalake", "table.deltalake()") from None
    text = f"/{location.path}" if location.scheme == "file" else str(location)
    return DeltaTable(text, version=version, storage_options=dict(options) or None)


class _TokenFiles:
    """Files with what deltalake sends as Authorization: readable by their owner alone, gone with the
    process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._files: dict[tuple[str, str], Path] = {}

    def file(self, address: str, authorization: str) -> Path:
        """The file that holds `authorization`."""
        with self._lock:
            if self._folder is None:
                # mkdtemp makes a directory that nobody else may enter.
                self._folder = Path(tempfile.mkdtemp(prefix="lakepass-"))
                atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
            key = (address, authorization)
            found = self._files.get(key)
            if found is None:
                found = self._folder / f"authorization-{len(self._files)}"
                found.touch(mode=0o600, exist_ok=False)
                found.write_text(authorization)
                self._files[key] = found
            return found


_tokens = _TokenFiles()
