"""Pre-signed URLs for Google Cloud Storage: V4 signing with a service account.

With a private key at hand each URL is one RSA signature. Without one (workload identity, impersonation)
Google's IAM signs for the account (`signBlob`), one call per URL, several at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit

from lakepass.broker.signing.encoding import KeyEncoder

_ALGORITHM = "GOOG4-RSA-SHA256"
_LONGEST = timedelta(days=7)
_CALLS_AT_ONCE = 16
_ENDPOINT = "https://storage.googleapis.com"


class GcsSigner:
    """Signs reads of objects in one bucket; `sign_bytes` is the account's key, or IAM on its behalf."""

    def __init__(
        self,
        sign_bytes: Callable[[bytes], bytes],
        *,
        account: str,
        bucket: str,
        lifetime: timedelta,
        endpoint: str | None = None,
        remote: bool = False,
        now: datetime | None = None,
    ) -> None:
        now = (now or datetime.now(UTC)).replace(microsecond=0)
        seconds = int(min(lifetime, _LONGEST).total_seconds())
        self.expires_at_ms = int(now.timestamp() + seconds) * 1000
        self._sign_bytes = sign_bytes
        self._remote = remote
        origin = urlsplit(endpoint or _ENDPOINT)
        self._origin = f"{origin.scheme}://{origin.netloc}"
        self._encoder = KeyEncoder(f"{origin.path.rstrip('/')}/{bucket}/")
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        scope = f"{stamp[:8]}/auto/storage/goog4_request"
        fields = {
            "X-Goog-Algorithm": _ALGORITHM,
            "X-Goog-Credential": f"{account}/{scope}",
            "X-Goog-Date": stamp,
            "X-Goog-Expires": str(seconds),
            "X-Goog-SignedHeaders": "host",
        }
        self._query = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in fields.items())
        self._after_path = f"\n{self._query}\nhost:{origin.netloc}\n\nhost\nUNSIGNED-PAYLOAD".encode()
        self._to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n"

    def sign(self, keys: Sequence[str]) -> list[str]:
        """A URL for each object's name."""
        if not self._remote:
            return [self._sign_one(name) for name in keys]
        with ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix="sign-blob") as pool:
            return list(pool.map(self._sign_one, keys))

    def _sign_one(self, name: str) -> str:
        path = self._encoder.path(name)
        request = hashlib.sha256(b"GET\n" + path.encode() + self._after_path).hexdigest()
        signature = self._sign_bytes((self._to_sign + request).encode()).hex()
        return f"{self._origin}{path}?{self._query}&X-Goog-Signature={signature}"
