"""Settings of the broker: one YAML file, every key also as an environment variable.

`LAKEPASS_SERVER__PORT=9000` overrides `server: {port: …}`. A key that is not known is an error that names
it, so that a typing mistake never leaves a default in force unnoticed. A file in the Delta Sharing
reference server's own format is understood as well (`broker/catalog/reference_file.py`).
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from lakepass.broker.catalog.reference_file import FileShare, distinct, from_reference_format
from lakepass.reader.location import Location, longest_match


class ConfigurationError(Exception):
    """The configuration cannot be used; the message names the key and what it should be."""


_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, None: 1}
_SIZE = re.compile(r"\s*(\d+)\s*([KMG]i?B|B)?\s*", re.IGNORECASE)
_BYTES = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_duration(value: object) -> object:
    """`1h`, `15m`, `30s`, `2d` or a number of seconds."""
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if match is None:
            raise ValueError("a duration is a number with s, m, h or d, such as 1h")
        return timedelta(seconds=float(match[1]) * _SECONDS[match[2]])
    return value


def _parse_size(value: object) -> object:
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None:
            raise ValueError("a size is a number with KB, MB or GB, such as 512MB")
        return int(match[1]) * _BYTES[(match[2] or "")[:1].upper()]
    return value


def _parse_storage_location(value: object) -> object:
    return Location.parse(value, allow_root=True) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Size = Annotated[int, BeforeValidator(_parse_size)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(_Section):
    """How the server is reached and what it allows one request."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    prefix: str = "/delta-sharing"
    public_url: str | None = None
    """The address recipients use, written into profile files; the request's own host when absent."""
    url_lifetime: Duration = timedelta(hours=1)
    """How long a pre-signed URL is good for, at most as long as the key that signs it."""
    page_size: int = Field(default=500, ge=1, le=10_000)
    page_token_lifetime: Duration = timedelta(hours=4)
    """How long the next page of a query can be asked for."""
    refresh_token_lifetime: Duration = timedelta(hours=12)
    """How long the URLs of a query can be renewed for the same version."""
    max_body: Size = 1 << 20
    max_headers: Size = 32 << 10
    request_timeout: Duration = timedelta(seconds=30)
    """How long a client may take to send its request's body."""
    send_timeout: Duration = timedelta(seconds=60)
    """How long a client may take nothing of an answer that waits for it, before its connection is cut."""
    shutdown_timeout: Duration = timedelta(seconds=60)
    """How long streams under way may take to finish when the server is told to stop."""
    snapshot_memory: Size = 256 << 20
    """What cached snapshots of tables may hold in memory, all together."""
    reader_threads: int = Field(default=16, ge=1, le=256)
    """Requests that read a table's log at the same time; more wait their turn."""
    cors_origins: tuple[str, ...] = ()
    log_format: str = Field(default="text", pattern="^(text|json)$")
    trusted_proxies: tuple[str, ...] = ()
    """Addresses whose X-Forwarded-For and X-Forwarded-Proto are believed."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*", self.prefix):
            raise ValueError("prefix is a path such as /delta-sharing, without a slash at the end")
        if self.public_url is not None and not re.match(r"https?://[^/\s]+", self.public_url):
            raise ValueError("public_url is an address such as https://share.example.com")
        for proxy in self.trusted_proxies:
            if proxy != "*":
                ipaddress.ip_network(proxy, strict=False)
        if self.url_lifetime > timedelta(days=7):
            raise ValueError("url_lifetime is at most 7d: no cloud signs for longer")
        return self


class AdminSettings(_Section):
    """The admin API; it is off unless a token's hash is configured."""

    token_sha256: str = Field(pattern="^[0-9a-fA-F]{64}$")
    prefix: str = Field(default="/admin", pattern=r"^(/[A-Za-z0-9._~-]+)+$")


class CredentialSettings(_Section):
    """How long vended credentials live."""

    lifetime: Annotated[Duration, Field(ge=timedelta(seconds=1), le=timedelta(hours=12))] = timedelta(hours=1)
    """15 minutes to 12 hours; less only for a store on this machine, where renewal is tried out."""


class AuditSettings(_Section):
    """The audit trail is always in the database; this is what else is done with it."""

    export: Path | None = None
    """A file to which every event is also appended, as one line of JSON."""


class AwsStorage(_Section):
    """S3, or a store that speaks its protocol."""

    role_arn: str | None = None
    """The role to assume with a scoped session policy; without it, `dir` access cannot be given."""
    external_id: str | None = None
    region: str | None = None
    endpoint: str | None = None
    sts_endpoint: str | None = None
    path_style: bool = False
    kms_keys: tuple[str, ...] = ()
    list_bare_prefix: bool = False
    """Also allow listing the directory's name without its slash, which shows the names of its siblings."""
    source_identity: bool = True
    """Tell STS the recipient; the role's trust policy must allow `sts:SetSourceIdentity`."""
    bind_source_ip: bool = True
    """Hold a credential to its recipient's address ranges; off where they reach the store privately."""
    profile: str | None = None
    """The boto3 profile of the broker's own identity at this store."""
    access_key_id: str | None = None
    secret_access_key: SecretStr | None = None
    """The broker's own keys at this store, where it has no identity from its environment."""


