"""The gate in front of Azurite: what Azurite can judge (shared keys, signatures of the account's key,
user delegation SAS for a blob or a container) it judges; this adds what it does not know. It is our
reading of the documented rules, not Azure: directory SAS and Data Lake shapes as `azure_sas` and
`azure_paths` say, and

- who may have a user delegation key: "Get User Delegation Key"
  (learn.microsoft.com/rest/api/storageservices/get-user-delegation-key);
- a managed identity's tokens: "How to use managed identities for App Service", REST endpoint reference.

The plain port stands for an encrypted one behind a terminator, for clients that cannot be told to trust a
certificate: a signature for https only is accepted there.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode
from xml.sax.saxutils import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.clouds.gates.azure_paths import directory_properties, list_paths
from tests.clouds.gates.azure_sas import Asked, DelegationKey, Refused, check, key_name
from tests.clouds.gates.forwarding import Upstream, decoded_segments, serve

_SIGNATURE_FIELDS = {
    *("sv", "st", "se", "sr", "sp", "sip", "spr", "sig", "sdd", "skoid", "sktid", "skt", "ske", "sks", "skv"),
    *("saoid", "suoid", "scid", "ses", "rscc", "rscd", "rsce", "rscl", "rsct", "ss", "srt"),
}
_TENANT = "11111111-1111-4111-8111-111111111111"


@dataclass(frozen=True)
class Settings:
    """What the starter tells the gate, as JSON."""

    upstream: str
    ca_file: str
    certificate: str
    private_key: str
    plain_port: int
    encrypted_port: int
    account: str
    account_sas: str
    """Signed with the account's key: how the gate itself enters, once it has let a caller through."""
    identity_header: str
    token_secret: str
    identities: dict[str, list[str]]
    """Client id → roles: `delegator` may have delegation keys, `contributor` may read and write."""


