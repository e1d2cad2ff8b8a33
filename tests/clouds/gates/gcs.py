"""The gate in front of a Cloud Storage emulator, which by itself lets everybody do everything. It is our
reading of the documented rules, not Google Cloud: who a caller is (`gcs_identity`), what a downscoped
token may do (`gcs_boundary`), how the JSON and the XML API show objects (`gcs_objects`), and which
permission an operation needs (cloud.google.com/storage/docs/access-control/iam-json and …/iam-xml).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.clouds.gates.forwarding import Upstream, serve
from tests.clouds.gates.gcs_boundary import Asked
from tests.clouds.gates.gcs_identity import Account, Identities, IdentityError, Token
from tests.clouds.gates.gcs_objects import Objects, json_list, xml_list

_JSON_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "DELETE": "delete",
    "PATCH": "update",
    "PUT": "update",
    "POST": "update",
}
_XML_VERBS = {"GET": "get", "HEAD": "get", "DELETE": "delete", "PUT": "create", "POST": "create"}


@dataclass(frozen=True)
class Settings:
    """What the starter tells the gate, as JSON."""

    upstream: str
    port: int
    accounts: list[dict[str, Any]]


class Refused(Exception):
    """The request gets an error: its status and why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Gate:
    """Identity and storage on one port."""

    def __init__(self, settings: Settings) -> None:
        self.public = f"http://127.0.0.1:{settings.port}"
        self.upstream = Upstream(settings.upstream)
        self.identities = Identities(Account(**account) for account in settings.accounts)
        self.objects = Objects(self.upstream, self.public)

    async def token(self, request: Request) -> Response:
        """`token_uri` of a service account's key."""
        return await self._identity(request, lambda form: self.identities.grant(form, f"{self.public}/token"))

    async def exchange(self, request: Request) -> Response:
        """The Security Token Service."""
        return await self._identity(request, self.identities.exchange)

    async def account(self, request: Request) -> Response:
        """The IAM Service Account Credentials API: generateAccessToken and signBlob."""
        email, _, verb = request.path_params["call"].partition(":")
        act = {"generateAccessToken": self.identities.impersonate, "signBlob": self.identities.sign}[verb]
        try:
            return JSONResponse(act(self._caller(request), email, await request.json()))
        except IdentityError as error:
            return JSONResponse({"error": {"code": error.status, "message": str(error)}}, error.status)

    async def json_api(self, request: Request) -> Response:
        """/storage/v1, /download/storage/v1, /upload/storage/v1, /batch/storage/v1."""
        try:
            return await self._json(request)
        except Refused as refusal:
            body = {
                "error": {"code": refusal.status, "message": str(refusal), "errors": [{"reason": "refused"}]}
            }
            return JSONResponse(body, refusal.status)

    async def xml_api(self, request: Request) -> Response:
        """/bucket/object and /bucket, with a token or a V4 signature."""
        try:
            return await self._xml(request)
        except Refused as refusal:
            code = {401: "AuthenticationRequired", 403: "AccessDenied", 404: "NoSuchKey"}.get(
                refusal.status, "Error"
            )
            text = f"<Error><Code>{code}</Code><Message>{escape(str(refusal))}</Message></Error>"
            return Response(
                f"<?xml version='1.0' encoding='UTF-8'?>{text}", refusal.status, media_type="application/xml"
            )

    async def _json(self, request: Request) -> Response:
        raw, query = _path(request), request.query_params
        kind, _, rest = raw.partition("storage/v1/")
        parts = rest.split("/")
        caller = self._known(request)
        if kind == "/batch/" or raw.endswith("/batch/storage/v1"):
            # A batch is many requests in one; only a caller without a boundary gets to make one.
            if caller.boundary is not None or not caller.account.storage:
                raise Refused(403, "A batch cannot be checked against a boundary here.")
            return await self.upstream.send(request, _target(request))
        bucket = _name(parts[1]) if len(parts) > 1 else ""
        if len(parts) >= 4 and parts[2] == "o" and kind != "/upload/":
            name, verb = _name(parts[3]), _JSON_VERBS[request.method]
            if len(parts) > 4 and parts[4] in ("rewriteTo", "copyTo", "compose", "moveTo"):
                self._demand(caller, Asked("storage.objects.get", bucket, name))
                name, bucket = (_name(parts[8]), _name(parts[6])) if len(parts) > 8 else (name, bucket)
                verb = "create"
            self._demand(caller, Asked(f"storage.objects.{verb}", bucket, name))
            if request.method in ("GET", "HEAD") and len(parts) == 4:
                return await self._json_object(request, bucket, name, kind == "/download/")
            return await self.upstream.send(request, _target(request))
        if len(parts) == 3 and parts[2] == "o":
            if request.method in ("GET", "HEAD"):
                self._demand(caller, Asked("storage.objects.list", bucket, None, query.get("prefix", "")))
                return await self._json_list(request, bucket)
            # The name of a new object is in the query or in the body's metadata: asked for the bucket as
            # a whole.
            self._demand(caller, Asked("storage.objects.create", bucket, query.get("name", "")))
            return await self._upload(request)
        verb = "get" if request.method in ("GET", "HEAD") else "update"
        self._demand(caller, Asked(f"storage.buckets.{verb}", bucket))
        return await self.upstream.send(request, _target(request))

    async def _json_object(self, request: Request, bucket: str, name: str, download: bool) -> Response:
        resource = await self._described(bucket, name, request.query_params.get("generation"))
        if download or request.query_params.get("alt") == "media":
            return await self.objects.content(resource, request.headers, body=request.method == "GET")
        return JSONResponse(resource)

    async def _json_list(self, request: Request, bucket: str) -> Response:
        query = request.query_params
        page = await self.objects.page(
            bucket,
            query.get("prefix", ""),
            query.get("delimiter", ""),
            query.get("startOffset", ""),
            query.get("pageToken", ""),
            min(int(query.get("maxResults", "1000")), 1000),
        )
        if page is None:
            raise Refused(404, "The specified bucket does not exist.")
        return json_list(page)

    async def _upload(self, request: Request) -> Response:
        answer = await self.upstream.send(request, _target(request))
        if "location" in answer.headers:
            path = answer.headers["location"].partition("://")[2].partition("/")[2]
            answer.headers["location"] = f"{self.public}/{path}"
        return answer

    async def _xml(self, request: Request) -> Response:
        raw = _path(request)
        bucket, _, rest = raw.removeprefix("/").partition("/")
        bucket, name = _name(bucket), _name(rest)
        if not bucket:
            raise Refused(403, "Buckets are not listed here.")
        query = parse_qsl(request.scope["query_string"].decode("ascii"), keep_blank_values=True)
        if not name:
            asked = Asked("storage.objects.list", bucket, None, dict(query).get("prefix", ""))
        else:
            asked = Asked(f"storage.objects.{_XML_VERBS.get(request.method, 'update')}", bucket, name)
        if "X-Goog-Signature" in dict(query):
            host = request.headers["host"]
            signer = self.identities.signer_of(request.method, host, raw, query, request.headers)
            if signer is None or not signer.storage:
                raise Refused(403, "The signature is wrong, of nobody known, or has expired.")
        else:
            self._demand(self._known(request), asked)
        if not name:
            return await self._xml_list(request, bucket, asked.list_prefix)
        if request.method in ("GET", "HEAD"):
            resource = await self._described(bucket, name, request.query_params.get("generation"))
            return await self.objects.content(resource, request.headers, body=request.method == "GET")
        path = f"{quote(bucket)}/{quote(name)}"
        if request.method == "DELETE":
            path = f"storage/v1/b/{quote(bucket)}/o/{quote(name, safe='')}"
        answer = await self.upstream.send(request, f"/{path}")
        written = await self.objects.describe(bucket, name)
        if written is not None:
            answer.headers["etag"] = f'"{written["etag"]}"'
            answer.headers["x-goog-generation"] = written["generation"]
        return answer

    async def _xml_list(self, request: Request, bucket: str, prefix: str) -> Response:
        if request.method != "GET":
            raise Refused(403, "Buckets are made through the JSON API here.")
        query = request.query_params
        page = await self.objects.page(
            bucket,
            prefix,
            query.get("delimiter", ""),
            f"{query['start-after']}\0" if "start-after" in query else "",
            query.get("continuation-token", ""),
            min(int(query.get("max-keys", "1000")), 1000),
        )
        if page is None:
            raise Refused(404, "The specified bucket does not exist.")
        return xml_list(bucket, prefix, page)

    async def _described(self, bucket: str, name: str, generation: str | None) -> dict[str, Any]:
        resource = await self.objects.describe(bucket, name)
        if resource is None or generation not in (None, resource["generation"]):
            raise Refused(404, f"No such object: {bucket}/{name}")
        return resource

    async def _identity(self, request: Request, act: Any) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        try:
            return JSONResponse(act(form))
        except IdentityError as error:
            return JSONResponse({"error": error.error, "error_description": str(error)}, error.status)

    def _caller(self, request: Request) -> Token | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return self.identities.find(token) if scheme.lower() == "bearer" else None

    def _known(self, request: Request) -> Token:
        caller = self._caller(request)
        if caller is None:
            raise Refused(401, "Invalid credentials: no token, or one that is unknown or has expired.")
        return caller

    def _demand(self, caller: Token, asked: Asked) -> None:
        if not caller.allows(asked):
            raise Refused(
                403, f"{caller.account.email} does not have {asked.permission} on {asked.resource}."
            )


