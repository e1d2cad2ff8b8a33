"""How long a credential lives, and until when it is still worth handing out."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from urllib.parse import urlsplit

from lakepass.broker.config import ConfigurationError

SHORTEST = timedelta(minutes=15)
LONGEST = timedelta(hours=12)
_ENOUGH_LEFT = timedelta(minutes=10)


def allowed_lifetime(lifetime: timedelta, endpoint: str | None) -> timedelta:
    """`lifetime`, refused outside 15 minutes to 12 hours.

    A store on this machine (`endpoint`) may be asked for less: that is how renewal is tried out.
    """
    if lifetime > LONGEST or lifetime <= timedelta(0) or (lifetime < SHORTEST and not is_loopback(endpoint)):
        raise ConfigurationError(
            f"credentials.lifetime is {lifetime}; a credential lives 15 minutes to 12 hours (less only at "
            "a store on this machine)."
        )
    return lifetime


def least_remaining(life: timedelta) -> timedelta:
    """What must be left of a credential's `life` when it is handed out: ten minutes, or half of a short life.

    Clients renew about five minutes ahead of the end, so one with less left would be asked for again at once.
    """
    return min(_ENOUGH_LEFT, life / 2)


def is_loopback(url: str | None) -> bool:
    """Whether `url` names this machine."""
    host = urlsplit(url).hostname if url else None
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
