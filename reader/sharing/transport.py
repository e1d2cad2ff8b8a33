"""The HTTP side of the sharing client: one connection pool, the token, retries, the server's clock.

The token goes to the profile's origin and nowhere else: redirects are followed only within that origin.
Answers 429 and 5xx and broken connections are tried again with growing, jittered pauses, never sooner than
the server's Retry-After; every request of the protocol is a read, so trying again is safe.
"""

from __future__ import annotations

import email.utils
import logging
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import metadata
from typing import Any
from urllib.parse import urljoin

import httpx
import orjson

from lakepass.reader.errors import SharingError
from lakepass.reader.secrets import scrub, shown_address
from lakepass.reader.sharing.authorization import Authorization
from lakepass.reader.sharing.profile import Profile, origin

log = logging.getLogger("lakepass.sharing")

_RETRIED = {408, 425, 429, 500, 502, 503, 504}
_MAX_JSON = 64 << 20
_MAX_ERROR = 64 << 10
_MAX_REDIRECTS = 5


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server and how often to ask it again."""

    attempts: int = 7
    timeouts: int = 2
    """How many attempts may end in a timeout: a server that hangs is given up sooner than one that fails."""
    first_pause: float = 0.2
    longest_pause: float = 10.0
    longest_wait: float = 45.0
    """Seconds between attempts, all together; a server that asks for more is taken at its word."""
    connect: float = 10.0
    read: float = 60.0

    def pause(self, attempt: int) -> float:
        """Seconds before the next attempt: doubling, half of it random so that clients spread out."""
        ceiling = min(self.longest_pause, self.first_pause * 2.0**attempt)
        return ceiling / 2 + ceiling / 2 * random.random()  # noqa: S311 - jitter, not a secret


class Transport:
    """Requests to one server on behalf of one profile; safe to share between threads and across a fork."""

    def __init__(self, profile: Profile, patience: Patience | None = None) -> None:
        self.profile = profile
        self.patience = patience or Patience()
        self.skew = timedelta(0)
        """How far the server's clock is ahead of ours."""
        self._authorization = Authorization(profile, self._http)
        self._clients: dict[int, httpx.Client] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Transport({self.profile.endpoint!r})"

    def json(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, body: object = None
    ) -> tuple[dict[str, Any], httpx.Headers]:
        """The JSON object a request is answered with; a body that breaks off is asked for again."""
        attempt = 1
        while True:
            with self.stream(method, path, params=params, body=body) as answer:
                try:
                    data = _bounded(answer, _MAX_JSON)
                    break
                except httpx.HTTPError as error:
                    if attempt > self.patience.timeouts:
                        shown = type(error).__name__
                        raise SharingError(f"{method} {path}: the answer broke off ({shown}).") from None
                    attempt += 1
        try:
            decoded = orjson.loads(data) if data.strip() else {}
        except orjson.JSONDecodeError:
            decoded = None
        if not isinstance(decoded, dict):
            raise SharingError(
                f"{method} {path}: the answer is not a JSON object. Is {self.profile.endpoint} a sharing "
                "server?",
                answer.status_code,
            )
        return decoded, answer.headers

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[httpx.Response]:
        """An answer with status 200 whose body is still to be read; every other status is an error."""
        answer = self._send(method, path, params or {}, body, headers or {})
        try:
            yield answer
        finally:
            answer.close()

    def _send(
        self, method: str, path: str, params: Mapping[str, str], body: object, headers: Mapping[str, str]
    ) -> httpx.Response:
        address = self.profile.endpoint + path
        content = None if body is None else orjson.dumps(body)
        if content is not None:
            headers = {**headers, "Content-Type": "application/json; charset=utf-8"}
        timeouts = redirects = attempt = 0
        waited = 0.0
        renewed_token = False
        while True:
            failure: SharingError
            wait: float | None = None
            try:
                token = self._authorization.token()
                client = self._http()
                sent = {**headers, "Authorization": f"Bearer {token}"}
                request = client.build_request(
                    method, address, params=params or None, content=content, headers=sent
                )
                answer = self._request(request, client)
            except httpx.TimeoutException as error:
                timeouts += 1
                failure = SharingError(
                    f"{method} {path}: {self.profile.endpoint} did not answer in time "
                    f"({type(error).__name__}). Try again later, or with a longer timeout."
                )
                if timeouts >= self.patience.timeouts:
                    raise failure from None
            except httpx.TransportError as error:
                failure = SharingError(
                    f"{method} {path}: {self.profile.endpoint} cannot be reached: "
                    f"{scrub(str(error).rstrip('.'), *self.profile.secrets()) or type(error).__name__}. "
                    "Check the profile's endpoint, the network and the proxy settings."
                )
            else:
                if answer.status_code == 200:
                    return answer
                if answer.is_redirect:
                    address = self._redirected(method, path, address, answer)
                    params = {}
                    redirects += 1
                    if redirects > _MAX_REDIRECTS:
                        raise SharingError(f"{method} {path}: more than {_MAX_REDIRECTS} redirects.")
                    continue
                if answer.status_code == 401 and self._authorization.renewable and not renewed_token:
                    answer.close()
                    self._authorization.forget(token)
                    renewed_token = True
                    continue
                failure = self._failure(method, path, answer)
                if answer.status_code not in _RETRIED:
                    raise failure
                wait = _retry_after(answer)
            attempt += 1
            pause = max(self.patience.pause(attempt - 1), wait or 0.0)
            waited += pause
            if attempt >= self.patience.attempts or waited > self.patience.longest_wait:
                raise failure
            log.info("%s; trying again in %.1f s", failure, pause)
            time.sleep(pause)

    def _request(self, request: httpx.Request, client: httpx.Client) -> httpx.Response:
        before = datetime.now(UTC)
        answer = client.send(request, stream=True, follow_redirects=False)
        self._note_clock(answer.headers, before, datetime.now(UTC))
        return answer

    def _redirected(self, method: str, path: str, address: str, answer: httpx.Response) -> str:
        answer.close()
        if not answer.has_redirect_location:
            raise SharingError(
                f"{method} {path}: the server answered {answer.status_code} without saying where to go.",
                answer.status_code,
            )
        target = urljoin(address, answer.headers["location"])
        if origin(target) != self.profile.origin:
            raise SharingError(
                f"{method} {path}: the server redirects to {shown_address(target)}, which is another origin "
                "than the profile's. The token is not sent there. If the server has moved, ask the "
                "provider for a new profile.",
                answer.status_code,
            )
        if method != "GET" and answer.status_code in (301, 302, 303):
            raise SharingError(
                f"{method} {path}: redirected with HTTP {answer.status_code}, which loses the request."
            )
        return target

    def _failure(self, method: str, path: str, answer: httpx.Response) -> SharingError:
        try:
            fields = orjson.loads(_bounded(answer, _MAX_ERROR))
        except (httpx.HTTPError, orjson.JSONDecodeError, SharingError):
            fields = {}
        finally:
            answer.close()
        if not isinstance(fields, dict):
            fields = {}
        code = str(fields.get("errorCode") or fields.get("error_code") or "") or None
        said = scrub(str(fields.get("message") or ""), *self.profile.secrets())[:2000].strip()
        status = answer.status_code
        parts = [f"{method} {path}: the server answered {status}{f' {code}' if code else ''}"]
        parts.append(f": {said.removesuffix('.')}." if said else ".")
        return SharingError("".join(parts) + _ADVICE.get(status, ""), status, code)

    def _note_clock(self, headers: httpx.Headers, before: datetime, after: datetime) -> None:
        """Keep the server's clock offset, as far as a Date header in whole seconds can tell it."""
        if "age" in headers or "date" not in headers:
            return
        try:
            date = email.utils.parsedate_to_datetime(headers["date"])
        except ValueError:
            return
        if date.tzinfo is None:
            return
        least, most = date - after, date + timedelta(seconds=1) - before
        # Where the answer leaves a range, take its upper end: credentials then end early rather than late.
        self.skew = timedelta(0) if least <= timedelta(0) <= most else most

    def _http(self) -> httpx.Client:
        # A forked process must not share its parent's sockets, so each process has its own pool.
        process = os.getpid()
        client = self._clients.get(process)
        if client is None:
            with self._lock:
                client = self._clients.get(process)
                if client is None:
                    client = self._clients[process] = _new_client(self.patience)
        return client

    def close(self) -> None:
        """Close this process's connections."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return Transport, (self.profile, self.patience)


_ADVICE = {
    401: " The token is wrong, was revoked or has ended: ask the provider for a new profile.",
    403: " The provider does not allow this: ask them for access.",
    404: " all_tables() (`lakepass ls`) shows what was granted to you.",
    429: " The server is busy: try again later.",
    503: " The server is not available: try again later.",
}


def _new_client(patience: Patience) -> httpx.Client:
    return httpx.Client(
        http2=True,
        timeout=httpx.Timeout(patience.read, connect=patience.connect),
        limits=httpx.Limits(max_connections=32, max_keepalive_connections=8),
        headers={"User-Agent": f"lakepass/{metadata.version('lakepass')}"},
    )


def _retry_after(answer: httpx.Response) -> float | None:
    value = answer.headers.get("retry-after")
    if not value:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _bounded(answer: httpx.Response, limit: int) -> bytes:
    pieces, size = [], 0
    for chunk in answer.iter_bytes():
        size += len(chunk)
        if size > limit:
            raise SharingError(f"The server's answer is larger than {limit >> 20} MB.", answer.status_code)
        pieces.append(chunk)
    return b"".join(pieces)
