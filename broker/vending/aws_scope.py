"""The scope of an AWS credential: an STS session policy for one directory of one bucket.

A session policy can only take away from what the role may do. Ours leaves reading objects below the directory
and listing with a prefix below it; what IAM does not allow it denies, so there is nothing to forbid.

The list statement names `p/*` alone: `*` stands for nothing as well, so it covers the prefix `p/`, and a path
mentioned twice instead of three times fits a longer one into STS's 2,048 characters. The condition is
`StringLike`, which is false when a request has no prefix: `StringLikeIfExists` would open the whole bucket.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from lakepass.broker.config import ConfigurationError
from lakepass.broker.vending.errors import ScopeRefused
from lakepass.reader.location import Location

POLICY_LIMIT = 2048
"""Characters that STS accepts in an inline session policy."""
PARTITIONS = ("aws", "aws-cn", "aws-us-gov")

_KEY_ARN = re.compile(r"arn:(aws|aws-cn|aws-us-gov):kms:([a-z0-9-]+):\d{12}:key/[A-Za-z0-9-]+")
_DIRECTORY_NEEDED = (
    "A credential cannot be limited to less than the whole bucket {location}: name a directory in it."
)


def session_policy(
    location: Location,
    *,
    partition: str = "aws",
    kms_keys: Sequence[str] = (),
    source_ranges: Sequence[str] = (),
    list_bare_prefix: bool = False,
) -> str:
    """The session policy that reads and lists below `location` and does nothing else.

    `kms_keys` are decrypted only through S3. `source_ranges` hold the credential to these addresses.
    `list_bare_prefix` also allows a list with the prefix `p`, without its slash: some Hadoop versions probe
    the root so, and it shows the names, not the contents, of siblings that begin alike.
    """
    if location.scheme != "s3" or not location.path:
        raise ScopeRefused(_DIRECTORY_NEEDED.format(location=location))
    if partition not in PARTITIONS:
        raise ConfigurationError(f"The AWS partition {partition!r} is not one of {', '.join(PARTITIONS)}.")
    bucket = f"arn:{partition}:s3:::{location.bucket}"
    below = f"{escape(location.path)}/*"
    statements: list[dict[str, Any]] = [
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:GetObjectVersion"],
            "Resource": f"{bucket}/{below}",
        },
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket,
            "Condition": {
                "StringLike": {"s3:prefix": [escape(location.path), below] if list_bare_prefix else below}
            },
        },
    ]
    if source_ranges:
        for statement in statements:
            statement.setdefault("Condition", {})["IpAddress"] = {"aws:SourceIp": list(source_ranges)}
    if kms_keys:
        # Without the addresses: it is S3 that calls KMS, and only for a read that passed them.
        statements.append(_decrypt_through_s3(kms_keys))
    document = {"Version": "2012-10-17", "Statement": statements}
    policy = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    if len(policy) > POLICY_LIMIT:
        raise ScopeRefused(
            f"The policy that would limit a credential to this location has {len(policy)} characters and "
            f"AWS takes {POLICY_LIMIT}. A shorter path (non-ASCII characters count six), fewer KMS keys "
            "or fewer address ranges would make it fit."
        )
    return policy


def escape(path: str) -> str:
    """`path` for a policy, where `*`, `?` and `${…}` would otherwise stand for other text.

    IAM writes the three characters as `${*}`, `${?}` and `${$}` (policy version 2012-10-17).
    """
    return re.sub(r"[$*?]", lambda match: f"${{{match[0]}}}", path)


def partition_of(role_arn: str) -> str:
    """The partition that a role's ARN names."""
    match = re.fullmatch(r"arn:([a-z-]+):(?:iam|sts)::[^:]*:.+", role_arn)
    if match is None or match[1] not in PARTITIONS:
        raise ConfigurationError(
            f"aws.role_arn {role_arn!r} is not a role's ARN, such as "
            "arn:aws:iam::123456789012:role/lakepass-data."
        )
    return match[1]


def _decrypt_through_s3(keys: Sequence[str]) -> dict[str, Any]:
    """`kms:Decrypt` on `keys`, only for requests that S3 makes for the caller, in each key's own region."""
    services: set[str] = set()
    for key in keys:
        match = _KEY_ARN.fullmatch(key)
        if match is None:
            raise ConfigurationError(
                f"aws.kms_keys: {key!r} is not a key's ARN, such as "
                "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-…; an alias cannot be used in a policy, "
                "nor a wildcard."
            )
        services.add(f"s3.{match[2]}.amazonaws.com")
        if match[1] == "aws-cn":
            services.add(f"s3.{match[2]}.amazonaws.com.cn")
    return {
        "Effect": "Allow",
        "Action": "kms:Decrypt",
        "Resource": sorted(set(keys)),
        "Condition": {"StringEquals": {"kms:ViaService": sorted(services)}},
    }
