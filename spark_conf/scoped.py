"""From a shared table to the path and options of one read, which open its directory and nothing else."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import warnings

from lakepass.reader.sharing.table import SharedTable
from lakepass.reader.sharing.vended import Vended
from lakepass.spark_conf.errors import SparkReadError
from lakepass.spark_conf.hadoop import Renewal, hadoop_conf, hadoop_path, renewing_conf
from lakepass.spark_conf.opening import Mode, Reference, ends, locations, vended


class StaticCredentialWarning(UserWarning):
    """A read holds a credential that nobody renews, and ends with it."""


def read_options(table: str, *, mode: Mode = "auto", renew: bool = True) -> tuple[str, dict[str, str]]:
    """Path and options for a read by hand: `spark.read.format("delta").options(**options).load(path)`.

    They hold a secret: the recipient's token when they renew, the credential when not.
    """
    reference = Reference(table, mode)
    return path_and_options(shared_directory(reference), reference, secrets.token_bytes(32), renew=renew)


def shared_directory(reference: Reference) -> SharedTable:
    """The table, which must be one that is shared by directory."""
    opened = reference.open()
    if not isinstance(opened, SharedTable) or opened.location is None:
        raise SparkReadError(
            f"{reference.text} is not shared by directory, so there are no settings of a file system for it. "
            'Read it with spark.read.format("lakepass").'
        )
    return opened


def path_and_options(
    opened: SharedTable, reference: Reference, session: bytes, *, renew: bool
) -> tuple[str, dict[str, str]]:
    """Path and options of a table; `session` is a secret of the session, the same for all its reads."""
    location = locations(opened)[0]
    answer = vended(opened, location)
    renewal = _renewal(answer, reference, session) if renew else None
    if renewal is not None:
        return hadoop_path(location), renewing_conf(location, answer.credential.store, renewal)
    if answer.credential.expires_at is not None:
        reason = ", because its server has no way for Spark to renew it" if renew else ""
        warnings.warn(
            f"{reference.text} is read with a credential that ends {ends(answer.credential)}{reason}; what "
            "is read with it ends then. The native engine renews by itself.",
            StaticCredentialWarning,
            stacklevel=4,
        )
    return hadoop_path(location), hadoop_conf(answer.credential)


def _renewal(answer: Vended, reference: Reference, session: bytes) -> Renewal | None:
    """Where Spark renews, when the server says so and the recipient's token can be given to it."""
    where = answer.renewal
    token = reference.profile().bearer_token
    if not where.unity_catalog or not where.table_id or not token:
        return None
    # Unity Catalog's cache of credentials is looked up by the context and the table, not by the token: one
    # context per session and recipient, not to be guessed, and stable, since Delta keeps a log in memory by
    # its options.
    context = hmac.new(session, token.encode(), hashlib.sha256).hexdigest()
    return Renewal(where.unity_catalog, token, where.table_id, context)
