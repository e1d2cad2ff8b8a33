"""Profiles: where a sharing server is and how a recipient proves who they are.

The file format is the protocol's "Profile File Format": version 1 holds a bearer token, version 2 may hold
OAuth client credentials. A profile is read from a path, an https address, a dict, or what
`LAKEPASS_PROFILE` names. It pickles as a reference (the path or address), never as a secret: see
`Profile.__reduce__`.
"""

from __future__ import annotations

import os
import stat
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import httpx
import orjson

from lakepass.reader.errors import DeltaError
from lakepass.reader.secrets import shown_address

VARIABLE = "LAKEPASS_PROFILE"
ProfileSource = str | os.PathLike[str] | Mapping[str, Any]

_MAX_BYTES = 1 << 20
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class ProfileError(DeltaError, ValueError):
    """The profile cannot be used: missing, malformed, of an unknown version, or expired."""


class ExpiredProfileError(ProfileError):
    """The profile's time is over: the provider has to give another."""


class ProfileWarning(UserWarning):
    """The profile works, but is kept or used in a way that may give its secret away."""


@dataclass(frozen=True)
class OAuthClient:
    """OAuth client credentials (RFC 6749, section 4.4)."""

    token_endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None


@dataclass(frozen=True)
class Profile:
    """What a recipient was given by a provider.

    >>> Profile.load({"shareCredentialsVersion": 1, "endpoint": "https://e.com/api/", "bearerToken": "t"})
    Profile(endpoint='https://e.com/api', expires_at=None)
    """

    endpoint: str
    bearer_token: str | None = field(default=None, repr=False)
    oauth: OAuthClient | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    reference: str | None = field(default=None, repr=False, compare=False)
    """The path or address it came from; None for a dict, or an address that is itself a secret."""
    key: str = field(default_factory=lambda: uuid.uuid4().hex, repr=False, compare=False)

    @classmethod
    def load(cls, source: ProfileSource | Profile | None = None) -> Profile:
        """The profile at a path or https address, in a dict, or named by `LAKEPASS_PROFILE`."""
        if isinstance(source, Profile):
            return source
        if source is None:
            source = os.environ.get(VARIABLE)
            if not source:
                raise ProfileError(
                    f"No profile was given. Name one (a path, an https address or a dict) or set {VARIABLE}."
                )
        if isinstance(source, Mapping):
            return _parse(source, "the given profile", None)
        text = os.fspath(source)
        if text.lower().startswith(("https://", "http://")):
            return _parse(_decode(_fetch(text), shown_address(text)), shown_address(text), _portable(text))
        path = Path(text).expanduser().absolute()
        return _parse(_decode(_read(path), str(path)), str(path), str(path))

    @property
    def origin(self) -> tuple[str, str, int | None]:
        """Scheme, host and port: the only place the token is ever sent to."""
        return origin(self.endpoint)

    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be shown."""
        found = [self.bearer_token, self.oauth.client_secret if self.oauth else None]
        return tuple(text for text in found if text)

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle carries where the profile is found, never what it holds."""
        _known[self.key] = self
        return _restore, (self.key, self.reference, self.endpoint)


# By key, so that a profile from a dict survives a pickle that stays in this process or goes to its forks.
_known: WeakValueDictionary[str, Profile] = WeakValueDictionary()


def _restore(key: str, reference: str | None, endpoint: str) -> Profile:
    known = _known.get(key)
    if known is not None:
        return known
    if reference is not None and (reference.startswith("https://") or Path(reference).exists()):
        return Profile.load(reference)
    if os.environ.get(VARIABLE):
        named = Profile.load()
        if named.endpoint == endpoint:
            return named
    where = (
        f"{reference} does not exist here"
        if reference
        else "it was given as a dict, whose secret does not travel"
    )
    raise ProfileError(
        f"The profile for {endpoint} cannot be found in this process: {where}. Put the profile file at the "
        f"same path on every machine, or set {VARIABLE} there."
    )


def origin(address: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address, with the scheme's own port filled in."""
    parts = urlsplit(address)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme.lower())
    return parts.scheme.lower(), (parts.hostname or "").lower(), port


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise ProfileError(f"There is no profile at {path}. Check the path, or set {VARIABLE}.") from None
    except OSError as error:
        raise ProfileError(f"The profile {path} cannot be read: {error.strerror}.") from None
    if os.name == "posix" and mode & stat.S_IROTH:
        warnings.warn(
            f"The profile {path} holds a secret and every user of this machine can read it: chmod 600 {path}",
            ProfileWarning,
            stacklevel=4,
        )
    return data


