"""Errors at the driver, in words: what Java or a worker threw, translated where we know what it means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakepass.reader.errors import DeltaError
from lakepass.reader.secrets import scrub


class SparkReadError(DeltaError):
    """A shared table cannot be read with Spark; the message says why and what to do."""


_BROKER_ANSWER = re.compile(r"call failed with: (\d{3}) - (\{.*?\})\s*(?:$|\n|\])", re.DOTALL)

# What a data engineer sees of it otherwise is forty lines of Java. The first pattern that fits is told.
_MEANINGS = (
    (
        r"ClassNotFoundException: (?:Class )?(?:org\.apache\.hadoop\.fs\.s3a|software\.amazon)",
        "Spark has no connector for S3. Start the session with lakepass_session(clouds=['aws']), or put "
        "hadoop-aws and the AWS SDK that match its Hadoop on the cluster.",
    ),
    (
        r"ClassNotFoundException: (?:Class )?org\.apache\.hadoop\.fs\.azurebfs",
        "Spark has no connector for Azure. Start the session with lakepass_session(clouds=['azure']), or put "
        "hadoop-azure on the cluster.",
    ),
    (
        r"ClassNotFoundException: (?:Class )?com\.google\.cloud\.hadoop",
        "Spark has no connector for Cloud Storage. Start the session with lakepass_session(clouds=['gcp']), "
        "or put Google's gcs-connector on the cluster.",
    ),
    (
        r"ClassNotFoundException: (?:Class )?io\.unitycatalog",
        "Spark lacks Unity Catalog's credential provider (io.unitycatalog:unitycatalog-hadoop), which comes "
        "with Delta 4.4: use that Delta, or read with renew=False and a credential that outlives the job.",
    ),
    (
        r"(?:DATA_SOURCE_NOT_FOUND|Failed to find (?:the )?data source).*?delta",
        "Spark has no Delta Lake. Start the session with lakepass_session(), or configure(builder) before it "
        'starts, or read with engine="native", which needs no jars.',
    ),
    (
        r"Connection refused|ConnectException|UnknownHostException",
        "The broker or the store cannot be reached from Spark. Driver and executors both talk to them: look "
        "whether their addresses are reachable from every node.",
    ),
    (
        r"ExpiredToken|token (?:included in the request )?is expired|400 Bad Request",
        "The credential has ended while the job ran. Read the table again; with a broker that renews "
        "credentials, leave renew on.",
    ),
    (
        r"AccessDenied|403 Forbidden|Status Code: 403",
        "The store refused the credential: it has ended, or the table's log names a file outside the table's "
        "directory.",
    ),
    (
        r"DeltaUnsupportedTableFeatureException|DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        'This version of Delta Lake cannot read a feature of the table. Use a newer one, or engine="native".',
    ),
)


@contextmanager
def told_in_words(what: str) -> Iterator[None]:
    """Errors of Spark inside the block as a `SparkReadError` that names `what` was read.

    Reading begins with an action, so a job puts its actions into the block: what ends a credential or hides a
    broker while they run is told then, with Java's trace as the cause.
    """
    try:
        yield
    except DeltaError:
        raise
    except Exception as error:
        meaning = translated(str(error))
        if meaning is None:
            raise
        raise SparkReadError(f"{what} cannot be read: {meaning}") from error


def translated(text: str) -> str | None:
    """What an error's text means, or None when it is not one we know."""
    answer = _BROKER_ANSWER.search(text)
    if answer is not None:
        return f"the broker refused a credential ({answer[1]}): {scrub(answer[2])[:500]}"
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, text, re.DOTALL):
            return meaning
    return None
