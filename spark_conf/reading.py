"""Shared tables by Delta Lake's own reader: the credential goes along as options of that one read.

In `dir` mode the options make Spark renew the credential at the broker, on driver and executors, or, where
the server is not one that can, hold it as it is until it ends. What Delta's reader cannot do with one
credential (pre-signed URLs, files in auxiliary locations) is read by the `lakepass` data source instead,
and said.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from lakepass.reader.sharing.client import SharingClient
from lakepass.reader.sharing.table import SharedTable
from lakepass.spark_conf.errors import SparkReadError, told_in_words
from lakepass.spark_conf.opening import Mode, Reference, locations
from lakepass.spark_conf.scoped import path_and_options
from lakepass.spark_conf.source import FORMAT, register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Engine = Literal["delta", "native"]
log = logging.getLogger("lakepass.spark")


def read_table(
    spark: SparkSession,
    table: str,
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    mode: Mode = "auto",
    engine: Engine | None = None,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    renew: bool = True,
) -> DataFrame:
    """The shared table `profile#share.schema.table` as a DataFrame.

    `engine="delta"` is Delta Lake's own reader, `"native"` the `lakepass` data source, which needs no jars;
    left out, Delta's where it can. `mode` is `dir`, `url` or `auto` as everywhere. `columns` and `filter`, a
    condition in SQL, narrow what is read; Spark narrows Delta's reads by itself and the native ones not.
    `renew=False` takes one credential as it is.
    """
    options, reference = _travel(version, timestamp), Reference(table, mode)
    return _read(spark, reference, options, engine, columns=columns, condition=filter, renew=renew)


def changes(
    spark: SparkSession,
    table: str,
    *,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp: str | datetime | None = None,
    ending_timestamp: str | datetime | None = None,
    mode: Mode = "auto",
    engine: Engine | None = None,
    renew: bool = True,
) -> DataFrame:
    """The rows inserted, updated and deleted, with `_change_type`, `_commit_version` and
    `_commit_timestamp`."""
    given: dict[str, Any] = {
        "startingVersion": starting_version,
        "endingVersion": ending_version,
        "startingTimestamp": starting_timestamp,
        "endingTimestamp": ending_timestamp,
    }
    if starting_version is None and starting_timestamp is None:
        raise SparkReadError("changes needs starting_version or starting_timestamp.")
    options = {"readChangeFeed": "true", **_texts(given)}
    return _read(spark, Reference(table, mode), options, engine, renew=renew)


def stream_table(
    spark: SparkSession,
    table: str,
    *,
    options: Mapping[str, str] | None = None,
    mode: Mode = "auto",
    engine: Engine | None = None,
    renew: bool = True,
) -> DataFrame:
    """The shared table as a stream: what is in it, then what is committed.

    `options` are Delta's for a stream: `startingVersion`, `maxFilesPerTrigger`, `ignoreDeletes`,
    `readChangeFeed`, …
    """
    reference = Reference(table, mode)
    chosen = _delta_options(spark, reference, engine, renew=renew)
    if chosen is None:
        register(spark)
        reader = spark.readStream.format(FORMAT).option("mode", mode)
        return reader.options(**dict(options or {})).load(table)
    path, conf = chosen
    with told_in_words(table):
        return spark.readStream.format("delta").options(**conf).options(**dict(options or {})).load(path)


def create_views(
    spark: SparkSession,
    profile: str | Path | None,
    share: str,
    *,
    prefix: str = "",
    mode: Mode = "auto",
    engine: Engine | None = None,
) -> list[str]:
    """A temporary view for each table of a share, so that SQL users just write SQL; gives the views' names.

    A view is named as its table, or `schema_table` where two schemas of the share have a table of that name.
    `profile` is a path or an address, or None for what LAKEPASS_PROFILE names.
    """
    if not isinstance(profile, str | Path | None):
        # Its token would stand in the plan of every view.
        raise SparkReadError(
            "A view names its profile by path or address: write the profile to a file first."
        )
    before = "" if profile is None else f"{profile}#"
    tables = list(SharingClient(profile).all_tables(share))
    names = [each.name for each in tables]
    views = []
    for each in tables:
        view = prefix + (each.name if names.count(each.name) == 1 else f"{each.schema}_{each.name}")
        frame = read_table(spark, f"{before}{each}", mode=mode, engine=engine)
        frame.createOrReplaceTempView(f"`{view}`" if not view.isidentifier() else view)
        views.append(view)
    return views


def _read(
    spark: SparkSession,
    reference: Reference,
    options: dict[str, str],
    engine: Engine | None,
    *,
    columns: Sequence[str] | None = None,
    condition: str | None = None,
    renew: bool,
) -> DataFrame:
    chosen = _delta_options(spark, reference, engine, renew=renew)
    if chosen is None:
        register(spark)
        reader = spark.read.format(FORMAT).option("mode", reference.mode).options(**options)
        if columns is not None:
            reader = reader.option("columns", ",".join(_quoted(each) for each in columns))
        if condition is not None:
            reader = reader.option("filter", condition)
        return reader.load(reference.text)
    path, conf = chosen
    with told_in_words(reference.text):
        frame = spark.read.format("delta").options(**conf).options(**options).load(path)
        if condition is not None:
            frame = frame.where(condition)
        return frame if columns is None else frame.select(*(_quoted(each) for each in columns))


def _delta_options(
    spark: SparkSession, reference: Reference, engine: Engine | None, *, renew: bool
) -> tuple[str, dict[str, str]] | None:
    """Path and options for Delta's reader, or None when the data source is to read."""
    if engine not in (None, "delta", "native"):
        raise SparkReadError(f"engine={engine!r} is not known: use 'delta' or 'native'.")
    if engine == "native":
        return None
    opened = reference.open()
    if not isinstance(opened, SharedTable):
        return reference.text, {}
    reason = None
    if opened.location is None:
        reason = "it is offered by URL, and Delta's reader opens directories"
    elif len(locations(opened)) > 1:
        reason = "it has files in auxiliary locations, each with a credential of its own"
    if reason is None:
        return path_and_options(opened, reference, _session_secret(spark), renew=renew)
    if engine == "delta":
        raise SparkReadError(
            f"{reference.text} cannot be read by Delta's own reader: {reason}. Leave engine out."
        )
    log.warning("%s is read by the lakepass data source: %s.", reference.text, reason)
    return None


_sessions: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()


def _session_secret(spark: SparkSession) -> bytes:
    return _sessions.setdefault(spark, secrets.token_bytes(32))


def _travel(version: int | None, timestamp: str | datetime | None) -> dict[str, str]:
    if version is not None and timestamp is not None:
        raise SparkReadError("Give a version or a timestamp, not both.")
    return _texts({"versionAsOf": version, "timestampAsOf": timestamp})


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value.isoformat(" ") if isinstance(value, datetime) else str(value)
        for name, value in given.items()
        if value is not None
    }


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"
