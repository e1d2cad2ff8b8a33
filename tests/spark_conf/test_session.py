"""The jars that go with a PySpark, and the settings of a session, without starting one."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from lakepass.spark_conf import jars
from lakepass.spark_conf.session import configure, session_settings


def test_each_release_has_its_own_delta_and_hadoop() -> None:
    assert jars.packages("4.2.1", ("aws",)) == [
        "io.delta:delta-spark_4.2_2.13:4.4.0",
        "org.apache.hadoop:hadoop-aws:3.5.0",
        "software.amazon.awssdk:s3:2.35.4",
        "software.amazon.awssdk:s3-transfer-manager:2.35.4",
    ]
    assert jars.packages("4.0.0", ("azure", "gcp")) == [
        "io.delta:delta-spark_4.0_2.13:4.4.0",
        "org.apache.hadoop:hadoop-azure:3.4.1",
        "com.google.cloud.bigdataoss:gcs-connector:4.0.3",
    ]


def test_no_cloud_asked_for_brings_none() -> None:
    assert jars.packages("4.2.1", ()) == ["io.delta:delta-spark_4.2_2.13:4.4.0"]


@pytest.mark.parametrize("version", ["4.3.0", "3.5.1", "5.0.0"])
def test_an_unmatched_spark_is_refused_with_what_to_do(version: str) -> None:
    with pytest.raises(jars.SparkVersionError, match=rf"PySpark {re.escape(version)}.*4\.2\.x.*provided"):
        session_settings(version)


def test_an_unknown_cloud_is_refused() -> None:
    with pytest.raises(jars.SparkVersionError, match="'ibm' is not a cloud"):
        session_settings("4.2.1", clouds=("ibm",))


def test_provided_jars_are_left_alone() -> None:
    settings = session_settings("9.9.9", jars="provided")
    assert not [key for key in settings if key.startswith("spark.jars")]
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"


def test_no_jars_sets_up_the_data_source_alone() -> None:
    settings = session_settings("9.9.9", jars="none")
    assert not [key for key in settings if key.startswith("spark.jars") or "delta" in settings[key]]
    assert "spark.redaction.regex" in settings


def test_maven_central_alone_unless_a_mirror_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert session_settings("4.2.1")["spark.jars.ivySettings"] == str(jars.IVY_SETTINGS)
    assert jars.IVY_SETTINGS.exists()
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "https://mirror.example.com/maven")
    assert "spark.jars.ivySettings" not in session_settings("4.2.1")


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.fs.s3a.bucket.b.secret.key",
        "spark.hadoop.fs.s3a.bucket.b.access.key",
        "spark.hadoop.fs.s3a.bucket.b.session.token",
        "spark.hadoop.fs.unitycatalog.auth.token",
        "spark.hadoop.fs.unitycatalog.cred.context.id",
        "spark.hadoop.fs.azure.sas.fixed.token.a.dfs.core.windows.net",
        "spark.hadoop.fs.gs.init.oauth.token",
    ],
)
def test_secrets_are_redacted(key: str) -> None:
    settings = session_settings("4.2.1")
    assert re.search(settings["spark.redaction.regex"], key)
    assert re.search(settings["spark.sql.redaction.options.regex"], key.removeprefix("spark.hadoop."))


def test_what_a_builder_has_is_kept_and_added_to() -> None:
    builder = (
        SparkSession.Builder()
        .config("spark.sql.extensions", "com.example.Own")
        .config("spark.jars.packages", "com.example:own:1")
        .config("spark.sql.catalog.spark_catalog", "com.example.Catalog")
    )
    options = configure(builder, clouds=())._options
    assert options["spark.sql.extensions"] == "com.example.Own,io.delta.sql.DeltaSparkSessionExtension"
    assert options["spark.jars.packages"] == "com.example:own:1,io.delta:delta-spark_4.2_2.13:4.4.0"
    assert options["spark.sql.catalog.spark_catalog"] == "com.example.Catalog"
