"""The token of a request: the profile's own, or one obtained with its OAuth client credentials.

An OAuth token is asked for when first needed, kept until shortly before it ends, fetched once however many
threads wait, and forgotten when the server refuses it. Client id and secret go to the token endpoint alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import httpx

from lakepass.reader.errors import SharingError
from lakepass.reader.sharing.profile import ExpiredProfileError, OAuthClient, Profile

_MARGIN = 60.0
_DEFAULT_LIFE = 3600.0


class Authorization:
    """Gives the token for the next request."""

    def __init__(self, profile: Profile, http: Callable[[], httpx.Client]) -> None:
        self._profile = profile
        self._http = http
        self._lock = threading.Lock()
        self._token: str | None = None
        self._renew_at = 0.0

    @property
    def renewable(self) -> bool:
        """Whether a refused token can be replaced."""
        return self._profile.oauth is not None

    def token(self) -> str:
        """A token that has not ended."""
        expires_at = self._profile.expires_at
        if expires_at is not None and expires_at <= datetime.now(UTC):
            raise ExpiredProfileError(
                f"The profile for {self._profile.endpoint} expired on {expires_at.isoformat()}. Ask the "
                "provider for a new one."
            )
        if self._profile.oauth is None:
            assert self._profile.bearer_token is not None
            return self._profile.bearer_token
        with self._lock:
            if self._token is None or time.monotonic() >= self._renew_at:
                self._token, life = self._ask(self._profile.oauth)
                self._renew_at = time.monotonic() + max(life - _MARGIN, life / 2)
            return self._token

    def forget(self, refused: str) -> None:
        """Do not use this token again."""
        with self._lock:
            if self._token == refused:
                self._token = None

    def _ask(self, client: OAuthClient) -> tuple[str, float]:
        form = {"grant_type": "client_credentials"}
        if client.scope:
            form["scope"] = client.scope
        answer = self._http().post(
            client.token_endpoint,
            data=form,
            auth=(client.client_id, client.client_secret),
            follow_redirects=False,
        )
        shown = client.token_endpoint
        if answer.status_code in (429, 500, 502, 503, 504):
            raise httpx.RemoteProtocolError(f"the token endpoint {shown} answered {answer.status_code}")
        if answer.status_code != 200:
            raise SharingError(
                f"The token endpoint {shown} answered {answer.status_code} to the profile's client id and "
                "secret. Ask the provider whether they were changed.",
                401,
            )
        try:
            fields = answer.json()
            token, life = str(fields["access_token"]), float(fields.get("expires_in") or _DEFAULT_LIFE)
        except (ValueError, KeyError, TypeError):
            raise SharingError(
                f"The token endpoint {shown} did not answer with an access token.", 401
            ) from None
        return token, life
