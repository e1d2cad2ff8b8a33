"""How a credential is written in an answer: the sharing protocol's form, Unity Catalog's, and the AWS SDKs'.

The specification's "Generate Temporary Table Credential" gives the first. What a client needs beyond it
(where the store is, how to renew) stands beside `credentials` under the name `lakepass`, which other
clients pass over.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lakepass.reader.credentials import AwsKeys, AzureSas, Credential


def sharing_form(credential: Credential, renewal: dict[str, str]) -> dict[str, Any]:
    """The specification's answer, with the extension object beside it."""
    told: dict[str, Any] = {"location": credential.location}
    keys = credential.keys
    if isinstance(keys, AwsKeys):
        told["awsTempCredentials"] = {
            "accessKeyId": keys.access_key_id,
            "secretAccessKey": keys.secret_access_key,
            "sessionToken": keys.session_token,
        }
    elif isinstance(keys, AzureSas):
        told["azureUserDelegationSas"] = {"sasToken": keys.sas_token}
    else:
        told["gcpOauthToken"] = {"oauthToken": keys.oauth_token}
    told["expirationTime"] = expiration_ms(credential)
    return {"credentials": told, "lakepass": {"storage": _storage(credential), "renewal": renewal}}


def unity_catalog_form(credential: Credential) -> dict[str, Any]:
    """Unity Catalog's `TemporaryCredentials`."""
    keys = credential.keys
    told: dict[str, Any]
    if isinstance(keys, AwsKeys):
        told = {
            "aws_temp_credentials": {
                "access_key_id": keys.access_key_id,
                "secret_access_key": keys.secret_access_key,
                "session_token": keys.session_token,
            }
        }
    elif isinstance(keys, AzureSas):
        told = {"azure_user_delegation_sas": {"sas_token": keys.sas_token}}
    else:
        told = {"gcp_oauth_token": {"oauth_token": keys.oauth_token}}
    return {**told, "expiration_time": expiration_ms(credential)}


def container_form(credential: Credential) -> dict[str, Any] | None:
    """What AWS SDKs read from `AWS_CONTAINER_CREDENTIALS_FULL_URI`; None for another cloud's credential."""
    keys = credential.keys
    if not isinstance(keys, AwsKeys):
        return None
    return {
        "AccessKeyId": keys.access_key_id,
        "SecretAccessKey": keys.secret_access_key,
        "Token": keys.session_token,
        "Expiration": _end(credential).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def expiration_ms(credential: Credential) -> int:
    """The credential's real end, in epoch milliseconds."""
    return int(_end(credential).timestamp() * 1000)


def _end(credential: Credential) -> datetime:
    assert credential.expires_at is not None, "a vended credential always ends"
    return credential.expires_at.astimezone(UTC)


def _storage(credential: Credential) -> dict[str, Any]:
    """Where the store is reached; what is not told is the cloud's own default."""
    store = credential.store
    told: dict[str, Any] = {}
    if store.endpoint is not None:
        told["endpoint"] = store.endpoint
    if store.region is not None:
        told["region"] = store.region
    if isinstance(credential.keys, AwsKeys):
        told["pathStyle"] = store.path_style
    return told
