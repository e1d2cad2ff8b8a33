"""The demo's tables: rows that are known beforehand, so that every answer can be checked against them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa


@dataclass(frozen=True)
class DemoTable:
    """A table of the demo: what it is called when shared, where it lies, and what is in it."""

    name: str
    """As a recipient names it: share.schema.table."""
    directory: str
    """Below the bucket."""
    rows: pa.Table
    modes: tuple[str, ...]
    partition_by: tuple[str, ...] = ()


def _orders() -> pa.Table:
    ids = range(1, 5001)
    countries = ("AT", "BE", "DE", "FR", "IT")
    first = dt.date(2026, 1, 1)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "country": pa.array([countries[n % 5] for n in ids]),
            "day": pa.array([first + dt.timedelta(days=n % 90) for n in ids], pa.date32()),
            "amount": pa.array([Decimal(n * 37 % 10_000) / 100 for n in ids], pa.decimal128(10, 2)),
        }
    )


def _returns() -> pa.Table:
    ids = range(7, 5001, 71)
    return pa.table(
        {
            "order_id": pa.array(ids, pa.int64()),
            "reason": pa.array([("damaged", "late", "changed mind")[n % 3] for n in ids]),
        }
    )


def _salaries() -> pa.Table:
    return pa.table({"grade": pa.array([1, 2, 3], pa.int32()), "salary": pa.array([41_000, 52_000, 67_000])})


ORDERS = DemoTable("sales.eu.orders", "sales/orders", _orders(), ("url", "dir"), ("country",))
RETURNS = DemoTable("sales.eu.returns", "sales/returns", _returns(), ("url",))
SALARIES = DemoTable("hr.internal.salaries", "sales/orders_salaries", _salaries(), ("url", "dir"))
"""Not granted to the demo's recipient; its directory is named so that a careless prefix would open it."""

TABLES = (ORDERS, RETURNS, SALARIES)


def write(table: DemoTable, bucket: str, storage_options: Mapping[str, str]) -> None:
    """Write the table with the deltalake package, in two commits so that there is a log to replay."""
    from deltalake import write_deltalake

    half = table.rows.num_rows // 2
    for part in (table.rows.slice(0, half), table.rows.slice(half)):
        write_deltalake(
            f"s3://{bucket}/{table.directory}",
            part,
            mode="append",
            partition_by=list(table.partition_by) or None,
            storage_options=dict(storage_options),
        )
