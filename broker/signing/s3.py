"""Pre-signed URLs for S3 and its likes: AWS Signature Version 4 in the query string.

Everything but the path is the same for all files of an answer, so it is worked out once: a URL then costs
one hash and one HMAC. The result is what botocore would sign at the same second.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit

from lakepass.broker.signing.encoding import KeyEncoder
from lakepass.reader.credentials import AwsKeys, Credential

_ALGORITHM = "AWS4-HMAC-SHA256"
_LONGEST = timedelta(days=7)


class S3Signer:
    """Signs reads of objects in one bucket."""

    def __init__(self, credential: Credential, bucket: str, lifetime: timedelta, now: datetime | None = None):
        keys = credential.keys
        assert isinstance(keys, AwsKeys)
        now = (now or datetime.now(UTC)).replace(microsecond=0)
        expires = now + min(lifetime, _LONGEST)
        if credential.expires_at is not None:
            expires = min(expires, credential.expires_at)
        seconds = max(int((expires - now).total_seconds()), 1)
        self.expires_at_ms = int(now.timestamp() + seconds) * 1000
        store = credential.store
        region = store.region or "us-east-1"
        self._origin, base, host = _address(store.endpoint, region, bucket, path_style=store.path_style)
        self._encoder = KeyEncoder(base)
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        scope = f"{stamp[:8]}/{region}/s3/aws4_request"
        parameters = [
            ("X-Amz-Algorithm", _ALGORITHM),
            ("X-Amz-Credential", f"{keys.access_key_id}/{scope}"),
            ("X-Amz-Date", stamp),
            ("X-Amz-Expires", str(seconds)),
            ("X-Amz-SignedHeaders", "host"),
        ]
        if keys.session_token is not None:
            parameters.append(("X-Amz-Security-Token", keys.session_token))
        self._query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters)
        canonical = "&".join(f"{name}={quote(value, safe='')}" for name, value in sorted(parameters))
        self._after_path = f"\n{canonical}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD".encode()
        self._to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n"
        key = f"AWS4{keys.secret_access_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), hashlib.sha256)
        self._key = key

    def sign(self, keys: Sequence[str]) -> list[str]:
        """A URL for each object key."""
        origin, query, after = self._origin, self._query, self._after_path
        to_sign, key, path_of = self._to_sign, self._key, self._encoder.path
        sha256, digest = hashlib.sha256, hmac.digest
        urls = []
        for name in keys:
            path = path_of(name)
            request = sha256(b"GET\n" + path.encode() + after).hexdigest()
            signature = digest(key, (to_sign + request).encode(), "sha256").hex()
            urls.append(f"{origin}{path}?{query}&X-Amz-Signature={signature}")
        return urls


def _address(endpoint: str | None, region: str, bucket: str, *, path_style: bool) -> tuple[str, str, str]:
    """Origin, the path's beginning and the host that is signed."""
    if endpoint is None:
        suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        endpoint = f"https://s3.{region}.{suffix}"
    parts = urlsplit(endpoint)
    prefix = parts.path.rstrip("/")
    # A bucket's name with periods does not fit the certificate of a host below the endpoint's.
    if path_style or "." in bucket:
        return f"{parts.scheme}://{parts.netloc}", f"{prefix}/{bucket}/", parts.netloc
    host = f"{bucket}.{parts.netloc}"
    return f"{parts.scheme}://{host}", f"{prefix}/", host
