"""The SAS scope: pinned whole, signed by the SDK, and judged by Azure's documented rules."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from azure.storage.filedatalake import UserDelegationKey
from hypothesis import given
from hypothesis import strategies as st

from lakepass.broker.config import ConfigurationError
from lakepass.broker.vending.azure import signed
from lakepass.broker.vending.azure_scope import SasScope, authority_for, protocol_for, sas_scope
from lakepass.broker.vending.errors import ScopeRefused
from lakepass.reader.location import Location
from tests.broker.vending.locations import HOSTILE, neighbours, paths
from tests.broker.vending.sas import opens, parameters

ORDERS = Location.parse("abfss://data@account.dfs.core.windows.net/sales/orders")
STARTS = datetime(2030, 1, 1, 11, 59, tzinfo=UTC)
ENDS = datetime(2030, 1, 1, 13, tzinfo=UTC)


def delegation_key() -> UserDelegationKey:
    key = UserDelegationKey()  # type: ignore[no-untyped-call]  # untyped in the SDK
    key.signed_oid = "00000000-0000-0000-0000-000000000001"
    key.signed_tid = "00000000-0000-0000-0000-000000000002"
    key.signed_start = "2030-01-01T00:00:00Z"
    key.signed_expiry = "2030-01-02T00:00:00Z"
    key.signed_service = "b"
    key.signed_version = "2025-01-05"
    key.value = base64.b64encode(b"a local test key of 32 bytes ...").decode()
    return key


def token_for(scope: SasScope) -> str:
    return signed(scope, delegation_key(), starts=STARTS, ends=ENDS, request_id="req-1")


def test_pinned() -> None:
    assert sas_scope(ORDERS) == SasScope(
        account="account",
        container="data",
        directory="sales/orders",
        protocol="https",
        ip=None,
        permissions="rl",
    )


def test_pinned_token() -> None:
    told = parameters(token_for(sas_scope(ORDERS, source_ranges=["192.0.2.0/30"])))
    assert told.pop("sig")
    assert told.pop("sv")
    assert told == {
        "st": "2030-01-01T11:59:00Z",
        "se": "2030-01-01T13:00:00Z",
        "sp": "rl",
        "sip": "192.0.2.0-192.0.2.3",
        "spr": "https",
        "sr": "d",
        "sdd": "2",
        "skoid": "00000000-0000-0000-0000-000000000001",
        "sktid": "00000000-0000-0000-0000-000000000002",
        "skt": "2030-01-01T00:00:00Z",
        "ske": "2030-01-02T00:00:00Z",
        "sks": "b",
        "skv": "2025-01-05",
        "scid": "req-1",
    }


@given(data=st.data(), path=paths)
def test_opens_exactly_what_lies_below(data: st.DataObject, path: str) -> None:
    location = Location("abfss", "data@account.dfs.core.windows.net", path)
    token = token_for(sas_scope(location))
    name = data.draw(neighbours(path))
    below = name == path or name.startswith(f"{path}/")  # the directory itself is an object of Azure
    assert opens(token, str(delegation_key().value), "account", "data", name) is below
    assert not opens(token, str(delegation_key().value), "account", "data2", name)
    assert not opens(token, str(delegation_key().value), "account2", "data", name)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_themselves(name: str) -> None:
    location = Location.parse(f"abfss://data@account.dfs.core.windows.net/t/{name}")
    token, key = token_for(sas_scope(location)), str(delegation_key().value)
    assert parameters(token)["sdd"] == "2"
    assert opens(token, key, "account", "data", f"t/{name}/part-0")
    for other in ("t/other/x", f"t/{name}2/x", "t/x", "secret", "t"):
        assert not opens(token, key, "account", "data", other)


@pytest.mark.parametrize("depth", [1, 2, 7, 60])
def test_depth_is_the_number_of_segments(depth: int) -> None:
    location = Location("abfss", "data@account.dfs.core.windows.net", "/".join("d" * depth))
    assert sas_scope(location).depth == depth
    assert parameters(token_for(sas_scope(location)))["sdd"] == str(depth)


def test_a_flat_account_is_refused() -> None:
    with pytest.raises(ScopeRefused, match="allow_container_scope"):
        sas_scope(ORDERS, hierarchical_namespace=False)


def test_a_flat_account_gives_a_container_when_the_administrator_says_so() -> None:
    scope = sas_scope(ORDERS, hierarchical_namespace=False, allow_container_scope=True)
    assert (scope.resource, scope.directory, scope.depth) == ("c", None, None)
    told = parameters(token_for(scope))
    assert (told["sr"], told["sp"]) == ("c", "rl")
    assert "sdd" not in told


def test_the_setting_alone_widens_nothing() -> None:
    assert sas_scope(ORDERS, allow_container_scope=True) == sas_scope(ORDERS)


@pytest.mark.parametrize(
    ("endpoint", "protocol"),
    [
        (None, "https"),
        ("https://account.blob.core.windows.net", "https"),
        ("https://127.0.0.1:10000/account", "https"),
        ("http://127.0.0.1:10000/account", "https,http"),
        ("http://localhost:10000/account", "https,http"),
        ("http://[::1]:10000/account", "https,http"),
    ],
)
def test_plain_http_only_on_this_machine(endpoint: str | None, protocol: str) -> None:
    assert protocol_for(endpoint) == protocol


@pytest.mark.parametrize(
    "endpoint",
    ["http://10.0.0.5/account", "http://store.internal", "http://127.0.0.1.example.com", "ftp://x"],
)
def test_plain_http_elsewhere_is_refused(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match=r"azure\.endpoint"):
        sas_scope(ORDERS, endpoint=endpoint)


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        (["192.0.2.7/32"], "192.0.2.7"),
        (["192.0.2.0/24"], "192.0.2.0-192.0.2.255"),
        (["192.0.2.0/25", "192.0.2.128/25"], "192.0.2.0-192.0.2.255"),
        (["192.0.2.9"], "192.0.2.9"),
    ],
)
def test_one_range_of_addresses(ranges: list[str], expected: str) -> None:
    assert sas_scope(ORDERS, source_ranges=ranges).ip == expected


@pytest.mark.parametrize(
    "ranges", [["192.0.2.0/24", "198.51.100.0/24"], ["2001:db8::/32"], ["192.0.2.0/24", "2001:db8::/32"]]
)
def test_what_a_sas_cannot_hold_is_refused(ranges: list[str]) -> None:
    with pytest.raises(ScopeRefused, match="bind_source_ip"):
        sas_scope(ORDERS, source_ranges=ranges)


@pytest.mark.parametrize(
    ("host", "authority"),
    [
        ("account.dfs.core.windows.net", "login.microsoftonline.com"),
        ("account.dfs.core.usgovcloudapi.net", "login.microsoftonline.us"),
        ("account.dfs.core.chinacloudapi.cn", "login.chinacloudapi.cn"),
        ("onelake.dfs.fabric.microsoft.com", "login.microsoftonline.com"),
    ],
)
def test_sovereign_clouds(host: str, authority: str) -> None:
    assert authority_for(host) == authority


def test_a_whole_container_is_refused() -> None:
    with pytest.raises(ScopeRefused, match="whole container"):
        sas_scope(Location.parse("abfss://data@account.dfs.core.windows.net", allow_root=True))
