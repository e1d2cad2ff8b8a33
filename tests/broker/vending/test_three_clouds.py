"""One broker with tables on three clouds, and what it lets be seen: of all that was minted, nothing but the
answers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import google.oauth2.credentials
import httpx
import pytest

from lakepass.broker.audit.trail import Filter, latest
from lakepass.reader.credentials import AwsKeys
from tests.broker.server import RunningBroker, running_broker
from tests.clouds.azurite import STRANGER_CLIENT, Azurite
from tests.clouds.gcs import Gcs
from tests.clouds.ministack import Ministack

FORM = {"aws": "awsTempCredentials", "azure": "azureUserDelegationSas", "gcp": "gcpOauthToken"}
UNITY_FORM = {"aws": "aws_temp_credentials", "azure": "azure_user_delegation_sas", "gcp": "gcp_oauth_token"}


@dataclass
class Sky:
    """The broker, a location on each cloud, and every secret that has been seen so far."""

    broker: RunningBroker
    client: httpx.Client
    locations: dict[str, str]
    ministack: Ministack
    azurite: Azurite
    gcs: Gcs
    secrets: set[str] = field(default_factory=set)
    shown: list[str] = field(default_factory=list)
    """Bodies of errors."""

    def ask(self, table: str, location: str | None = None) -> dict[str, Any]:
        body = None if location is None else {"location": location}
        path = f"/shares/sales/schemas/eu/tables/{table}/temporary-table-credentials"
        content: dict[str, Any] = self.client.post(path, json=body).json()
        for cloud in FORM.values():
            self.secrets.update(content["credentials"].get(cloud, {}).values())
        return content

    def read(self, cloud: str, credentials: dict[str, Any], name: str) -> bytes:
        """An object below or beside the location, with the vended credential."""
        told = credentials[FORM[cloud]]
        if cloud == "aws":
            keys = AwsKeys(told["accessKeyId"], told["secretAccessKey"], told["sessionToken"])
            bucket = self.locations["aws"].split("/")[2]
            return self.ministack.s3(keys).get_object(Bucket=bucket, Key=name)["Body"].read()
        if cloud == "azure":
            container = self.locations["azure"].removeprefix("abfss://").partition("@")[0]
            blob = self.azurite.service(told["sasToken"], plain=True).get_blob_client(container, name)
            return blob.download_blob().readall()
        kind: Any = google.oauth2.credentials.Credentials
        bucket = self.locations["gcp"].split("/")[2]
        content: bytes = (
            self.gcs.client(kind(told["oauthToken"])).bucket(bucket).blob(name).download_as_bytes()
        )
        return content


@pytest.fixture(scope="module")
def sky(
    ministack: Ministack, azurite: Azurite, gcs: Gcs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sky]:
    bucket, container, gcs_bucket = ministack.create_bucket(), azurite.create_container(), gcs.create_bucket()
    flat = azurite.create_container()
    user, keys = ministack.create_user()
    folder = tmp_path_factory.mktemp("table")
    (folder / "part-0").write_bytes(b"data")
    locations = {
        "aws": f"s3://{bucket}/t/a",
        "azure": azurite.location(container, "t/a"),
        "gcp": f"gs://{gcs_bucket}/t/a",
    }
    flat_location = azurite.location(flat, "t/a")
    for store, location in (
        (ministack, locations["aws"]),
        (azurite, locations["azure"]),
        (gcs, locations["gcp"]),
    ):
        for place in (location, location + "b"):
            store.seed(folder, place)
    role = ministack.create_role(user, [bucket])
    aws = {
        "role_arn": role,
        "endpoint": ministack.endpoint,
        "region": ministack.region,
        "path_style": True,
        "access_key_id": keys.access_key_id,
        "secret_access_key": keys.secret_access_key,
    }
    azure = {"endpoint": azurite.plain_endpoint}
    gcp = {
        "key_file": str(gcs.key_files["broker"]),
        "endpoint": gcs.endpoint,
        "token_endpoint": gcs.token_endpoint,
    }
    refused = azurite.create_container()
    storage = [
        {"location": f"s3://{bucket}/", "aws": aws},
        {"location": azurite.location(container, ""), "azure": azure},
        {
            "location": azurite.location(flat, ""),
            "azure": {**azure, "hierarchical_namespace": False, "allow_container_scope": True},
        },
        {"location": azurite.location(refused, ""), "azure": {**azure, "client_id": STRANGER_CLIENT}},
        {"location": f"gs://{gcs_bucket}/", "gcp": gcp},
        {"location": "gs://refused/", "gcp": {**gcp, "token_endpoint": f"{gcs.endpoint}/nothing"}},
        {
            "location": "s3://refused/",
            "aws": {**aws, "external_id": "wrong", "role_arn": role + "x"},
        },
    ]
    config = {"audit": {"export": str(folder / "audit.jsonl")}}
    with running_broker(storage=storage, config=config, environment=dict(azurite.identity)) as broker:
        for cloud, location in locations.items():
            others = [other for other in locations.values() if other != location]
            broker.share_table(f"sales.eu.{cloud}", location, modes=["dir"], auxiliary=others)
        broker.share_table("sales.eu.flat", flat_location, modes=["dir"])
        broker.share_table("sales.eu.refused_aws", "s3://refused/t", modes=["dir"])
        broker.share_table("sales.eu.refused_azure", azurite.location(refused, "t"), modes=["dir"])
        broker.share_table("sales.eu.refused_gcp", "gs://refused/t", modes=["dir"])
        profile = broker.recipient("ann", shares=["sales"])
        with broker.client(profile) as client:
            made = Sky(broker, client, locations, ministack, azurite, gcs)
            made.secrets |= {profile["bearerToken"], keys.secret_access_key, azurite.key}
            yield made


@pytest.mark.parametrize("cloud", FORM)
def test_a_table_on_each_cloud(sky: Sky, cloud: str) -> None:
    content = sky.ask(cloud)
    told = content["credentials"]
    assert set(told) == {"location", FORM[cloud], "expirationTime"}
    assert told["location"] == sky.locations[cloud]
    assert sky.read(cloud, told, "t/a/part-0") == b"data"
    with pytest.raises(Exception, match=r"(?i)denied|403|forbidden|authenticat"):
        sky.read(cloud, told, "t/ab/part-0")
    left = told["expirationTime"] / 1000 - datetime.now(UTC).timestamp()
    assert 3400 < left <= 3600
    expected = {"unityCatalog", "tableId"} | ({"awsContainerCredentials"} if cloud == "aws" else set())
    assert set(content["lakepass"]["renewal"]) == expected
    assert content["lakepass"]["storage"]["endpoint"].startswith("http://127.0.0.1")


@pytest.mark.parametrize("cloud", FORM)
@pytest.mark.parametrize("other", FORM)
def test_auxiliary_locations_on_other_clouds(sky: Sky, cloud: str, other: str) -> None:
    told = sky.ask(cloud, sky.locations[other])["credentials"]
    assert told["location"] == sky.locations[other]
    assert sky.read(other, told, "t/a/part-0") == b"data"


@pytest.mark.parametrize("cloud", FORM)
def test_unity_catalogs_form_on_each_cloud(sky: Sky, cloud: str) -> None:
    content = sky.ask(cloud)
    base = f"{content['lakepass']['renewal']['unityCatalog']}/api/2.1/unity-catalog"
    body = {"table_id": content["lakepass"]["renewal"]["tableId"], "operation": "READ"}
    answer = sky.client.post(f"{base}/temporary-table-credentials", json=body).json()
    assert set(answer) == {UNITY_FORM[cloud], "expiration_time"}
    assert set(answer[UNITY_FORM[cloud]].values()) == set(content["credentials"][FORM[cloud]].values())
    path = {"url": sky.locations[cloud], "operation": "PATH_READ"}
    again = sky.client.post(f"{base}/temporary-path-credentials", json=path).json()
    assert set(again) == {UNITY_FORM[cloud], "expiration_time"}


@pytest.mark.parametrize("cloud", ["azure", "gcp"])
def test_the_container_form_is_for_s3(sky: Sky, cloud: str) -> None:
    answer = sky.client.get(f"/shares/sales/schemas/eu/tables/{cloud}/aws-container-credentials")
    assert answer.status_code == 400
    assert "temporary-table-credentials" in answer.json()["message"]


def test_a_whole_container_is_said_in_the_audit(sky: Sky) -> None:
    sky.ask("flat")
    (row,) = latest(sky.broker.catalog.engine, Filter(table="sales.eu.flat"), 10)
    assert (row.outcome, row.scope) == ("vended", "container")


@pytest.mark.parametrize("cloud", FORM)
def test_a_cloud_that_refuses(sky: Sky, cloud: str) -> None:
    answer = sky.client.post(f"/shares/sales/schemas/eu/tables/refused_{cloud}/temporary-table-credentials")
    assert answer.status_code in (502, 503)
    assert int(answer.headers["retry-after"]) > 0
    sky.shown.append(answer.text)
    for detail in ("arn:aws", "AssumeRole", "127.0.0.1", sky.azurite.account, "gserviceaccount"):
        assert detail not in answer.text


def test_no_secret_is_seen_anywhere_else(sky: Sky) -> None:
    """After all of the above: logs, metrics, audit, its export, errors and the database hold none of it."""
    for cloud in FORM:
        sky.ask(cloud)
    sas = [secret for secret in sky.secrets if "sig=" in secret]
    assert sas
    sky.secrets |= {parse_qs(token)["sig"][0] for token in sas}
    assert len(sky.secrets) >= 8
    folder = sky.broker.folder
    # Not the configuration, which holds the broker's own keys, nor the lifeline, which must not be opened
    # twice.
    files = [path for path in folder.glob("catalog.db*") if path.is_file()]
    export = Path(str(sky.broker.settings.audit.export))
    seen = b"\n".join(path.read_bytes() for path in [*files, export])
    seen += sky.broker.log().encode() + "\n".join(sky.shown).encode()
    seen += (
        httpx.get(f"{sky.broker.origin}/metrics").content
        + httpx.get(f"{sky.broker.origin}/openapi.json").content
    )
    assert len(seen) > 10_000
    assert b"sales.eu.aws" in seen, "the audit trail is among what is searched"
    assert files
    # An access key id is no secret by itself, and ends up in the clouds' own logs.
    hidden = {secret for secret in sky.secrets if not secret.startswith(("ASIA", "AKIA"))}
    for secret in hidden:
        assert secret.encode() not in seen
        assert base64.b64encode(secret.encode()) not in seen
