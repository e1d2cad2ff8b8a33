"""What each Hadoop key is for, in one line; `*` stands for a bucket, or for an Azure account's host."""

from __future__ import annotations

KEYS = {
    "fs.s3a.impl": "the S3A connector, or Unity Catalog's file system with one connector per credential",
    "fs.s3.impl": "the same for paths that a log writes as s3://",
    "fs.s3a.impl.disable.cache": "no file system shared by bucket: two tables of one have two credentials",
    "fs.s3.impl.disable.cache": "the same for s3://",
    "fs.s3a.bucket.*.aws.credentials.provider": "where keys for this bucket come from",
    "fs.s3a.bucket.*.access.key": "the temporary access key",
    "fs.s3a.bucket.*.secret.key": "its secret",
    "fs.s3a.bucket.*.session.token": "its session token, which carries the scope",
    "fs.s3a.bucket.*.endpoint": "the store's address, when it is not AWS",
    "fs.s3a.bucket.*.endpoint.region": "the bucket's region, so that the SDK need not ask",
    "fs.s3a.bucket.*.path.style.access": "the bucket in the path, for stores without a name per bucket",
    "fs.s3a.bucket.*.connection.ssl.enabled": "whether the endpoint speaks TLS",
    "fs.azure.account.auth.type.*": "the account is opened with a shared access signature",
    "fs.azure.account.hns.enabled.*": "a hierarchical namespace; unsaid, the connector probes the root",
    "fs.azure.sas.fixed.token.*": "the signature",
    "fs.azure.sas.token.provider.type.*": "where signatures for this account come from",
    "fs.azure.metrics.collection.enabled": "no report of its own, which can hold a job at its end",
    "fs.abfs.impl": "one connector per credential, for abfs://",
    "fs.abfss.impl": "one connector per credential, for abfss://",
    "fs.abfs.impl.disable.cache": "no file system shared by account: two tables of one have two credentials",
    "fs.abfss.impl.disable.cache": "the same for abfss://",
    "fs.gs.impl": "Google's connector, or Unity Catalog's file system that keeps one per credential",
    "fs.gs.impl.original": "the connector below it",
    "fs.gs.impl.disable.cache": "no file system shared by bucket: two tables of one have two credentials",
    "fs.gs.auth.type": "tokens come from a provider class; the connector takes none as it is",
    "fs.gs.auth.access.token.provider": "where tokens come from",
    "fs.gs.init.oauth.token": "the access token that the provider begins with",
    "fs.gs.storage.root.url": "the store's address, when it is not Google's",
    "fs.gs.create.items.conflict.check.enable": "no probe of parent directories, which the scope refuses",
    "fs.gs.block.size": "a number, because the connector cannot read the 64m of Hadoop 3.5",
    "fs.gs.rewrite.max.chunk.size": "a number, as above",
    "fs.gs.outputstream.buffer.size": "a number, as above",
    "fs.gs.inputstream.inplace.seek.limit": "a number, as above",
    "fs.gs.inputstream.min.range.request.size": "a number, as above",
    "fs.unitycatalog.uri": "the broker that renews the credential",
    "fs.unitycatalog.auth.type": "the recipient is known by a bearer token",
    "fs.unitycatalog.auth.token": "the recipient's token",
    "fs.unitycatalog.credentials.type": "whether the credential is for a table or a path",
    "fs.unitycatalog.path": "the directory",
    "fs.unitycatalog.path.operation": "reading only",
    "fs.unitycatalog.table.id": "the table",
    "fs.unitycatalog.table.operation": "reading only",
    "fs.unitycatalog.cred.context.id": "keeps a recipient's credentials apart in the JVM's cache; a secret",
    "fs.unitycatalog.credential.cache.enabled": "no credential shared in the JVM",
}


def explained(key: str) -> str:
    """What a key of Hadoop, or of Spark with `spark.hadoop.` before it, is for."""
    plain = key.removeprefix("spark.hadoop.")
    for pattern, meaning in KEYS.items():
        before, star, after = pattern.partition("*")
        if plain == pattern or (star and plain.startswith(before) and plain.endswith(after)):
            return meaning
    raise KeyError(key)
