"""Reading the audit trail: filters, newest first or oldest first, and following it as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Engine, Select, select

from lakepass.broker.audit.events import Outcome, VendEvent
from lakepass.broker.audit.table import audit_events

_COLUMNS = [column for column in audit_events.columns if column.name != "id"]
_LATE = timedelta(seconds=10)


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which events are wanted; what is None does not matter."""

    recipient: str | None = None
    table: str | None = None
    outcome: Outcome | None = None
    request_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def apply(self, statement: Select[tuple[object, ...]]) -> Select[tuple[object, ...]]:
        """The statement with these conditions."""
        columns = audit_events.columns
        for name in ("recipient", "table", "outcome", "request_id"):
            wanted = getattr(self, name)
            if wanted is not None:
                statement = statement.where(columns[name] == wanted)
        if self.since is not None:
            statement = statement.where(columns.at >= _milliseconds(self.since))
        if self.until is not None:
            statement = statement.where(columns.at < _milliseconds(self.until))
        return statement


def last_position(engine: Engine) -> int:
    """Where the trail ends now: what `latest` shows up to, and `follow` goes on from."""
    columns = audit_events.columns
    with engine.connect() as connection:
        return connection.execute(select(columns.id).order_by(columns.id.desc()).limit(1)).scalar() or 0


def latest(engine: Engine, wanted: Filter, limit: int, up_to: int | None = None) -> list[VendEvent]:
    """The newest `limit` events, oldest first."""
    statement = wanted.apply(select(*_COLUMNS)).order_by(audit_events.columns.id.desc()).limit(limit)
    if up_to is not None:
        statement = statement.where(audit_events.columns.id <= up_to)
    with engine.connect() as connection:
        rows = connection.execute(statement).mappings().all()
    return [_event(dict(row)) for row in reversed(rows)]


def follow(
    engine: Engine, wanted: Filter, position: int | None = None, *, poll_seconds: float = 1.0
) -> Iterator[VendEvent]:
    """Events after `position` (or from now on), as they are written, without end.

    Replicas commit out of order, so an id may appear after a higher one: ids of the last seconds are asked
    for again and told once.
    """
    columns = audit_events.columns
    start = last_position(engine) if position is None else position
    told: dict[int, int] = {}
    began = _now() - int(_LATE.total_seconds() * 1000)
    while True:
        statement = wanted.apply(select(columns.id, *_COLUMNS)).where(columns.id > start, columns.at >= began)
        with engine.connect() as connection:
            rows = connection.execute(statement.order_by(columns.id)).mappings().all()
        for row in rows:
            values = dict(row)
            number = values.pop("id")
            if number not in told:
                told[number] = values["at"]
                yield _event(values)
        settled = _now() - int(_LATE.total_seconds() * 1000)
        for number in [number for number, at in told.items() if at < settled]:
            start = max(start, number)
            del told[number]
        time.sleep(poll_seconds)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _event(values: dict[str, object]) -> VendEvent:
    values["outcome"] = Outcome(str(values["outcome"]))
    return VendEvent(**values)  # type: ignore[arg-type]  # the columns are the fields, by test