class AzureStorage(_Section):
    """Azure Data Lake Storage or Blob Storage."""

    endpoint: str | None = None
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None
    hierarchical_namespace: bool = True
    allow_container_scope: bool = False
    bind_source_ip: bool = True
    """Hold a credential to its recipient's address ranges; off where they reach the store privately."""


class GcpStorage(_Section):
    """Google Cloud Storage."""

    service_account: str | None = None
    """The account to impersonate for reading, and whose key signs URLs."""
    key_file: Path | None = None
    endpoint: str | None = None
    token_endpoint: str | None = None
    iam_endpoint: str | None = None
    bind_source_ip: bool = True
    """Hold a credential to its recipient's address ranges; off where they reach the store privately."""


class StorageEntry(_Section):
    """How the stores below one location are reached."""

    location: Annotated[Location, BeforeValidator(_parse_storage_location)]
    aws: AwsStorage | None = None
    azure: AzureStorage | None = None
    gcp: GcpStorage | None = None

    @model_validator(mode="after")
    def _one_cloud(self) -> Self:
        clouds = [name for name in ("aws", "azure", "gcp") if getattr(self, name) is not None]
        wanted = self.location.cloud
        if wanted is None:
            raise ValueError("a local directory cannot be shared: it has no store that checks a credential")
        if clouds != [wanted]:
            raise ValueError(
                f"{self.location} needs exactly one section, {wanted}; it has {clouds or 'none'}"
            )
        return self


class Settings(BaseSettings):
    """All settings of the broker."""

    model_config = SettingsConfigDict(
        env_prefix="LAKEPASS_", env_nested_delimiter="__", extra="forbid", frozen=True
    )
    names_of_others: ClassVar[frozenset[str]] = frozenset({"LAKEPASS_PROFILE", "LAKEPASS_CONFIG"})

    server: ServerSettings = ServerSettings()
    database: str = "sqlite:///lakepass.db"
    admin: AdminSettings | None = None
    credentials: CredentialSettings = CredentialSettings()
    audit: AuditSettings = AuditSettings()
    storage: tuple[StorageEntry, ...] = ()
    shares: Annotated[tuple[FileShare, ...], AfterValidator(distinct)] = ()
    """Served read-only from the file, beside what the catalog holds."""
    bearer_token_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """From a file in the reference server's format: the token that opens every share of the file."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, whose content arrives as arguments."""
        return env_settings, init_settings

    @classmethod
    def load(cls, path: Path | str | None = None) -> Settings:
        """The settings of a file and the environment; raises `ConfigurationError` naming every wrong key."""
        _check_environment(cls)
        content: dict[str, Any] = {}
        if path is not None:
            content = _read_yaml(Path(path))
        try:
            return cls(**content)
        except ValidationError as error:
            raise ConfigurationError(_explain(error, str(path) if path else "the environment")) from None

    @model_validator(mode="after")
    def _distinct_storage(self) -> Self:
        seen: set[Location] = set()
        for entry in self.storage:
            if entry.location in seen:
                raise ValueError(f"storage names {entry.location} twice")
            seen.add(entry.location)
        if not self.database.startswith(
            ("sqlite:///", "postgresql://", "postgresql+psycopg://", "postgres://")
        ):
            raise ValueError("database is sqlite:///path/to/file.db or postgresql://user@host/name")
        return self

    def storage_for(self, location: Location) -> StorageEntry | None:
        """The storage entry that covers a location most closely."""
        found = longest_match(((entry.location, entry) for entry in self.storage), location)
        return found[1] if found else None


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid YAML: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigurationError(f"{path} should hold keys such as server, database and storage.")
    try:
        return from_reference_format(content)
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _check_environment(settings: type[Settings]) -> None:
    """Refuse a variable whose first part is unknown; pydantic would pass over it in silence."""
    known = {f"LAKEPASS_{name.upper()}": name for name in settings.model_fields}
    for variable in os.environ:
        name = variable.upper()
        root = name.partition("__")[0]
        if not name.startswith("LAKEPASS_") or root in known or name in settings.names_of_others:
            continue
        close = difflib.get_close_matches(root, known, n=1, cutoff=0.8)
        if "__" in name or close:
            hint = f" Did you mean {close[0]}?" if close else f" Known are {', '.join(sorted(known))}."
            raise ConfigurationError(f"The environment variable {variable} is not a setting.{hint}")


def _explain(error: ValidationError, source: str) -> str:
    lines = []
    for problem in error.errors(include_input=False, include_url=False):
        key = ".".join(str(part) for part in problem["loc"]) or "settings"
        message = "is not a known key" if problem["type"] == "extra_forbidden" else problem["msg"]
        lines.append(f"  {key}: {message}")
    return f"The configuration in {source} cannot be used:\n" + "\n".join(lines)
