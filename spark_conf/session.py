"""A SparkSession that can read shared tables: Delta, the clouds' connectors, and secrets kept out of sight.

`configure` puts the settings on a builder that a job already has; `lakepass_session` makes the session. Both
set nothing that the builder or a running session has set before, except to add to it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Literal

from lakepass.reader.errors import DeltaError, MissingExtraError
from lakepass.spark_conf import jars as jar_table
from lakepass.spark_conf.errors import SparkReadError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Jars = Literal["maven", "provided", "none"]
"""From Maven, on the cluster already, or none at all: then only the `lakepass` data source reads."""

_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

# Spark's own patterns, and the names that ours and the connectors' keys carry. The first hides values in the
# UI's environment page, the event log and YARN's listing; the second hides options of a data source in a
# plan.
_REDACT_KEYS = r"(?i)secret|password|passwd|token|access[.]?key|signature|sas[.]|bearer|context[.]id"
_REDACT_OPTIONS = r"(?i)url|secret|token|access[.]?key|sas[.]|bearer|auth|context[.]id"


def session_settings(
    spark_version: str, *, clouds: Iterable[str] = ("aws",), jars: Jars = "maven"
) -> dict[str, str]:
    """The Spark settings for reading shared tables; the pure function behind `configure`."""
    if jars not in ("maven", "provided", "none"):
        raise SparkReadError(f"jars={jars!r} is not known: use 'maven', 'provided' or 'none'.")
    jar_table.check_clouds(clouds)
    settings = {
        "spark.redaction.regex": _REDACT_KEYS,
        "spark.sql.redaction.options.regex": _REDACT_OPTIONS,
    }
    if jars != "none":
        settings |= {
            "spark.sql.extensions": _DELTA_EXTENSION,
            "spark.sql.catalog.spark_catalog": _DELTA_CATALOG,
        }
    if jars == "maven":
        settings |= {
            "spark.jars.packages": ",".join(jar_table.packages(spark_version, clouds)),
            "spark.jars.excludes": ",".join(jar_table.exclusions()),
        }
        if "DEFAULT_ARTIFACT_REPOSITORY" not in os.environ:  # Spark's own way to name a mirror
            settings["spark.jars.ivySettings"] = str(jar_table.IVY_SETTINGS)
    return settings


def configure(
    builder: SparkSession.Builder, *, clouds: Iterable[str] = ("aws",), jars: Jars = "maven"
) -> SparkSession.Builder:
    """Put what shared tables need on a builder, keeping what it already has.

    `clouds` names the connectors to bring (`aws`, `azure`, `gcp`); `jars="provided"` brings none, for a
    cluster that has them.
    """
    present: dict[str, str] = dict(getattr(builder, "_options", {}))
    for key, value in session_settings(installed_pyspark(), clouds=clouds, jars=jars).items():
        if key in ("spark.sql.extensions", "spark.jars.packages", "spark.jars.excludes") and key in present:
            builder = builder.config(key, _joined(present[key], value))
        elif key not in present:
            builder = builder.config(key, value)
    return builder


def lakepass_session(
    app: str = "lakepass",
    *,
    master: str | None = None,
    clouds: Iterable[str] = ("aws",),
    jars: Jars = "maven",
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A SparkSession with Delta Lake and the connectors of `clouds`.

    The first start on a machine downloads the jars (25 MB with `aws`); later ones take them from Ivy's cache.
    `conf` goes on top and wins.
    """
    installed_pyspark()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app)
    if master is not None:
        builder = builder.master(master)
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    # Workers otherwise run whichever python3 is first in PATH, which need not have lakepass in it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        return configure(builder, clouds=clouds, jars=jars).getOrCreate()
    except DeltaError:
        raise
    except Exception as error:
        raise SparkReadError(_why_not_started(str(error), jars)) from error


def _why_not_started(text: str, jars: Jars) -> str:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return "Spark needs Java 17 or newer and there is none: install one, or set JAVA_HOME."
    if "JAVA_GATEWAY_EXITED" in text and jars == "maven":
        return (
            "Spark did not start. What it printed above says why; most often the jars could not be "
            'downloaded. Without a way to Maven Central bring them yourself and pass jars="provided", or '
            'read without any: jars="none" and the lakepass data source.'
        )
    return f"Spark did not start: {text[:1000]}"


def installed_pyspark() -> str:
    """The version of PySpark in this environment."""
    for distribution in ("pyspark", "pyspark-client"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    raise MissingExtraError("spark", "Reading with Spark")


def _joined(first: str, second: str) -> str:
    items = [*first.split(","), *second.split(",")]
    return ",".join(dict.fromkeys(item.strip() for item in items if item.strip()))
