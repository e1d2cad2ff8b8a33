"""Hadoop's connectors reach the gates: a Delta table by ABFS and by Google's connector, with a scoped key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pytest
from azure.storage.filedatalake import generate_directory_sas

from lakepass.reader.credentials import AzureSas, Credential, GcpToken, StoreSettings
from lakepass.spark_conf import hadoop_conf
from tests.clouds.azurite import Azurite
from tests.clouds.gcs import Gcs
from tests.clouds.test_gcs_refuses import boundary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits, one partition column."""
    folder = tmp_path_factory.mktemp("table")
    for numbers in ([1, 2, 3], [4, 5]):
        rows = pa.table({"id": numbers, "part": [number % 2 for number in numbers]})
        deltalake.write_deltalake(folder, rows, mode="append", partition_by=["part"])
    return folder


@pytest.fixture
def managed_identity(azurite: Azurite) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in azurite.identity.items():
            patch.setenv(name, value)
        yield


def _ids(spark: SparkSession, conf: dict[str, str], location: str) -> list[int]:
    frame = spark.read.format("delta").options(**conf).load(location)
    return sorted(row["id"] for row in frame.collect())


@pytest.mark.usefixtures("managed_identity")
def test_abfs_reads_with_a_directory_signature(spark: SparkSession, azurite: Azurite, table: Path) -> None:
    container = azurite.create_container()
    ours, sibling = azurite.location(container, "t/a"), azurite.location(container, "t/ab")
    azurite.seed(table, ours)
    azurite.seed(table, sibling)
    key: object = azurite.delegation_key()
    expires = datetime.now(UTC) + timedelta(minutes=10)
    sas = generate_directory_sas(azurite.account, container, "t/a", key, "rl", expires)  # type: ignore[arg-type]  # the blob SDK's key
    loopback = {
        "fs.azure.abfs.endpoint": azurite.plain_authority,
        "fs.azure.always.use.https": "false",
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        "fs.azure.io.retry.max.retries": "0",
    }
    conf = hadoop_conf(Credential(ours, AzureSas(sas), expires)) | loopback
    # The scheme with two s is encrypted whatever the configuration says.
    assert _ids(spark, conf, ours.replace("abfss:", "abfs:")) == [1, 2, 3, 4, 5]
    with pytest.raises(Exception, match="403"):
        _ids(spark, conf, sibling.replace("abfss:", "abfs:"))


def test_googles_connector_reads_with_a_downscoped_token(spark: SparkSession, gcs: Gcs, table: Path) -> None:
    bucket = gcs.create_bucket()
    ours, sibling = f"gs://{bucket}/t/a", f"gs://{bucket}/t/ab"
    gcs.seed(table, ours)
    gcs.seed(table, sibling)
    token = gcs.downscoped(boundary(bucket, "t/a"))
    expires = datetime.now(UTC) + timedelta(minutes=50)
    conf = hadoop_conf(Credential(ours, GcpToken(token), expires, StoreSettings(endpoint=gcs.endpoint)))
    assert _ids(spark, conf, ours) == [1, 2, 3, 4, 5]
    with pytest.raises(Exception, match="403"):
        _ids(spark, conf, sibling)
