"""Every Hadoop key that a credential becomes, pinned by value, and explained."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakepass.reader.credentials import AwsKeys, AzureSas, Credential, GcpToken, StoreSettings
from lakepass.reader.errors import DeltaError
from lakepass.reader.location import Location
from lakepass.spark_conf.hadoop import Renewal, hadoop_conf, hadoop_path, renewing_conf, spark_conf
from lakepass.spark_conf.keys import KEYS, explained

END = datetime(2030, 1, 1, tzinfo=UTC)
AWS = Credential(
    "s3://lake/sales/orders",
    AwsKeys("local-key", "local-secret", "local-session"),
    END,
    StoreSettings("http://127.0.0.1:9000", "eu-west-1", True),
)
AZURE = Credential("abfss://data@acct.dfs.core.windows.net/sales", AzureSas("sp=rl&sig=local"), END)
GCP = Credential("gs://lake/sales", GcpToken("local-token"), END)
RENEWAL = Renewal("https://share.example.com", "local-recipient", "b1946ac9", "context-1")

UNITY = {
    "fs.unitycatalog.uri": "https://share.example.com",
    "fs.unitycatalog.auth.type": "static",
    "fs.unitycatalog.auth.token": "local-recipient",
    "fs.unitycatalog.credentials.type": "table",
    "fs.unitycatalog.table.id": "b1946ac9",
    "fs.unitycatalog.table.operation": "READ",
    "fs.unitycatalog.cred.context.id": "context-1",
}
S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
SCOPED = "io.unitycatalog.hadoop.internal.fs.CredScopedFileSystem"
GCS_NUMBERS = {
    "fs.gs.block.size": "67108864",
    "fs.gs.rewrite.max.chunk.size": "536870912",
    "fs.gs.outputstream.buffer.size": "8388608",
    "fs.gs.inputstream.inplace.seek.limit": "8388608",
    "fs.gs.inputstream.min.range.request.size": "2097152",
}


def test_s3_static() -> None:
    assert hadoop_conf(AWS) == {
        "fs.s3a.impl": S3A,
        "fs.s3.impl": S3A,
        "fs.s3a.impl.disable.cache": "true",
        "fs.s3.impl.disable.cache": "true",
        "fs.s3a.bucket.lake.aws.credentials.provider": TEMPORARY,
        "fs.s3a.bucket.lake.access.key": "local-key",
        "fs.s3a.bucket.lake.secret.key": "local-secret",
        "fs.s3a.bucket.lake.session.token": "local-session",
        "fs.s3a.bucket.lake.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.bucket.lake.connection.ssl.enabled": "false",
        "fs.s3a.bucket.lake.endpoint.region": "eu-west-1",
        "fs.s3a.bucket.lake.path.style.access": "true",
    }


def test_s3_on_aws_itself_names_no_endpoint() -> None:
    conf = hadoop_conf(
        Credential("s3a://lake/t", AwsKeys("k", "s", "t"), END, StoreSettings(region="eu-west-1"))
    )
    assert not [key for key in conf if "ssl" in key or "path.style" in key or key.endswith(".endpoint")]
    assert conf["fs.s3a.bucket.lake.endpoint.region"] == "eu-west-1"


def test_s3_keys_without_a_session_use_the_simple_provider() -> None:
    conf = hadoop_conf(Credential("s3://lake/t", AwsKeys("k", "s"), None))
    provider = conf["fs.s3a.bucket.lake.aws.credentials.provider"]
    assert provider == "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    assert "fs.s3a.bucket.lake.session.token" not in conf


def test_s3_renewing_holds_no_key_of_the_store() -> None:
    assert hadoop_conf(AWS, RENEWAL) == {
        "fs.s3a.impl": SCOPED,
        "fs.s3.impl": SCOPED,
        "fs.s3a.impl.disable.cache": "true",
        "fs.s3.impl.disable.cache": "true",
        "fs.s3a.bucket.lake.aws.credentials.provider": (
            "io.unitycatalog.hadoop.internal.auth.AwsVendedTokenProvider"
        ),
        "fs.s3a.bucket.lake.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.bucket.lake.connection.ssl.enabled": "false",
        "fs.s3a.bucket.lake.endpoint.region": "eu-west-1",
        "fs.s3a.bucket.lake.path.style.access": "true",
        **UNITY,
    }


def test_azure_static() -> None:
    assert hadoop_conf(AZURE) == {
        "fs.abfs.impl.disable.cache": "true",
        "fs.abfss.impl.disable.cache": "true",
        "fs.azure.account.auth.type.acct.dfs.core.windows.net": "SAS",
        "fs.azure.account.hns.enabled.acct.dfs.core.windows.net": "true",
        "fs.azure.metrics.collection.enabled": "false",
        "fs.azure.sas.fixed.token.acct.dfs.core.windows.net": "sp=rl&sig=local",
    }


def test_azure_renewing() -> None:
    assert hadoop_conf(AZURE, RENEWAL) == {
        "fs.abfs.impl": SCOPED,
        "fs.abfss.impl": SCOPED,
        "fs.abfs.impl.disable.cache": "true",
        "fs.abfss.impl.disable.cache": "true",
        "fs.azure.account.auth.type.acct.dfs.core.windows.net": "SAS",
        "fs.azure.account.hns.enabled.acct.dfs.core.windows.net": "true",
        "fs.azure.metrics.collection.enabled": "false",
        "fs.azure.sas.token.provider.type.acct.dfs.core.windows.net": (
            "io.unitycatalog.hadoop.internal.auth.AbfsVendedTokenProvider"
        ),
        **UNITY,
    }


def test_gcs_static() -> None:
    assert hadoop_conf(GCP) == {
        "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "fs.gs.impl.disable.cache": "true",
        "fs.gs.auth.type": "ACCESS_TOKEN_PROVIDER",
        "fs.gs.auth.access.token.provider": "io.unitycatalog.hadoop.internal.auth.GcsVendedTokenProvider",
        "fs.gs.create.items.conflict.check.enable": "false",
        "fs.gs.init.oauth.token": "local-token",
        "fs.unitycatalog.credential.cache.enabled": "false",
        "fs.unitycatalog.credentials.type": "path",
        "fs.unitycatalog.path": "gs://lake/sales",
        "fs.unitycatalog.path.operation": "PATH_READ",
        "fs.unitycatalog.cred.context.id": "static",
        **GCS_NUMBERS,
    }


def test_gcs_renewing() -> None:
    assert hadoop_conf(GCP, RENEWAL) == {
        "fs.gs.impl": SCOPED,
        "fs.gs.impl.original": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "fs.gs.impl.disable.cache": "true",
        "fs.gs.auth.type": "ACCESS_TOKEN_PROVIDER",
        "fs.gs.auth.access.token.provider": "io.unitycatalog.hadoop.internal.auth.GcsVendedTokenProvider",
        "fs.gs.create.items.conflict.check.enable": "false",
        **GCS_NUMBERS,
        **UNITY,
    }


@pytest.mark.parametrize("credential", [AWS, AZURE, GCP], ids=["aws", "azure", "gcp"])
def test_renewing_keys_need_no_credential(credential: Credential) -> None:
    location = Location.parse(credential.location)
    assert renewing_conf(location, credential.store, RENEWAL) == hadoop_conf(credential, RENEWAL)


def test_a_local_table_needs_no_keys() -> None:
    with pytest.raises(DeltaError, match="without configuration"):
        renewing_conf(Location.parse("/data/t"), StoreSettings(), RENEWAL)


def test_spark_settings_have_the_prefix() -> None:
    assert spark_conf(AWS) == {f"spark.hadoop.{key}": value for key, value in hadoop_conf(AWS).items()}


@pytest.mark.parametrize("credential", [AWS, AZURE, GCP], ids=["aws", "azure", "gcp"])
@pytest.mark.parametrize("renewal", [None, RENEWAL], ids=["static", "renewing"])
def test_every_key_fits_a_read_option_and_is_explained(
    credential: Credential, renewal: Renewal | None
) -> None:
    for key in hadoop_conf(credential, renewal):
        assert key == key.lower()  # Spark lower-cases options, so a key with a capital is lost
        assert key.startswith("fs.")
        assert explained(key)
        assert explained(f"spark.hadoop.{key}") == explained(key)


def test_the_readme_explains_every_key() -> None:
    readme = (Path(__file__).parents[2] / "spark_conf/README.md").read_text(encoding="utf-8")
    for key, meaning in KEYS.items():
        assert f"| `{key}` | {meaning} |" in readme


def test_no_secret_in_a_repr() -> None:
    assert "local-recipient" not in repr(RENEWAL)
    assert "context-1" not in repr(RENEWAL)


def test_s3_is_s3a_to_spark() -> None:
    assert hadoop_path(Location.parse("s3://lake/t")) == "s3a://lake/t"
    assert hadoop_path(Location.parse("gs://lake/t")) == "gs://lake/t"
