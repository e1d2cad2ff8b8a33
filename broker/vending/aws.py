"""Credentials for S3 and its likes: STS AssumeRole with the session policy of `aws_scope`.

A store that is not Amazon's usually answers STS at its own endpoint, so that is where it is asked unless
`sts_endpoint` says otherwise. Amazon's STS is asked in the bucket's region, never at the global address.
"""

from __future__ import annotations

import logging
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from lakepass.broker.config import AwsStorage, ConfigurationError
from lakepass.broker.vending.aws_scope import partition_of, session_policy
from lakepass.broker.vending.errors import CloudRefused, CloudUnavailable, ScopeRefused, VendingError
from lakepass.broker.vending.grantee import Grantee
from lakepass.broker.vending.lifetimes import allowed_lifetime
from lakepass.reader.credentials import AwsKeys, Credential, StoreSettings
from lakepass.reader.errors import MissingExtraError
from lakepass.reader.location import Location

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from mypy_boto3_sts import STSClient

logger = logging.getLogger(__name__)

_CHAINED_LIFETIME = timedelta(hours=1)
"""What a role gives at most when it was assumed from another role, or when nothing more was set for it."""
_TOO_LARGE = frozenset({"PackedPolicyTooLarge", "PackedPolicyTooLargeException", "MalformedPolicyDocument"})
_BUSY = frozenset(
    {"Throttling", "ThrottlingException", "RequestLimitExceeded", "SlowDown", "IDPCommunicationError"}
)


class AwsVendor:
    """Vends for one storage entry; holds one STS client, which threads share."""

    cloud = "aws"
    scope = "directory"

    def __init__(self, settings: AwsStorage) -> None:
        if settings.role_arn is None:
            raise ConfigurationError(
                "This storage has no aws.role_arn: without a role to assume, no credential can be limited "
                "to a table."
            )
        self._settings = settings
        self._role = settings.role_arn
        self._partition = partition_of(settings.role_arn)
        self._sts_endpoint = settings.sts_endpoint or _sts_beside(settings.endpoint)
        self._longest: timedelta | None = None
        self._sts = _sts_client(settings, self._sts_endpoint)
        self._region = self._sts.meta.region_name
        own = settings.profile or settings.access_key_id or ""
        self.identity = "|".join((self._role, settings.external_id or "", own, self._sts.meta.endpoint_url))

    def check(self, location: Location, grantee: Grantee) -> str:
        """The scope document for `location`; raises `ScopeRefused` where none exists."""
        return session_policy(
            location,
            partition=self._partition,
            kms_keys=self._settings.kms_keys,
            source_ranges=grantee.source_ranges if self._settings.bind_source_ip else (),
            list_bare_prefix=self._settings.list_bare_prefix,
        )

    def vend(self, location: Location, grantee: Grantee, lifetime: timedelta, request_id: str) -> Credential:
        """Keys that read and list below `location` for about `lifetime`."""
        policy = self.check(location, grantee)
        wanted = allowed_lifetime(lifetime, self._sts_endpoint)
        answer = self._assume(policy, grantee, min(wanted, self._longest or wanted), request_id)
        made = answer["Credentials"]
        keys = AwsKeys(made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])
        logger.info(
            "session policy for %s packed to %s%% of the limit (request %s)",
            location,
            answer.get("PackedPolicySize", "?"),
            request_id,
        )
        store = StoreSettings(
            endpoint=self._settings.endpoint,
            region=self._settings.region or self._region,
            path_style=self._settings.path_style,
        )
        return Credential(str(location), keys, made["Expiration"].astimezone(UTC), store)

    def _assume(self, policy: str, grantee: Grantee, lifetime: timedelta, request_id: str) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        arguments: dict[str, Any] = {
            "RoleArn": self._role,
            "RoleSessionName": grantee.session_name,
            "Policy": policy,
            "DurationSeconds": int(lifetime.total_seconds()),
        }
        if self._settings.source_identity:
            arguments["SourceIdentity"] = grantee.session_name
        if self._settings.external_id is not None:
            arguments["ExternalId"] = self._settings.external_id
        try:
            return cast("dict[str, Any]", self._sts.assume_role(**arguments))
        except ClientError as error:
            if lifetime > _CHAINED_LIFETIME and _says_too_long(error):
                # The role's own limit, or an hour because the broker's identity is itself an assumed role:
                # AWS does not tell which beforehand. Remembered, so that it costs one extra call in all.
                logger.info("%s gives at most an hour (request %s)", self._role, request_id)
                self._longest = _CHAINED_LIFETIME
                return self._assume(policy, grantee, _CHAINED_LIFETIME, request_id)
            raise _translated(error) from None
        except BotoCoreError as error:
            raise _not_reached(error) from None


def _sts_beside(endpoint: str | None) -> str | None:
    """Where a store that is not Amazon's answers STS; None for Amazon's own."""
    host = (urlsplit(endpoint).hostname if endpoint else None) or "amazonaws.com"
    return None if host.endswith(("amazonaws.com", "amazonaws.com.cn")) else endpoint


def _sts_client(settings: AwsStorage, endpoint: str | None) -> STSClient:
    try:
        import boto3
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise MissingExtraError("aws", "Vending credentials for S3") from None
    core = botocore.session.Session(profile=settings.profile)
    core.set_config_variable("sts_regional_endpoints", "regional")
    secret = settings.secret_access_key
    try:
        session = boto3.session.Session(
            aws_access_key_id=settings.access_key_id,
            aws_secret_access_key=None if secret is None else secret.get_secret_value(),
            botocore_session=core,
        )
        region = settings.region or session.region_name or ("us-east-1" if endpoint else None)
        if region is None:
            raise ConfigurationError("aws.region is needed: STS is asked in the region of the bucket.")
        return session.client(
            "sts",
            region_name=region,
            endpoint_url=endpoint,
            config=Config(
                connect_timeout=3,
                read_timeout=10,
                retries={"total_max_attempts": 2, "mode": "standard"},
                max_pool_connections=50,
                # The SDK refuses to ask for less than 15 minutes, which `allowed_lifetime` decides about.
                parameter_validation=False,
            ),
        )
    except BotoCoreError as error:
        raise ConfigurationError(f"The AWS settings cannot be used: {error}") from None


def _says_too_long(error: ClientError) -> bool:
    told = error.response.get("Error", {})
    return told.get("Code") == "ValidationError" and "DurationSeconds" in told.get("Message", "")


def _translated(error: ClientError) -> VendingError:
    told = error.response.get("Error", {})
    code = str(told.get("Code", "Unknown"))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    detail = f"STS AssumeRole: {code} ({status}): {told.get('Message', '')}"
    if code in _TOO_LARGE:
        return ScopeRefused(
            "The policy that would limit a credential to this location is larger than AWS accepts once "
            "packed. A shorter path, fewer KMS keys or fewer address ranges would make it fit.",
            detail=detail,
        )
    if code in _BUSY or status == 429 or status >= 500:
        return CloudUnavailable("The cloud did not issue a credential just now.", detail=detail)
    return CloudRefused("The cloud refused to issue a credential for this location.", detail=detail)


def _not_reached(error: Exception) -> VendingError:
    from botocore.exceptions import NoCredentialsError, PartialCredentialsError

    detail = f"STS AssumeRole: {type(error).__name__}: {error}"
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return CloudRefused("The broker has no identity at the cloud.", detail=detail)
    return CloudUnavailable("The cloud could not be reached to issue a credential.", detail=detail)
