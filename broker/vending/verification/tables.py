"""Verifying a shared table: each of its locations, and that a recipient's own reader opens it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from lakepass.broker.audit import AuditLog, Outcome, VendEvent
from lakepass.broker.config import ConfigurationError, Settings, StorageEntry
from lakepass.broker.vending.errors import VendingError
from lakepass.broker.vending.grantee import Grantee
from lakepass.broker.vending.service import Vending
from lakepass.broker.vending.verification.checks import Allowance, Check, Verdict, verify_location
from lakepass.broker.vending.verification.end import verify_end
from lakepass.broker.vending.verification.probe import Probe, probe_for
from lakepass.reader.credentials import Credential, CredentialProvider
from lakepass.reader.errors import DeltaError
from lakepass.reader.location import Location
from lakepass.reader.secrets import scrub

_VERIFIER = "lakepass-verify"
_MANY_NEIGHBOURS = 5
_BAD = (Verdict.LEAK, Verdict.UNREADABLE)


@dataclass(frozen=True)
class Subject:
    """A table to verify."""

    name: str
    root: Location
    auxiliary: tuple[Location, ...] = ()


@dataclass
class TableReport:
    """What was found about a table, location by location."""

    name: str
    checks: list[tuple[str, Check]] = field(default_factory=list)
    """Each with the location it is about."""

    def add(self, location: Location, checks: Iterable[Check]) -> None:
        """Take up checks of a location as they are made."""
        self.checks.extend((str(location), check) for check in checks)

    @property
    def sound(self) -> bool:
        """Nothing leaked, and everything that a recipient needs works."""
        return not any(check.verdict in _BAD for _, check in self.checks)


class Verifier:
    """Vends and attacks; what it vends is audited as everything else is."""

    def __init__(self, settings: Settings, vending: Vending, audit: AuditLog, wait: timedelta) -> None:
        self._settings = settings
        self._vending = vending
        self._audit = audit
        self._wait = wait

    def verify(self, subject: Subject, others: Iterable[Subject] = ()) -> TableReport:
        """Verify a table. `others` are tables whose objects must stay closed to its credential."""
        report = TableReport(subject.name)
        probes: dict[Location, tuple[Probe, Credential]] = {}
        try:
            for location in (subject.root, *subject.auxiliary):
                report.add(location, self._attack(subject, location, others, probes))
            if len(probes) == 1 + len(subject.auxiliary):
                report.add(subject.root, _opened(subject, {at: held for at, (_, held) in probes.items()}))
            for location, (probe, credential) in probes.items():
                name = _one_name(probe, location.prefix)
                report.add(location, verify_end(probe, name, credential, wait=self._wait))
        finally:
            for probe, _ in probes.values():
                probe.close()
        return report

    def _attack(
        self,
        subject: Subject,
        location: Location,
        others: Iterable[Subject],
        probes: dict[Location, tuple[Probe, Credential]],
    ) -> Iterator[Check]:
        try:
            entry, credential = self._vend(subject, location)
        except (VendingError, ConfigurationError) as error:
            detail = error.detail if isinstance(error, VendingError) else str(error)
            yield Check("vend a credential", "given", detail[:300], Verdict.UNREADABLE)
            return
        yield Check("vend a credential", "given", "given", Verdict.OK)
        probe = probe_for(location, credential)
        probes[location] = (probe, credential)
        yield from verify_location(
            probe,
            location,
            root=location == subject.root,
            strangers=self._strangers(location, others),
            allowance=_allowance(entry),
        )

    def _vend(self, subject: Subject, location: Location) -> tuple[StorageEntry, Credential]:
        entry = self._settings.storage_for(location)
        if entry is None:
            raise ConfigurationError(f"No storage entry covers {location}.")
        request_id = uuid4().hex
        told: dict[str, Any] = {
            "request_id": request_id,
            "interface": "verify",
            "recipient": _VERIFIER,
            "table": subject.name,
            "location": str(location),
            "cloud": location.cloud,
        }
        try:
            credential = self._vending.vend(entry, location, Grantee(_VERIFIER), request_id)
        except (VendingError, ConfigurationError) as error:
            self._audit.record(VendEvent(outcome=Outcome.FAILED, reason=str(error), **told))
            raise
        assert credential.expires_at is not None
        ends = int(credential.expires_at.timestamp() * 1000)
        scope = self._vending.vendor(entry).scope
        self._audit.record(VendEvent(outcome=Outcome.VENDED, expires_at=ends, scope=scope, **told))
        return entry, credential

    def _strangers(self, location: Location, others: Iterable[Subject]) -> list[str]:
        """Objects of other tables in the same bucket, found with credentials of their own."""
        found: list[str] = []
        for place in (place for other in others for place in (other.root, *other.auxiliary)):
            if len(found) == _MANY_NEIGHBOURS:
                break
            if (place.scheme, place.authority) != (location.scheme, location.authority):
                continue
            if location.contains(place):
                continue
            name = self._one_object(place, besides=location)
            if name is not None:
                found.append(name)
        return found

    def _one_object(self, place: Location, *, besides: Location) -> str | None:
        entry = self._settings.storage_for(place)
        if entry is None:
            return None
        try:
            credential = self._vending.vend(entry, place, Grantee.broker())
        except (VendingError, ConfigurationError):
            return None
        probe = probe_for(place, credential)
        try:
            name = _one_name(probe, place.prefix)
        finally:
            probe.close()
        return None if name is None or name.startswith(besides.prefix) else name


def verify_table(
    settings: Settings,
    vending: Vending,
    audit: AuditLog,
    subject: Subject,
    others: Iterable[Subject] = (),
    *,
    wait: timedelta = timedelta(seconds=20),
) -> TableReport:
    """Vend for a table as a recipient would be given, attack that, and report."""
    return Verifier(settings, vending, audit, wait).verify(subject, others)


def _opened(subject: Subject, credentials: dict[Location, Credential]) -> Iterator[Check]:
    """What a recipient does in the end: open the table with these credentials and read a row."""
    from lakepass.reader.table import Table

    fixed = {place: _always(credential) for place, credential in credentials.items()}
    try:
        table = Table(subject.root, fixed[subject.root], {place: fixed[place] for place in subject.auxiliary})
        snapshot = table.snapshot()
        yield Check("open the table", "allowed", f"version {snapshot.version}", Verdict.OK)
        rows = snapshot.scan(limit=1).to_arrow().num_rows
        yield Check("read a row", "allowed", "read" if rows else "the table is empty", Verdict.OK)
    except (DeltaError, OSError) as error:
        yield Check("open the table", "allowed", scrub(str(error))[:300], Verdict.UNREADABLE)


def _always(credential: Credential) -> CredentialProvider:
    return lambda: credential


def _one_name(probe: Probe, prefix: str) -> str | None:
    try:
        return next((name for name in probe.list(prefix) if not name.endswith("/")), None)
    except Exception:
        return None  # that it cannot be listed is a check of its own


def _allowance(entry: StorageEntry) -> Allowance:
    flat = entry.azure is not None and not entry.azure.hierarchical_namespace
    bare = entry.aws is not None and entry.aws.list_bare_prefix
    return Allowance(container=flat, bare_prefix=bare)
