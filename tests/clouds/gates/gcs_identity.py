"""Service accounts, their tokens and what they sign: our reading of "Using OAuth 2.0 for Server to Server
Applications" (developers.google.com/identity/protocols/oauth2/service-account), "Method: token" of the
Security Token Service (cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token),
"generateAccessToken" and "signBlob" of the IAM Service Account Credentials API, and "V4 signing process"
(cloud.google.com/storage/docs/access-control/signed-urls).
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.clouds.gates.gcs_boundary import Asked, Boundary, BoundaryError

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
_STORAGE_SCOPES = {
    CLOUD_PLATFORM,
    *(f"https://www.googleapis.com/auth/devstorage.{name}" for name in ("full_control", "read_write")),
}
_READ_SCOPES = {"https://www.googleapis.com/auth/devstorage.read_only"}
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
_GOOGLE_AUDIENCE = "https://oauth2.googleapis.com/token"
_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class IdentityError(Exception):
    """A token cannot be given: `error` is OAuth's word for it."""

    def __init__(self, error: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.error = error
        self.status = status


@dataclass(frozen=True)
class Account:
    """A service account."""

    email: str
    private_key: str
    """PEM; the gate has it too, because it signs for accounts that are impersonated."""
    lifetime: float
    """Of its tokens, in seconds."""
    storage: bool
    """Whether it may do anything with every bucket; otherwise nothing."""
    may_impersonate: list[str]

    @property
    def key(self) -> rsa.RSAPrivateKey:
        """The key itself."""
        loaded = serialization.load_pem_private_key(self.private_key.encode(), None)
        assert isinstance(loaded, rsa.RSAPrivateKey)
        return loaded

    def signed(self, signature: bytes, content: bytes) -> bool:
        """Whether this account made the signature."""
        try:
            self.key.public_key().verify(signature, content, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class Token:
    """What an access token stands for."""

    account: Account
    scopes: frozenset[str]
    expires: float
    boundary: Boundary | None = None

    def allows(self, asked: Asked) -> bool:
        """Whether the account, its scopes and its boundary all allow it."""
        reading = asked.permission.rpartition(".")[2] in ("get", "list")
        in_scope = bool(self.scopes & (_STORAGE_SCOPES | _READ_SCOPES if reading else _STORAGE_SCOPES))
        return self.account.storage and in_scope and (self.boundary is None or self.boundary.allows(asked))


class Identities:
    """Every account and every token that was given out."""

    def __init__(self, accounts: Iterable[Account]) -> None:
        self.accounts = {account.email: account for account in accounts}
        self._tokens: dict[str, Token] = {}

    def find(self, text: str) -> Token | None:
        """The token, while it lives."""
        token = self._tokens.get(text)
        return token if token is not None and token.expires > time.time() else None

    def grant(self, form: Mapping[str, str], audience: str) -> dict[str, Any]:
        """An access token for a service account that signed an assertion."""
        if form.get("grant_type") != _ASSERTION:
            raise IdentityError("unsupported_grant_type", "Only signed assertions are taken.")
        content, _, signature = form.get("assertion", "").rpartition(".")
        try:
            claims = json.loads(_decoded(content.partition(".")[2]))
            account = self.accounts[claims["iss"]]
        except (ValueError, KeyError):
            raise IdentityError("invalid_grant", "The assertion is from nobody known.") from None
        if not account.signed(_decoded(signature), content.encode()):
            raise IdentityError("invalid_grant", "Invalid JWT signature.")
        # google-auth names Google's own endpoint whatever `token_uri` says.
        if (
            claims["aud"] not in (audience, _GOOGLE_AUDIENCE)
            or not claims["iat"] - 60 <= time.time() < claims["exp"]
        ):
            raise IdentityError("invalid_grant", "The assertion is for another place or time.")
        return self._issue(Token(account, frozenset(claims["scope"].split()), time.time() + account.lifetime))

    def exchange(self, form: Mapping[str, str]) -> dict[str, Any]:
        """A downscoped token for an access token. Its life is the source's own."""
        if form.get("grant_type") != _EXCHANGE or form.get("subject_token_type") != _ACCESS_TOKEN:
            raise IdentityError("unsupported_grant_type", "Only access tokens are exchanged.")
        source = self.find(form.get("subject_token", ""))
        if source is None:
            raise IdentityError("invalid_grant", "The subject token is unknown or has expired.")
        if source.boundary is not None:
            raise IdentityError("invalid_request", "A downscoped token cannot be downscoped again.")
        if CLOUD_PLATFORM not in source.scopes:
            raise IdentityError("invalid_scope", "The subject token needs the cloud-platform scope.")
        try:
            options = form.get("options", "")
            # google-auth percent-encodes the JSON once more than the form does; others do not.
            boundary = Boundary.parse(json.loads(unquote(options) if options.startswith("%7B") else options))
        except (ValueError, BoundaryError) as error:
            raise IdentityError("invalid_request", str(error)) from error
        answer = self._issue(Token(source.account, source.scopes, source.expires, boundary))
        return {**answer, "issued_token_type": _ACCESS_TOKEN}

    def impersonate(self, caller: Token | None, email: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """An access token of another account."""
        account = self._target(caller, email)
        seconds = min(float(str(body.get("lifetime", "3600s")).removesuffix("s")), account.lifetime)
        token = self._issue(Token(account, frozenset(body.get("scope", [])), time.time() + seconds))
        ends = datetime.fromtimestamp(self._tokens[token["access_token"]].expires, UTC)
        return {"accessToken": token["access_token"], "expireTime": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def sign(self, caller: Token | None, email: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A signature of another account (or of the caller's own)."""
        account = self._target(caller, email)
        content = base64.b64decode(body["payload"])
        made = account.key.sign(content, padding.PKCS1v15(), hashes.SHA256())
        return {"keyId": "1", "signedBlob": base64.b64encode(made).decode()}

    def signer_of(
        self, method: str, host: str, raw_path: str, query: list[tuple[str, str]], headers: Mapping[str, str]
    ) -> Account | None:
        """The account whose V4 signature a URL carries, when it is right and still lives."""
        given = dict(query)
        email, _, scope = given.get("X-Goog-Credential", "").partition("/")
        account = self.accounts.get(email)
        if account is None or given.get("X-Goog-Algorithm") != "GOOG4-RSA-SHA256":
            return None
        try:
            made = datetime.strptime(given["X-Goog-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
            seconds = int(given["X-Goog-Expires"])
            signature = bytes.fromhex(given["X-Goog-Signature"])
        except (KeyError, ValueError):
            return None
        if not 0 < seconds <= 7 * 86400 or not made - 900 <= time.time() < made + seconds:
            return None
        signed_names = given.get("X-Goog-SignedHeaders", "").split(";")
        if "host" not in signed_names:
            return None
        values = {**{name.lower(): value for name, value in headers.items()}, "host": host}
        canonical_headers = "".join(f"{name}:{values.get(name, '').strip()}\n" for name in signed_names)
        pairs = sorted(
            f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
            for name, value in query
            if name != "X-Goog-Signature"
        )
        request = "\n".join(
            [
                method,
                raw_path,
                "&".join(pairs),
                canonical_headers,
                ";".join(signed_names),
                values.get("x-goog-content-sha256", "UNSIGNED-PAYLOAD"),
            ]
        )
        digest = hashlib.sha256(request.encode()).hexdigest()
        content = "\n".join(["GOOG4-RSA-SHA256", given["X-Goog-Date"], scope, digest])
        return account if account.signed(signature, content.encode()) else None

    def _target(self, caller: Token | None, email: str) -> Account:
        if caller is None:
            raise IdentityError("unauthenticated", "A token is needed.", 401)
        if caller.boundary is not None or (
            email != caller.account.email and email not in caller.account.may_impersonate
        ):
            raise IdentityError("permission_denied", "This account may not act for the other.", 403)
        return self.accounts[email]

    def _issue(self, token: Token) -> dict[str, Any]:
        text = f"local-token-{secrets.token_urlsafe(24)}"
        self._tokens[text] = token
        return {
            "access_token": text,
            "token_type": "Bearer",
            "expires_in": max(1, int(token.expires - time.time())),
        }


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
