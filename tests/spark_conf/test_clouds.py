"""Azure and Google Cloud end to end: a broker vends at the gates, and both ways in read with what it vends.

The gates' certificate is trusted and ABFS told where it is by settings of the session; all else is what
`read_table` does for any user.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakepass.spark_conf import (
    SparkReadError,
    StaticCredentialWarning,
    read_options,
    read_table,
    told_in_words,
)
from tests.broker.server import RunningBroker, running_broker
from tests.clouds.azurite import Azurite
from tests.clouds.gcs import Gcs
from tests.spark_conf.comparing import sorted_rows
from tests.tables.fixtures import Fixture, place

pytestmark = pytest.mark.spark
TABLES = ("mapping_deletion_vectors", "checkpoint_v2_parquet")
LIFE = 4
LEAD = "spark.hadoop.fs.unitycatalog.renewal.leadTimeMillis"


@dataclass(frozen=True)
class Cloud:
    """Two fixture tables in a cloud's store, and brokers that vend for them."""

    root: str
    tables: dict[str, Fixture]
    lasting: dict[str, Any]
    """The storage entry of a broker whose credentials live for an hour."""
    brief: dict[str, Any]
    """The storage entry of one whose credentials live for seconds."""
    environment: Mapping[str, str]
    folder: Path

    @contextmanager
    def broker(self, entry: dict[str, Any], lifetime: str) -> Iterator[tuple[RunningBroker, str]]:
        """A broker, and what its recipient types before a table's name."""
        config = {"credentials": {"lifetime": lifetime}}
        storage = [{"location": self.root, **entry}]
        with running_broker(storage=storage, config=config, environment=self.environment) as broker:
            for name in self.tables:
                broker.share_table(f"s.d.{name}", f"{self.root}tables/{name}", modes=("dir",))
            profile = self.folder / f"{lifetime}.share"
            profile.touch(mode=0o600)
            profile.write_text(json.dumps(broker.recipient("ann", shares=["s"])))
            yield broker, f"{profile}#s.d."


def seeded(store: Azurite | Gcs, root: str, folder: Path) -> dict[str, Fixture]:
    tables = {name: place(name, folder, f"{root}tables/{name}") for name in TABLES}
    for name, table in tables.items():
        store.seed(table.path, f"{root}tables/{name}")
    return tables


@pytest.fixture
def azure(spark: SparkSession, azurite: Azurite, tmp_path: Path) -> Iterator[Cloud]:
    trust(spark, azurite.ca_file)
    settings = {"fs.azure.abfs.endpoint": azurite.authority, "fs.azure.io.retry.max.retries": "0"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    root = azurite.location(azurite.create_container(), "")
    entry = {"azure": {"endpoint": azurite.plain_endpoint}}
    yield Cloud(root, seeded(azurite, root, tmp_path), entry, entry, azurite.identity, tmp_path)
    for name in settings:
        spark.conf.unset(name)


@pytest.fixture
def google(gcs: Gcs, tmp_path: Path) -> Cloud:
    root = f"gs://{gcs.create_bucket()}/"
    settings = {"endpoint": gcs.endpoint, "token_endpoint": gcs.token_endpoint}
    lasting, brief = (
        {"gcp": {**settings, "key_file": str(gcs.key_files[account])}} for account in ("broker", "brief")
    )
    return Cloud(root, seeded(gcs, root, tmp_path), lasting, brief, {}, tmp_path)


def trust(spark: SparkSession, certificates: Path) -> None:
    """Let the session's JVM trust the certificates in a file: ABFS speaks TLS to `abfss://` always."""
    java: Any = spark._jvm
    store = java.java.security.KeyStore.getInstance("PKCS12")
    store.load(None, None)
    factory = java.java.security.cert.CertificateFactory.getInstance("X.509")
    found = factory.generateCertificates(java.java.io.FileInputStream(str(certificates)))
    for number, certificate in enumerate(found):
        store.setCertificateEntry(str(number), certificate)
    trusted = java.javax.net.ssl.TrustManagerFactory.getInstance("PKIX")
    trusted.init(store)
    context = java.javax.net.ssl.SSLContext.getInstance("TLS")
    context.init(None, trusted.getTrustManagers(), None)
    java.javax.net.ssl.SSLContext.setDefault(context)


def reads(spark: SparkSession, cloud: Cloud) -> None:
    """Static, renewing and by the data source, until the grant ends; and no table by another's credential."""
    one, other = TABLES
    rows = {name: sorted_rows(table.rows()) for name, table in cloud.tables.items()}
    with cloud.broker(cloud.lasting, "1h") as (_, tables):
        with pytest.warns(StaticCredentialWarning, match="ends 20"):
            assert sorted_rows(read_table(spark, tables + one, renew=False)) == rows[one]
        for renew in (True, False):
            with warnings.catch_warnings(action="ignore", category=StaticCredentialWarning):
                path, options = read_options(tables + one, renew=renew)
            with pytest.raises((PySparkException, Py4JJavaError), match="403"):
                spark.read.format("delta").options(**options).load(path.replace(one, other)).collect()
    spark.conf.set(LEAD, "1000")
    with cloud.broker(cloud.brief, f"{LIFE}s") as (broker, tables):
        delta = read_table(spark, tables + one)
        native = read_table(spark, tables + other, engine="native")
        before = broker.log().count("temporary-table-credentials 200")
        time.sleep(LIFE + 1)
        assert sorted_rows(delta) == rows[one]
        assert broker.log().count("temporary-table-credentials 200") > before
        assert sorted_rows(native) == rows[other]
        broker.catalog.recipients.revoke_grant("ann", "s")
        time.sleep(LIFE + 1)
        with (
            pytest.raises(SparkReadError, match=r"one cannot be read: .*404.*not shared"),
            told_in_words("one"),
        ):
            delta.collect()
    spark.conf.unset(LEAD)


def test_azure(spark: SparkSession, azure: Cloud) -> None:
    reads(spark, azure)


def test_google_cloud(spark: SparkSession, google: Cloud) -> None:
    reads(spark, google)
