"""From a vended credential to Hadoop configuration: pure functions, one per connector.

Static keys hold the credential itself and end with it. Renewing keys hold none: they name Unity Catalog's
published credential provider, which asks the broker's Unity-Catalog-compatible endpoint again before a
credential ends, on the driver and on every executor. Keys are narrowed to the bucket or the account where
the connector allows it, and no file system is shared between two tables: Hadoop would otherwise serve the
second table of a bucket with the first table's credential.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lakepass.reader.credentials import AwsKeys, AzureSas, Credential, GcpToken, StoreSettings
from lakepass.reader.errors import DeltaError
from lakepass.reader.location import Location

_UNITY = "io.unitycatalog.hadoop.internal"
_S3A = "org.apache.hadoop.fs.s3a"
_SCOPED = f"{_UNITY}.fs.CredScopedFileSystem"

_GCS_NUMBERS = {
    "fs.gs.block.size": "67108864",
    "fs.gs.rewrite.max.chunk.size": "536870912",
    "fs.gs.outputstream.buffer.size": "8388608",
    "fs.gs.inputstream.inplace.seek.limit": "8388608",
    "fs.gs.inputstream.min.range.request.size": "2097152",
}


@dataclass(frozen=True)
class Renewal:
    """Where Spark renews a credential by itself: an endpoint that answers as Unity Catalog does."""

    uri: str
    """The base address, to which `/api/2.1/unity-catalog/temporary-table-credentials` is added."""
    token: str = field(repr=False)
    """The recipient's bearer token."""
    table_id: str
    context: str = field(repr=False)
    """Unguessable, one per recipient and session: the JVM caches credentials under it, whoever asks."""


def hadoop_conf(credential: Credential, renewal: Renewal | None = None) -> dict[str, str]:
    """Hadoop's keys for reading one location: the credential in them, or, given a `renewal`, none.

    Every key begins with `fs.`, so that Delta's reader takes them as the options of one read.
    """
    location = Location.parse(credential.location)
    keys = credential.keys
    if isinstance(keys, AwsKeys):
        return _s3a(location, credential.store, None if renewal else keys) | _unity(renewal)
    if isinstance(keys, AzureSas):
        return _abfs(location, None if renewal else keys) | _unity(renewal)
    return _gcs(location, credential.store, None if renewal else keys) | _unity(renewal)


def renewing_conf(location: Location, store: StoreSettings, renewal: Renewal) -> dict[str, str]:
    """The renewing keys for a location, from no credential at all."""
    if location.scheme == "s3":
        return _s3a(location, store, None) | _unity(renewal)
    if location.scheme == "abfss":
        return _abfs(location, None) | _unity(renewal)
    if location.scheme == "gs":
        return _gcs(location, store, None) | _unity(renewal)
    raise DeltaError(f"{location} is not in a cloud's store; Spark reads it without configuration.")


def spark_conf(credential: Credential, renewal: Renewal | None = None) -> dict[str, str]:
    """The same keys as Spark settings, for a `--conf` list or spark-defaults.conf."""
    return {f"spark.hadoop.{key}": value for key, value in hadoop_conf(credential, renewal).items()}


def hadoop_path(location: Location) -> str:
    """The location as Spark's connectors name it: S3 is `s3a://` there."""
    text = str(location)
    return f"s3a{text.removeprefix('s3')}" if location.scheme == "s3" else text


def _s3a(location: Location, store: StoreSettings, keys: AwsKeys | None) -> dict[str, str]:
    # The form for one bucket wins over whatever the session or the cluster has set for it.
    bucket = f"fs.s3a.bucket.{location.bucket}"
    conf = {"fs.s3a.impl.disable.cache": "true", "fs.s3.impl.disable.cache": "true"}
    if keys is None:
        conf |= {
            "fs.s3a.impl": _SCOPED,
            "fs.s3.impl": _SCOPED,
            f"{bucket}.aws.credentials.provider": f"{_UNITY}.auth.AwsVendedTokenProvider",
        }
    else:
        kind = "Simple" if keys.session_token is None else "Temporary"
        conf |= {
            "fs.s3a.impl": f"{_S3A}.S3AFileSystem",
            "fs.s3.impl": f"{_S3A}.S3AFileSystem",
            f"{bucket}.aws.credentials.provider": f"{_S3A}.{kind}AWSCredentialsProvider",
            f"{bucket}.access.key": keys.access_key_id,
            f"{bucket}.secret.key": keys.secret_access_key,
        }
        if keys.session_token is not None:
            conf[f"{bucket}.session.token"] = keys.session_token
    if store.endpoint:
        conf[f"{bucket}.endpoint"] = store.endpoint
        plain = store.endpoint.startswith("http://")
        conf[f"{bucket}.connection.ssl.enabled"] = "false" if plain else "true"
    if store.region:
        conf[f"{bucket}.endpoint.region"] = store.region
    if store.path_style:
        conf[f"{bucket}.path.style.access"] = "true"
    return conf


def _abfs(location: Location, keys: AzureSas | None) -> dict[str, str]:
    host = location.account_host
    conf = {
        "fs.abfs.impl.disable.cache": "true",
        "fs.abfss.impl.disable.cache": "true",
        f"fs.azure.account.auth.type.{host}": "SAS",
        f"fs.azure.account.hns.enabled.{host}": "true",
        "fs.azure.metrics.collection.enabled": "false",
    }
    if keys is None:
        conf |= {
            "fs.abfs.impl": _SCOPED,
            "fs.abfss.impl": _SCOPED,
            f"fs.azure.sas.token.provider.type.{host}": f"{_UNITY}.auth.AbfsVendedTokenProvider",
        }
    else:
        conf[f"fs.azure.sas.fixed.token.{host}"] = keys.sas_token
    return conf


def _gcs(location: Location, store: StoreSettings, keys: GcpToken | None) -> dict[str, str]:
    connector = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
    conf = {
        "fs.gs.impl": _SCOPED if keys is None else connector,
        "fs.gs.impl.disable.cache": "true",
        "fs.gs.auth.type": "ACCESS_TOKEN_PROVIDER",
        "fs.gs.auth.access.token.provider": f"{_UNITY}.auth.GcsVendedTokenProvider",
        "fs.gs.create.items.conflict.check.enable": "false",
        **_GCS_NUMBERS,
    }
    if keys is None:
        conf["fs.gs.impl.original"] = connector
    else:
        # The connector takes a token from a provider class only. Unity Catalog's begins with the one that
        # it is given and, told of no end, never asks for another; it wants to know what the token is for.
        conf |= {
            "fs.gs.init.oauth.token": keys.oauth_token,
            "fs.unitycatalog.credential.cache.enabled": "false",
            "fs.unitycatalog.credentials.type": "path",
            "fs.unitycatalog.path": str(location),
            "fs.unitycatalog.path.operation": "PATH_READ",
            "fs.unitycatalog.cred.context.id": "static",
        }
    if store.endpoint:
        conf["fs.gs.storage.root.url"] = store.endpoint
    return conf


def _unity(renewal: Renewal | None) -> dict[str, str]:
    if renewal is None:
        return {}
    return {
        "fs.unitycatalog.uri": renewal.uri,
        "fs.unitycatalog.auth.type": "static",
        "fs.unitycatalog.auth.token": renewal.token,
        "fs.unitycatalog.credentials.type": "table",
        "fs.unitycatalog.table.id": renewal.table_id,
        "fs.unitycatalog.table.operation": "READ",
        "fs.unitycatalog.cred.context.id": renewal.context,
    }
