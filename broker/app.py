"""The application: every route a recipient can reach, in one place, inside the envelope."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from lakepass.broker.access_log import AccessLog
from lakepass.broker.answers import error_answer, refusal
from lakepass.broker.config import Settings
from lakepass.broker.direct import Direct
from lakepass.broker.envelope import Envelope
from lakepass.broker.errors import RequestError
from lakepass.broker.metrics import Metrics
from lakepass.broker.routes import activation, admin, credentials, health, lists, tables
from lakepass.broker.state import Broker


def create_app(settings: Settings, access_log: AccessLog | None = None) -> FastAPI:
    """The broker as an ASGI application; opening the catalog migrates it."""
    broker = Broker(settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await broker.close()

    app = FastAPI(
        title="lakepass",
        summary="A Delta Sharing server that vends credentials for one table's directory.",
        version=metadata.version("lakepass"),
        lifespan=lifespan,
        redirect_slashes=False,
        openapi_url="/openapi.json",
    )
    app.state.broker = broker
    app.state.metrics = Metrics()
    app.include_router(credentials.router, prefix=settings.server.prefix)
    app.include_router(lists.router, prefix=settings.server.prefix)
    app.include_router(tables.router, prefix=settings.server.prefix)
    app.include_router(credentials.unity_catalog_router)
    app.include_router(health.router)
    app.include_router(activation.router)
    if settings.admin is not None:
        app.include_router(admin.router, prefix=settings.admin.prefix)
    app.add_exception_handler(RequestError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _routing_failed)
    app.add_middleware(
        Direct,
        prefix=settings.server.prefix,
        routes=[*credentials.router.routes, *lists.router.routes, *tables.router.routes],
    )
    if settings.server.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.server.cors_origins),
            allow_methods=["GET", "HEAD", "POST"],
            allow_headers=["Authorization", "Content-Type", "delta-sharing-capabilities"],
            expose_headers=["Delta-Table-Version", "delta-sharing-capabilities", "X-Request-Id"],
        )
    app.add_middleware(Envelope, server=settings.server, metrics=app.state.metrics, access_log=access_log)
    return app


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return refusal(error)


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = "; ".join(
        f"{'.'.join(str(part) for part in problem['loc'][1:]) or problem['loc'][0]}: {problem['msg']}"
        for problem in error.errors()
    )
    return error_answer(400, "INVALID_PARAMETER_VALUE", problems or "The request is not valid.")


async def _routing_failed(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "RESOURCE_DOES_NOT_EXIST", 405: "METHOD_NOT_ALLOWED"}.get(
        error.status_code, "MALFORMED_REQUEST"
    )
    message = {404: "There is nothing at this path.", 405: "This path does not take this method."}
    return error_answer(
        error.status_code, code, message.get(error.status_code, str(error.detail)), dict(error.headers or {})
    )
