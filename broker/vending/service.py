"""Vending as the rest of the broker sees it: a location and who it is for, in; a credential, out."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

from lakepass.broker.config import ConfigurationError, StorageEntry
from lakepass.broker.vending.cache import CacheKey, CredentialCache
from lakepass.broker.vending.errors import CloudUnavailable, ScopeRefused, VendingError
from lakepass.broker.vending.grantee import Grantee
from lakepass.broker.vending.vendor import Vendor, vendor_for
from lakepass.reader.credentials import Credential
from lakepass.reader.location import Location

_PERMISSIONS = "read"


class Vending:
    """One vendor per storage entry, and one cache in front of them all. Threads and the event loop share
    it."""

    def __init__(self, lifetime: timedelta, cache: CredentialCache | None = None) -> None:
        self._lifetime = lifetime
        self._cache = cache or CredentialCache()
        self._lock = threading.Lock()
        self._vendors: dict[StorageEntry, Vendor] = {}

    def vendor(self, entry: StorageEntry) -> Vendor:
        """The vendor of a storage entry, made when it is first needed."""
        vendor = self._vendors.get(entry)
        if vendor is None:
            with self._lock:
                vendor = self._vendors.get(entry)
                if vendor is None:
                    vendor = self._vendors[entry] = vendor_for(entry)
        return vendor

    def check(self, entry: StorageEntry, location: Location, grantee: Grantee | None = None) -> None:
        """Whether a credential can be limited to `location`; raises `ScopeRefused` or `ConfigurationError`
        if not.

        Calls no cloud: this is for registering a table.
        """
        _check_covered(entry, location)
        self.vendor(entry).check(location, grantee or Grantee.broker())

    def vend(
        self, entry: StorageEntry, location: Location, grantee: Grantee, request_id: str = ""
    ) -> Credential:
        """A credential that reads and lists below `location`; raises a `VendingError`."""
        vendor, key = self._asked(entry, location, grantee)
        return self._cache.obtain(key, lambda: self._mint(vendor, location, grantee, request_id)).result()

    async def vend_async(
        self, entry: StorageEntry, location: Location, grantee: Grantee, request_id: str = ""
    ) -> Credential:
        """The same on an event loop: at once when held, else the call to the cloud runs in a thread."""
        vendor, key = self._asked(entry, location, grantee)
        held = self._cache.get(key)
        if held is not None:
            return held
        future = self._cache.obtain(key, lambda: self._mint(vendor, location, grantee, request_id))
        # A client that goes away must not cancel the call that others wait for.
        return await asyncio.shield(asyncio.wrap_future(future))

    def close(self) -> None:
        """Stop minting and forget every credential."""
        self._cache.close()

    def _asked(self, entry: StorageEntry, location: Location, grantee: Grantee) -> tuple[Vendor, CacheKey]:
        _check_covered(entry, location)
        vendor = self.vendor(entry)
        return vendor, CacheKey(
            grantee.recipient, vendor.identity, location, (_PERMISSIONS, *grantee.source_ranges)
        )

    def _mint(self, vendor: Vendor, location: Location, grantee: Grantee, request_id: str) -> Credential:
        try:
            return vendor.vend(location, grantee, self._lifetime, request_id)
        except (VendingError, ConfigurationError):
            raise
        except Exception as error:
            # A proxy's page instead of the cloud's answer makes an SDK fail in ways of its own.
            detail = f"{vendor.cloud}: {type(error).__name__}: {error}"
            raise CloudUnavailable("The cloud's answer was not understood.", detail=detail) from None


def _check_covered(entry: StorageEntry, location: Location) -> None:
    if not entry.location.contains(location):
        raise ScopeRefused(f"{location} does not lie below the storage location {entry.location}.")