class Gate:
    """The account's front door."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.upstream = Upstream(settings.upstream, settings.ca_file)
        self.keys: dict[tuple[str, ...], DelegationKey] = {}

    async def identity(self, request: Request) -> Response:
        """A managed identity's token endpoint, as App Service has it."""
        if request.headers.get("x-identity-header") != self.settings.identity_header:
            return JSONResponse({"error": "invalid_request"}, 401)
        client = request.query_params.get("client_id") or next(iter(self.settings.identities))
        if client not in self.settings.identities:
            return JSONResponse({"error": "invalid_client"}, 400)
        resource = request.query_params.get("resource", "").rstrip("/")
        expires = int(time.time()) + 3600
        claims = {
            "aud": resource,
            "iss": f"https://sts.windows.net/{_TENANT}/",
            "iat": expires - 3600,
            "nbf": expires - 3660,
            "exp": expires,
            "appid": client,
            "oid": client,
            "tid": _TENANT,
        }
        answer = {"access_token": self._sign(claims), "expires_on": str(expires), "resource": resource}
        return JSONResponse({**answer, "token_type": "Bearer", "client_id": client})

    async def storage(self, request: Request) -> Response:
        """Blob and Data Lake requests, path style, with or without the account in front."""
        query = dict(parse_qsl(request.scope["query_string"].decode("ascii"), keep_blank_values=True))
        try:
            return await self._answer(request, query)
        except Refused as refusal:
            return _error(request, query, refusal)

    async def _answer(self, request: Request, query: dict[str, str]) -> Response:
        raw = request.scope["raw_path"].decode("ascii").removeprefix(f"/{self.settings.account}/").strip("/")
        raw = "" if raw == self.settings.account else raw
        segments = decoded_segments(raw)
        if segments is None:
            raise Refused("InvalidUri", "The path names no one place.", 400)
        container, path = segments[0], "/".join(segments[1:])
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme == "Bearer":
            roles = self._roles(token)
            if query.get("comp") == "userdelegationkey":
                return await self._delegation_key(request, roles)
            if "contributor" not in roles:
                raise Refused("AuthorizationPermissionMismatch", "This identity has no role on the data.")
        elif "skoid" in query and not scheme:
            listed = _listed_directory(query) if not path else None
            asked = Asked(
                container,
                path if listed is None else listed,
                _permission(request.method, query, bool(path)),
                request.client.host if request.client else "",
                True,
            )
            key = self.keys.get(key_name(query))
            check(query, key, self.settings.account, asked, datetime.now(UTC))
            if query["sr"] in ("b", "c") and "scid" not in query and not _is_data_lake(query):
                return await self.upstream.send(request, self._target(raw, query))
            if (
                query["sr"] == "d"
                and "prefix" in query
                and query["prefix"].count("/") + 1 == int(query["sdd"])
            ):
                # Whether Azure would show a sibling `dir2` for the prefix `dir` is not documented; it is
                # not shown.
                query["prefix"] += "/"
        else:
            return await self.upstream.send(request, self._target(raw, query))
        return await self._perform(request, raw, path, query)

    async def _perform(self, request: Request, raw: str, path: str, query: dict[str, str]) -> Response:
        """What has been allowed, done in the gate's own name."""
        container = raw.partition("/")[0]

        async def call(asked: str) -> Any:
            return await self.upstream.call("GET", self._own_target(container, dict(parse_qsl(asked))))

        if query.get("resource") == "filesystem" and request.method == "GET":
            return await list_paths(query, call)
        if _is_data_lake(query) and request.method not in ("GET", "HEAD"):
            raise Refused("NotImplemented", "Tests write through the blob endpoint.", 501)
        rest = {name: value for name, value in query.items() if name not in _SIGNATURE_FIELDS}
        for name in ("action", "upn"):
            rest.pop(name, None)
        answer = await self.upstream.send(request, self._own_target(raw, rest), without=["authorization"])
        if path and request.method == "HEAD":
            if answer.status_code == 404:
                return await directory_properties(path, call) or answer
            answer.headers.setdefault("x-ms-resource-type", "file")
        return answer

    async def _delegation_key(self, request: Request, roles: list[str]) -> Response:
        if "delegator" not in roles:
            raise Refused("AuthorizationPermissionMismatch", "This identity may not have a delegation key.")
        answer = await self.upstream.send(
            request, self._target("", {"restype": "service", "comp": "userdelegationkey"})
        )
        body = b"".join([bytes(part) async for part in answer.body_iterator])  # type: ignore[attr-defined]  # streamed
        if answer.status_code == 200:
            tree = ElementTree.fromstring(body.decode("utf-8-sig"))
            told = {child.tag.removeprefix("Signed").lower(): child.text or "" for child in tree}
            key = DelegationKey(**{name: told[name] for name in DelegationKey.__dataclass_fields__})
            self.keys[key.name] = key
        return Response(body, answer.status_code, headers={"content-type": "application/xml"})

    def _roles(self, token: str) -> list[str]:
        try:
            encoded = token.rpartition(".")[0].split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
        except (ValueError, IndexError):
            raise Refused("InvalidAuthenticationInfo", "The token is not one.", 401) from None
        if not hmac.compare_digest(self._sign(claims), token) or claims["exp"] <= time.time():
            raise Refused("InvalidAuthenticationInfo", "The token is forged or has expired.", 401)
        if claims["aud"] != "https://storage.azure.com":
            raise Refused("InvalidAuthenticationInfo", "The token is for another audience.", 401)
        return self.settings.identities[claims["appid"]]

    def _sign(self, claims: dict[str, Any]) -> str:
        def part(content: bytes) -> str:
            return base64.urlsafe_b64encode(content).decode().rstrip("=")

        head = part(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
        signed = f"{head}.{part(json.dumps(claims).encode())}"
        secret = self.settings.token_secret.encode()
        return f"{signed}.{part(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"

    def _target(self, raw: str, query: dict[str, str]) -> str:
        return f"/{self.settings.account}/{raw}?{urlencode(query, quote_via=quote, safe='')}"

    def _own_target(self, raw: str, query: dict[str, str]) -> str:
        return f"{self._target(raw, query)}&{self.settings.account_sas}"


def _is_data_lake(query: dict[str, str]) -> bool:
    return "resource" in query or "action" in query


def _listed_directory(query: dict[str, str]) -> str:
    return (query.get("directory", "") if _is_data_lake(query) else query.get("prefix", "")).strip("/")


def _permission(method: str, query: dict[str, str], has_path: bool) -> str:
    """The letter of `sp` that an operation needs; empty for operations that no SAS opens."""
    if not has_path:
        listing = query.get("comp") == "list" or query.get("resource") == "filesystem"
        return "l" if listing and method == "GET" else ""
    if method == "DELETE":
        return "d"
    if method not in ("GET", "HEAD"):
        return "w"
    return "e" if query.get("action") in ("getAccessControl", "checkAccess") else "r"


def _error(request: Request, query: dict[str, str], refusal: Refused) -> Response:
    headers = {"x-ms-error-code": refusal.code}
    if request.method == "HEAD":
        return Response(status_code=refusal.status, headers=headers)
    if _is_data_lake(query):
        body = {"error": {"code": refusal.code, "message": str(refusal)}}
        return JSONResponse(body, refusal.status, headers=headers)
    text = f"<Error><Code>{refusal.code}</Code><Message>{escape(str(refusal))}</Message></Error>"
    declared = f'<?xml version="1.0" encoding="utf-8"?>{text}'
    return Response(declared, refusal.status, headers, media_type="application/xml")


def main() -> None:
    """Run the gate with the settings in the file named by the first argument."""
    settings = Settings(**json.loads(Path(sys.argv[1]).read_text()))
    gate = Gate(settings)
    methods = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"]
    app = Starlette(
        routes=[
            Route("/identity/token", gate.identity),
            Route("/{anything:path}", gate.storage, methods=methods),
        ]
    )
    serve(app, settings.plain_port, (settings.encrypted_port, settings.certificate, settings.private_key))


if __name__ == "__main__":
    main()
