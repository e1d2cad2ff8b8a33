"""What is written down about a request for a credential. No field can hold a secret."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from lakepass.broker.catalog.models import now_ms


class Outcome(StrEnum):
    """How a request for a credential ended."""

    VENDED = "vended"
    REFUSED = "refused"
    """By lakepass: the caller, the table or the location was not as it must be."""
    FAILED = "failed"
    """By the cloud, which refused or could not be reached."""


@dataclass(frozen=True, kw_only=True)
class VendEvent:
    """One request for a credential. Names are as the recipient wrote them where the table was not found."""

    request_id: str
    interface: str
    """Which form was asked: `delta-sharing`, `aws-container` or `unity-catalog`."""
    outcome: Outcome
    reason: str | None = None
    recipient: str | None = None
    token_id: str | None = None
    table: str | None = None
    location: str | None = None
    cloud: str | None = None
    scope: str | None = None
    """`directory`; `container` where the store has nothing narrower and the administrator accepted that."""
    expires_at: int | None = None
    """The credential's real end, in epoch milliseconds."""
    source_address: str | None = None
    at: int = field(default_factory=now_ms)

    def as_json(self) -> dict[str, Any]:
        """For JSON lines: times as ISO text, absent fields left out."""
        told = {name: value for name, value in asdict(self).items() if value is not None}
        told = {"time": told.pop("at"), **told}
        for name in ("time", "expires_at"):
            if name in told:
                told[name] = iso(told[name])
        return told


def iso(milliseconds: int) -> str:
    """A time as people and scripts read it."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
