"""The scope of an Azure credential: the parameters of a user-delegation SAS for one directory.

`sr=d` with `sdd`, the directory's depth, opens what lies below it; `sp=rl` reads and lists. The SDK signs
whatever path it is given (a leading slash, an empty one and `a/../b` too, without any error), so what
reaches it comes from a `Location`, whose path has none of these.

A storage account without a hierarchical namespace has no directories to sign for. The narrowest SAS there
is for the whole container, which is refused unless the administrator has said that it may be handed out.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from lakepass.broker.config import ConfigurationError
from lakepass.broker.vending.errors import ScopeRefused
from lakepass.broker.vending.lifetimes import is_loopback
from lakepass.reader.location import Location

_AUTHORITIES = {
    "core.windows.net": "login.microsoftonline.com",
    "core.usgovcloudapi.net": "login.microsoftonline.us",
    "core.chinacloudapi.cn": "login.chinacloudapi.cn",
    "fabric.microsoft.com": "login.microsoftonline.com",
}


@dataclass(frozen=True)
class SasScope:
    """What a SAS opens. `directory` is None for a whole container."""

    account: str
    container: str
    directory: str | None
    protocol: str
    ip: str | None = None
    permissions: str = "rl"

    @property
    def resource(self) -> str:
        """The `sr` parameter."""
        return "c" if self.directory is None else "d"

    @property
    def depth(self) -> int | None:
        """The `sdd` parameter: how many segments the directory's path has."""
        return None if self.directory is None else self.directory.count("/") + 1


def sas_scope(
    location: Location,
    *,
    endpoint: str | None = None,
    hierarchical_namespace: bool = True,
    allow_container_scope: bool = False,
    source_ranges: Sequence[str] = (),
) -> SasScope:
    """The SAS that reads and lists below `location` and does nothing else."""
    if location.scheme != "abfss" or not location.path:
        raise ScopeRefused(
            f"A credential cannot be limited to less than the whole container {location}: name a "
            "directory in it."
        )
    if not hierarchical_namespace and not allow_container_scope:
        raise ScopeRefused(
            f"The storage account of {location} has no hierarchical namespace, so a credential would open "
            "its whole container. Use an account with one, or accept that with "
            "azure.allow_container_scope: true."
        )
    return SasScope(
        account=location.account,
        container=location.bucket,
        directory=location.path if hierarchical_namespace else None,
        protocol=protocol_for(endpoint),
        ip=_address_range(location, source_ranges),
    )


def protocol_for(endpoint: str | None) -> str:
    """`https`; plain http is allowed beside it only where the store is on this machine."""
    if endpoint is None or urlsplit(endpoint).scheme == "https":
        return "https"
    if is_loopback(endpoint):
        return "https,http"
    raise ConfigurationError(
        f"azure.endpoint {endpoint!r} is not https: a signature sent over plain http can be read on the way."
    )


def authority_for(host: str) -> str:
    """The Microsoft Entra host of the cloud that a storage host belongs to (public, US Government, China)."""
    for suffix, authority in _AUTHORITIES.items():
        if host.endswith(f".{suffix}"):
            return authority
    return _AUTHORITIES["core.windows.net"]


def _address_range(location: Location, source_ranges: Sequence[str]) -> str | None:
    """The one range of IPv4 addresses that a SAS can hold; refused when it takes more than that."""
    if not source_ranges:
        return None
    networks = [ipaddress.ip_network(text, strict=False) for text in source_ranges]
    merged = list(ipaddress.collapse_addresses(n for n in networks if isinstance(n, ipaddress.IPv4Network)))
    if len(merged) != 1 or any(network.version == 6 for network in networks):
        raise ScopeRefused(
            f"A credential for {location} can be held to one range of IPv4 addresses, and the recipient has "
            f"{', '.join(source_ranges)}. Give the recipient one range, or set azure.bind_source_ip: false."
        )
    first, last = merged[0][0], merged[0][-1]
    return str(first) if first == last else f"{first}-{last}"
