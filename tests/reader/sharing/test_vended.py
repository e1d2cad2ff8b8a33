"""What a server vends, read from its answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakepass.reader.credentials import AwsKeys
from lakepass.reader.errors import SharingError
from lakepass.reader.location import Location
from lakepass.reader.sharing.names import TableName
from lakepass.reader.sharing.vended import Renewal, Vended, parse_vended

ROOT = Location.parse("s3://bucket/t")
END = datetime(2030, 1, 1, tzinfo=UTC)
KEYS = {"accessKeyId": "local", "secretAccessKey": "local", "sessionToken": "local"}


def vended(extension: Any = None, **fields: Any) -> Vended:
    answer = {"credentials": {"location": "s3://bucket/t/", "awsTempCredentials": KEYS, **fields}}
    return parse_vended({**answer, "lakepass": extension}, ROOT, TableName("s", "d", "t"), timedelta(0))


@pytest.mark.parametrize("kind", [int, float, str])
def test_the_end_is_known_however_the_number_is_written(kind: type) -> None:
    """A credential without an end would never be renewed."""
    credential = vended(expirationTime=kind(int(END.timestamp() * 1000))).credential
    assert credential.expires_at == END
    assert isinstance(credential.keys, AwsKeys)


@pytest.mark.parametrize("extension", ["ours", ["x"], {"storage": "eu", "renewal": [1]}])
def test_a_field_of_our_name_that_is_not_ours_is_passed_over(extension: Any) -> None:
    found = vended(extension)
    assert found.credential.store.endpoint is None
    assert found.renewal == Renewal()


def test_another_location_is_refused() -> None:
    with pytest.raises(SharingError, match="vended a credential for s3://bucket/t2"):
        vended(location="s3://bucket/t2")
