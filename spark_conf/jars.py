"""Which jars go with the installed PySpark: one row per Spark release, tried together.

Delta, Hadoop's connectors and the AWS SDK have to match Spark's own Hadoop, or a job dies in a class loader.
The sets are slim: `hadoop-aws` alone would pull an SDK bundle of 700 MB, of which reading a table needs 25
MB.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lakepass.reader.errors import DeltaError


class SparkVersionError(DeltaError):
    """No set of jars is known for the installed PySpark."""


@dataclass(frozen=True)
class Release:
    """What goes with one release line of Spark."""

    delta: str
    """Delta Lake's Spark artifact; it brings Unity Catalog's renewing credential providers."""
    hadoop: str
    """The Hadoop that Spark's own client is, which the connectors must equal."""
    aws_sdk: str
    """The AWS SDK that this Hadoop was built with, or the first after it whose modules are all published."""
    gcs_connector: str
    """Google's connector, in its shaded form."""


_GCS = "com.google.cloud.bigdataoss:gcs-connector:4.0.3"

RELEASES = {
    "4.2": Release("io.delta:delta-spark_4.2_2.13:4.4.0", "3.5.0", "2.35.4", _GCS),
    "4.1": Release("io.delta:delta-spark_4.1_2.13:4.4.0", "3.4.2", "2.29.52", _GCS),
    "4.0": Release("io.delta:delta-spark_4.0_2.13:4.4.0", "3.4.1", "2.25.1", _GCS),
}
"""By Spark's major and minor version."""

CLOUDS = ("aws", "azure", "gcp")

# Spark ships these itself; a second version of them beside its own breaks it.
_SHIPPED_WITH_SPARK = (
    "org.apache.hadoop:hadoop-client*",
    "org.apache.hadoop:hadoop-common",
    "org.apache.spark:*",
    "org.scala-lang:*",
    "org.apache.parquet:*",
    "com.fasterxml.jackson*:*",
    "io.netty:*",
    "org.apache.logging.log4j:*",
    "org.slf4j:*",
    "com.github.luben:zstd-jni",
    "org.xerial.snappy:*",
    "org.roaringbitmap:*",
    "org.apache.httpcomponents:*",
    "org.apache.commons:*",
    "commons-*:*",
)
_AWS_BUNDLE = "software.amazon.awssdk:bundle"

IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")
"""Resolves from Maven Central alone: a stray file in a user's local Maven folder breaks it otherwise."""


def release_for(spark_version: str) -> Release:
    """The row for a version of Spark, such as `4.2.1`."""
    line = ".".join(spark_version.split(".")[:2])
    found = RELEASES.get(line)
    if found is None:
        lines = ", ".join(f"{known}.x" for known in sorted(RELEASES))
        raise SparkVersionError(
            f"There is no Delta Lake release known to work with PySpark {spark_version}. Known are {lines}: "
            "install one of them (pip install 'pyspark>=4.0,<4.3'), or bring jars of your own and pass "
            'jars="provided".'
        )
    return found


def packages(spark_version: str, clouds: Iterable[str] = ("aws",)) -> list[str]:
    """Maven coordinates for `spark.jars.packages`: Delta Lake, and the connectors of the clouds asked for."""
    release = release_for(spark_version)
    chosen = check_clouds(clouds)
    coordinates = [release.delta]
    if "aws" in chosen:
        coordinates += [
            f"org.apache.hadoop:hadoop-aws:{release.hadoop}",
            f"software.amazon.awssdk:s3:{release.aws_sdk}",
            f"software.amazon.awssdk:s3-transfer-manager:{release.aws_sdk}",
        ]
    if "azure" in chosen:
        coordinates.append(f"org.apache.hadoop:hadoop-azure:{release.hadoop}")
    if "gcp" in chosen:
        coordinates.append(release.gcs_connector)
    return coordinates


def exclusions() -> list[str]:
    """Patterns for `spark.jars.excludes`: what Spark ships itself, and the AWS bundle."""
    return [*_SHIPPED_WITH_SPARK, _AWS_BUNDLE]


def check_clouds(clouds: Iterable[str]) -> tuple[str, ...]:
    """The clouds in a fixed order; a name that is none of them is refused."""
    wanted = (clouds,) if isinstance(clouds, str) else tuple(clouds)
    unknown = sorted(set(wanted) - set(CLOUDS))
    if unknown:
        raise SparkVersionError(f"{unknown[0]!r} is not a cloud; the connectors are for {', '.join(CLOUDS)}.")
    return tuple(cloud for cloud in CLOUDS if cloud in wanted)