def _path(request: Request) -> str:
    raw: str = request.scope["raw_path"].decode("ascii")
    return raw


def _target(request: Request) -> str:
    query = request.scope["query_string"].decode("ascii")
    return f"{_path(request)}?{query}" if query else _path(request)


def _name(encoded: str) -> str:
    name = unquote(encoded)
    # The emulator keeps names as paths, where these would meet other names.
    if "\\" in name or any(segment in (".", "..") for segment in name.split("/")):
        raise Refused(400, "The emulator behind cannot hold this name.")
    return name


def main() -> None:
    """Run the gate with the settings in the file named by the first argument."""
    settings = Settings(**json.loads(Path(sys.argv[1]).read_text()))
    gate = Gate(settings)
    methods = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"]
    storage = [
        Route(f"{prefix}/storage/v1{rest}", gate.json_api, methods=methods)
        for prefix in ("", "/download", "/upload", "/batch")
        for rest in ("", "/{rest:path}")
    ]
    app = Starlette(
        routes=[
            Route("/token", gate.token, methods=["POST"]),
            Route("/v1/token", gate.exchange, methods=["POST"]),
            Route("/v1/projects/-/serviceAccounts/{call:path}", gate.account, methods=["POST"]),
            *storage,
            Route("/{rest:path}", gate.xml_api, methods=methods),
        ]
    )
    serve(app, settings.port)


if __name__ == "__main__":
    main()
