"""Credentials kept for as long as they are worth handing out, and minted once however many ask.

The cache knows no cloud: it holds what a key's `mint` returned. A credential is served while enough of its
life is left (`least_remaining`). Everyone who asks for a key while it is being minted waits for that one
call and shares its outcome; an error is told to those who waited and then forgotten.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from lakepass.broker.vending.lifetimes import least_remaining
from lakepass.reader.credentials import Credential
from lakepass.reader.location import Location

_SWEEP_SECONDS = 60


class CacheKey(NamedTuple):
    """Whose credential it is, and for what: two requests with the same key may share one."""

    recipient: str
    identity: str
    location: Location
    permissions: tuple[str, ...]


@dataclass(frozen=True)
class _Held:
    credential: Credential
    usable_until: float
    """Epoch seconds."""


class CredentialCache:
    """Safe for threads; `capacity` bounds what it holds, the least recently used goes first."""

    def __init__(self, capacity: int = 10_000, mints_at_once: int = 32) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._held: OrderedDict[CacheKey, _Held] = OrderedDict()
        self._flights: dict[CacheKey, Future[Credential]] = {}
        self._swept = time.time()
        self._workers = ThreadPoolExecutor(mints_at_once, thread_name_prefix="vend")

    def get(self, key: CacheKey) -> Credential | None:
        """The credential of a key, if one is held that is still worth handing out."""
        with self._lock:
            return self._usable(key)

    def obtain(self, key: CacheKey, mint: Callable[[], Credential]) -> Future[Credential]:
        """The credential of a key: held, being minted for someone else, or minted now."""
        with self._lock:
            held = self._usable(key)
            if held is not None:
                ready: Future[Credential] = Future()
                ready.set_result(held)
                return ready
            flight = self._flights.get(key)
            if flight is None:
                flight = self._workers.submit(self._mint, key, mint)
                self._flights[key] = flight
            return flight

    def close(self) -> None:
        """Forget everything and stop minting."""
        self._workers.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._held.clear()

    def _usable(self, key: CacheKey) -> Credential | None:
        held = self._held.get(key)
        if held is None:
            return None
        if held.usable_until <= time.time():
            del self._held[key]
            return None
        self._held.move_to_end(key)
        return held.credential

    def _mint(self, key: CacheKey, mint: Callable[[], Credential]) -> Credential:
        try:
            asked = datetime.now(UTC)
            credential = mint()
            with self._lock:
                self._hold(key, credential, asked)
            return credential
        finally:
            with self._lock:
                self._flights.pop(key, None)

    def _hold(self, key: CacheKey, credential: Credential, asked: datetime) -> None:
        if credential.expires_at is None:
            return
        usable_until = credential.expires_at - least_remaining(credential.expires_at - asked)
        self._held[key] = _Held(credential, usable_until.timestamp())
        now = time.time()
        if now - self._swept > _SWEEP_SECONDS:
            self._swept = now
            for old in [key for key, held in self._held.items() if held.usable_until <= now]:
                del self._held[old]
        while len(self._held) > self._capacity:
            self._held.popitem(last=False)