def _fetch(address: str) -> bytes:
    parts = urlsplit(address)
    if parts.scheme.lower() != "https" and (parts.hostname or "") not in _LOOPBACK:
        raise ProfileError(f"A profile holds a secret: fetch it over https, not {shown_address(address)}.")
    try:
        with httpx.stream("GET", address, timeout=30.0, follow_redirects=False) as answer:
            if answer.status_code != 200:
                raise ProfileError(
                    f"The profile at {shown_address(address)} answered HTTP {answer.status_code}."
                )
            data = b""
            for chunk in answer.iter_bytes():
                data += chunk
                if len(data) > _MAX_BYTES:
                    break
    except httpx.HTTPError as error:
        raise ProfileError(
            f"The profile at {shown_address(address)} cannot be fetched: {type(error).__name__}."
        ) from None
    return data


def _decode(data: bytes, shown: str) -> Mapping[str, Any]:
    if len(data) > _MAX_BYTES:
        raise ProfileError(f"{shown} is larger than 1 MB: that is not a profile.")
    try:
        decoded = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise ProfileError(
            f"{shown} is not JSON. A profile file comes from the data provider, unedited."
        ) from None
    if not isinstance(decoded, dict):
        raise ProfileError(f"{shown} is not a profile: a JSON object is expected.")
    return decoded


def _parse(fields: Mapping[str, Any], shown: str, reference: str | None) -> Profile:
    version = fields.get("shareCredentialsVersion")
    if version not in (1, 2) or isinstance(version, bool):
        raise ProfileError(
            f"{shown} has shareCredentialsVersion {version!r}; this client knows 1 and 2. Upgrade lakepass, "
            "or ask the provider for a profile of version 1."
        )
    endpoint = _address(fields, "endpoint", shown)
    kind = "bearer_token" if version == 1 else str(fields.get("type") or "bearer_token")
    expires_at = _expiry(fields.get("expirationTime"), shown)
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise ExpiredProfileError(
            f"{shown} expired on {expires_at.isoformat()}. Ask the provider for a new profile."
        )
    if urlsplit(endpoint).scheme == "http" and urlsplit(endpoint).hostname not in _LOOPBACK:
        warnings.warn(
            f"{shown} sends its token unencrypted to {endpoint}: ask the provider for an https endpoint.",
            ProfileWarning,
            stacklevel=4,
        )
    if kind == "bearer_token":
        return Profile(endpoint, _text(fields, "bearerToken", shown), None, expires_at, reference)
    if kind == "oauth_client_credentials":
        scope = fields.get("scope")
        client = OAuthClient(
            _address(fields, "tokenEndpoint", shown),
            _text(fields, "clientId", shown),
            _text(fields, "clientSecret", shown),
            str(scope) if scope else None,
        )
        return Profile(endpoint, None, client, expires_at, reference)
    raise ProfileError(
        f"{shown} is of type {kind!r}; this client knows bearer_token and oauth_client_credentials. Upgrade "
        "lakepass, or ask the provider for one of those."
    )


def _text(fields: Mapping[str, Any], name: str, shown: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ProfileError(f"{shown} lacks {name}. Ask the provider for a complete profile.")
    return value.strip()


def _address(fields: Mapping[str, Any], name: str, shown: str) -> str:
    value = _text(fields, name, shown).rstrip("/")
    try:
        parts = urlsplit(value)
        origin(value)
    except ValueError as error:
        raise ProfileError(
            f"The {name} in {shown} is not an address ({error}). Ask the provider for a new profile."
        ) from None
    if parts.scheme.lower() not in ("https", "http") or not parts.hostname:
        raise ProfileError(f"{shown} has a {name} that is not an https address: {shown_address(value)!r}.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ProfileError(
            f"{shown} has a {name} with a user, query or fragment in it; only a plain address is taken."
        )
    return value


def _expiry(value: object, shown: str) -> datetime | None:
    if value is None or value == "":
        return None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise ProfileError(f"{shown} has an expirationTime that is not ISO 8601: {value!r}.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _portable(address: str) -> str | None:
    """The address, unless it is a secret itself (a signature in its query, a user in it)."""
    parts = urlsplit(address)
    return None if parts.query or parts.username or parts.scheme.lower() != "https" else address
