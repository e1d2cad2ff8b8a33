"""Who a credential is minted for, and how that name travels into the cloud's own audit trail."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass

_NOT_IN_SESSION_NAME = re.compile(r"[^A-Za-z0-9_+=,.@-]")
_SESSION_NAME_LIMIT = 64
_BROKER = "lakepass-broker"


@dataclass(frozen=True)
class Grantee:
    """A recipient, with the address ranges it may come from; none means anywhere."""

    recipient: str
    source_ranges: tuple[str, ...] = ()

    @classmethod
    def broker(cls) -> Grantee:
        """The broker itself, which reads logs and signs URLs with a credential no wider than a recipient's.

        The slash, which no recipient's name may hold, keeps the two apart in the cache.
        """
        return cls(f"/{_BROKER}")

    @property
    def session_name(self) -> str:
        """The recipient as STS accepts it in a session name and as source identity.

        STS takes 2 to 64 of `A-Z a-z 0-9 _ + = , . @ -`. A name that had to be changed ends in a digest of
        the original, so that two recipients never share one.
        """
        if self == Grantee.broker():
            return _BROKER
        plain = _NOT_IN_SESSION_NAME.sub("-", self.recipient)
        if plain == self.recipient and 2 <= len(plain) <= _SESSION_NAME_LIMIT and plain != _BROKER:
            return plain
        digest = hashlib.sha256(self.recipient.encode()).hexdigest()[:12]
        return f"{plain[: _SESSION_NAME_LIMIT - len(digest) - 1]}-{digest}"

    @property
    def networks(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        """The source ranges as networks."""
        return tuple(ipaddress.ip_network(text, strict=False) for text in self.source_ranges)
