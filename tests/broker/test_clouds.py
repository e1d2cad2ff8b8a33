"""The same answers from Azure and Google Cloud: the log is read with a vended credential, and URLs open."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.broker.server import running_broker
from tests.clouds.azurite import Azurite
from tests.clouds.gcs import Gcs
from tests.tables.fixtures import fixture

pytestmark = pytest.mark.slow

DELTA = {"delta-sharing-capabilities": "responseformat=delta;readerfeatures=deletionvectors"}


def _reads(entry: dict[str, Any], location: str, environment: dict[str, str]) -> None:
    """A table with deletion vectors is served, and every URL of the answer opens its file and no other."""
    with running_broker(storage=[entry], environment=environment) as broker:
        broker.share_table("s.d.vectors", location)
        with broker.client(broker.recipient("ann", shares=["s"])) as client:
            path = "/shares/s/schemas/d/tables/vectors"
            version = client.get(f"{path}/version")
            assert version.headers["delta-table-version"] == str(fixture("deletion_vectors").latest)
            answer = client.post(f"{path}/query", json={}, headers=DELTA)
            assert answer.status_code == 200, answer.text
            adds = [
                json.loads(line)["file"]["deltaSingleAction"]["add"] for line in answer.text.splitlines()[2:]
            ]
    vectors = 0
    for add in adds:
        assert len(httpx.get(add["path"]).content) == add["size"]
        altered = add["path"].replace("part-", "qart-", 1)
        assert httpx.get(altered).status_code in (401, 403)
        if "deletionVector" in add:
            vectors += 1
            assert httpx.get(add["deletionVector"]["pathOrInlineDv"]).status_code == 200
    assert vectors


@pytest.mark.node
def test_azure(azurite: Azurite) -> None:
    azurite.create_container("urls")
    location = azurite.location("urls", "tables/vectors")
    azurite.seed(fixture("deletion_vectors").path, location)
    root = f"abfss://urls@{str(location).partition('@')[2].partition('/')[0]}/"
    entry = {"location": root, "azure": {"endpoint": azurite.plain_endpoint}}
    _reads(entry, str(location), dict(azurite.identity))


@pytest.mark.parametrize("identity", ["key file", "impersonation"])
def test_google_cloud(gcs: Gcs, identity: str) -> None:
    bucket = gcs.create_bucket()
    location = f"gs://{bucket}/tables/vectors"
    gcs.seed(fixture("deletion_vectors").path, location)
    settings: dict[str, Any] = {"endpoint": gcs.endpoint, "token_endpoint": gcs.token_endpoint}
    if identity == "key file":
        settings["key_file"] = str(gcs.key_files["broker"])
    else:
        settings["key_file"] = str(gcs.key_files["impersonator"])
        settings["service_account"] = gcs.email("broker")
        settings["iam_endpoint"] = gcs.iam_endpoint
    _reads({"location": f"gs://{bucket}/", "gcp": settings}, location, {})
