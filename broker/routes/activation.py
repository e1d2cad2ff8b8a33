"""The activation link: a page with one button that gives the profile file, once.

Opening the page uses nothing up, because mail scanners open links too; pressing the button does.
"""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lakepass.broker.answers import NO_STORE
from lakepass.broker.catalog.recipients import IssuedToken
from lakepass.broker.errors import NotFound
from lakepass.broker.state import Broker, CurrentBroker

router = APIRouter(tags=["Activation"])

_HEADERS = {
    **NO_STORE,
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem}}
button{{font:inherit;padding:.6rem 1.2rem;cursor:pointer}}</style></head>
<body><h1>{title}</h1>{content}</body></html>"""
_WELCOME = """<p>Your profile file holds the key to the data that is shared with you.
Keep it as you would a password.</p>
<p><strong>It can be downloaded once.</strong></p>
<form method="post"><button type="submit">Download profile file</button></form>"""


def profile(broker: Broker, request: Request, token: IssuedToken) -> dict[str, object]:
    """The profile file's content for a new token."""
    origin = (broker.settings.server.public_url or str(request.base_url)).rstrip("/")
    content: dict[str, object] = {
        "shareCredentialsVersion": 1,
        "endpoint": f"{origin}{broker.settings.server.prefix}/",
        "bearerToken": token.secret,
    }
    if token.expires_at is not None:
        ends = datetime.fromtimestamp(token.expires_at / 1000, UTC)
        content["expirationTime"] = ends.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return content


@router.get("/activate/{code}", summary="Page of an activation link", response_class=HTMLResponse)
async def show(code: str) -> Response:
    """A page with a button; the same whatever the code, and it uses nothing up."""
    del code
    return HTMLResponse(_PAGE.format(title="Data shared with you", content=_WELCOME), headers=_HEADERS)


@router.post("/activate/{code}", summary="Use an activation link")
async def use(code: str, request: Request, broker: CurrentBroker) -> Response:
    """The profile file, the first time; a page that says so afterwards."""
    try:
        token = await broker.workers.run("catalog", broker.catalog.recipients.activate, code)
    except NotFound as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        content = f"<p>{error.message}</p>"
        return HTMLResponse(_PAGE.format(title="No longer valid", content=content), 404, _HEADERS)
    body = orjson.dumps(profile(broker, request, token), option=orjson.OPT_INDENT_2)
    disposition = {"Content-Disposition": 'attachment; filename="config.share"'}
    return Response(body, 200, {**_HEADERS, **disposition}, "application/json")
