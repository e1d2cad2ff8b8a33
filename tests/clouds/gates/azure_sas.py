"""Checking a user delegation SAS: our reading of "Create a user delegation SAS" and "Versioning for Azure
Storage" (learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas).

The service does not look for a directory in the token: it takes the first `sdd` segments of the path that
was asked for, puts them in the string to sign, and compares signatures. A token for `t/a` therefore says
nothing about `t/ab`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

_FORMATS = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ", "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S.%fZ")


class Refused(Exception):
    """The request is refused: `code` and `status` are those the service would answer with."""

    def __init__(self, code: str, message: str, status: int = 403) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


@dataclass(frozen=True)
class Asked:
    """What a request asks for, as far as its right to it goes."""

    container: str
    path: str
    """Decoded, without slashes at the ends; for a list, the directory that is listed."""
    permission: str
    """One letter of `sp`; empty for what no SAS can open."""
    caller: str
    """The caller's address."""
    encrypted: bool


@dataclass(frozen=True)
class DelegationKey:
    """A user delegation key, as it was handed out."""

    oid: str
    tid: str
    start: str
    expiry: str
    service: str
    version: str
    value: str

    @property
    def name(self) -> tuple[str, ...]:
        """What a SAS says about its key."""
        return (self.oid, self.tid, self.start, self.expiry, self.service, self.version)


def key_name(sas: Mapping[str, str]) -> tuple[str, ...]:
    """The key that a SAS says it was signed with."""
    return tuple(sas.get(field, "") for field in ("skoid", "sktid", "skt", "ske", "sks", "skv"))


def check(
    sas: Mapping[str, str], key: DelegationKey | None, account: str, asked: Asked, now: datetime
) -> None:
    """Raise `Refused` unless `sas` opens what is asked."""
    if key is None:
        raise Refused("AuthenticationFailed", "The user delegation key is not one of this account's.")
    scope = _scope(sas, asked)
    signed = base64.b64encode(
        hmac.new(
            base64.b64decode(key.value), _string_to_sign(sas, account, scope).encode(), hashlib.sha256
        ).digest()
    ).decode()
    if not hmac.compare_digest(signed, sas.get("sig", "")):
        raise Refused("AuthenticationFailed", "Signature did not match.")
    starts = [_time(sas[name]) for name in ("st", "skt") if sas.get(name)]
    ends = [_time(sas.get(name, "")) for name in ("se", "ske")]
    if any(start > now for start in starts) or any(end <= now for end in ends):
        raise Refused("AuthenticationFailed", "Signature not valid in the specified time frame.")
    if sas.get("spr", "https,http") == "https" and not asked.encrypted:
        raise Refused("AuthorizationProtocolMismatch", "This signature is for https.")
    if "sip" in sas and not _in_range(asked.caller, sas["sip"]):
        raise Refused("AuthorizationSourceIPMismatch", "This signature is for other addresses.")
    if not asked.permission or asked.permission not in sas.get("sp", ""):
        raise Refused("AuthorizationPermissionMismatch", "This signature does not permit the operation.")


def _scope(sas: Mapping[str, str], asked: Asked) -> str:
    """The canonicalized resource: what the signature must have been made for to open what is asked."""
    resource = sas.get("sr", "")
    segments = asked.path.split("/") if asked.path else []
    if resource == "c":
        return asked.container
    if resource == "b" and segments:
        return "/".join([asked.container, *segments])
    if resource == "d":
        depth = sas.get("sdd", "")
        if depth.isdecimal() and 0 < int(depth) <= len(segments):
            return "/".join([asked.container, *segments[: int(depth)]])
        raise Refused("AuthenticationFailed", "The path is not as deep as the signed directory.")
    raise Refused("AuthenticationFailed", f"The signed resource {resource!r} does not fit the request.")


def _string_to_sign(sas: Mapping[str, str], account: str, scope: str) -> str:
    version = sas.get("sv", "")
    if version < "2020-02-10":
        raise Refused("AuthenticationFailed", "The signature's version knows no directories.")
    if any(name in sas for name in ("srh", "srq", "sduoid", "skdutid")):
        raise Refused("AuthenticationFailed", "Signatures bound to headers or users are not read here.")

    def field(*names: str) -> list[str]:
        return [sas.get(name, "") for name in names]

    lines = field("sp", "st", "se")
    lines.append(f"/blob/{account}/{scope}")
    lines += field("skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid")
    if version >= "2025-07-05":
        lines += field("skdutid", "sduoid")
    lines += field("sip", "spr", "sv", "sr", "snapshot")
    if version >= "2020-12-06":
        lines += field("ses")
    if version >= "2026-04-06":
        lines += field("srh", "srq")
    return "\n".join([*lines, *field("rscc", "rscd", "rsce", "rscl", "rsct")])


def _time(text: str) -> datetime:
    for pattern in _FORMATS:
        try:
            return datetime.strptime(text, pattern).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise Refused("AuthenticationFailed", f"{text!r} is not a time.")


def _in_range(address: str, allowed: str) -> bool:
    first, _, last = allowed.partition("-")
    caller = ipaddress.ip_address(address)
    low, high = ipaddress.ip_address(first), ipaddress.ip_address(last or first)
    return int(low) <= int(caller) <= int(high)
