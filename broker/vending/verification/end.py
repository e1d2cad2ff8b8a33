"""When a credential ends: what it says of itself, and what the store makes of it afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

from lakepass.broker.vending.lifetimes import LONGEST
from lakepass.broker.vending.verification.checks import Check, Verdict
from lakepass.broker.vending.verification.probe import Probe, Refused
from lakepass.reader.credentials import AzureSas, Credential

_GRACE = timedelta(minutes=1)


def verify_end(probe: Probe, name: str | None, credential: Credential, *, wait: timedelta) -> Iterator[Check]:
    """Check the end that is told; when it comes within `wait`, wait for it and read `name` once more."""
    end = credential.expires_at
    if end is None:
        yield Check("has an end", "within 12 hours", "none", Verdict.LEAK)
        return
    remaining = credential.remaining()
    sound = timedelta(0) < remaining <= LONGEST + _GRACE
    yield Check(
        "has an end", "within 12 hours", f"in {_told(remaining)}", Verdict.OK if sound else Verdict.LEAK
    )
    if isinstance(credential.keys, AzureSas):
        signed = _signed_end(credential.keys)
        got = "the same" if signed == end else f"{signed:%H:%M:%S}, told {end:%H:%M:%S}"
        yield Check(
            "ends when its signature does", "the same", got, Verdict.OK if signed == end else Verdict.LEAK
        )
    if name is not None and remaining <= wait:
        # Stores count in whole seconds, and their clocks are not ours.
        time.sleep(max(0.0, credential.remaining().total_seconds()) + 2)
        try:
            probe.read(name)
        except Refused:
            yield Check("read after its end", "refused", "refused", Verdict.OK)
        else:
            yield Check("read after its end", "refused", "allowed", Verdict.LEAK)


def _signed_end(keys: AzureSas) -> datetime:
    """A SAS ends with its own end or its key's, whichever comes first."""
    told = parse_qs(keys.sas_token)
    ends = [datetime.fromisoformat(told[name][0]) for name in ("se", "ske") if name in told]
    return min(ends).astimezone(UTC)


def _told(span: timedelta) -> str:
    return str(timedelta(seconds=round(span.total_seconds())))
