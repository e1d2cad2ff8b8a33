"""The short way to the routes that are asked for most.

A request passes a dozen of FastAPI's layers before its route runs, and they take longer than the route: most
of what a list or a cached credential costs. A route marked with `direct` reads everything from the request
itself and needs none of them, so it is matched and called here. FastAPI still knows it, describes it, and
answers what is not matched: other methods, other paths.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lakepass.broker.answers import refusal
from lakepass.broker.errors import RequestError

Handler = Callable[[Request], Awaitable[Response]]


def direct(handler: Handler) -> Handler:
    """Mark a route that takes the request and nothing else."""
    handler.__dict__["direct"] = True
    return handler


class Direct:
    """The innermost layer before FastAPI's own."""

    def __init__(self, app: ASGIApp, *, prefix: str, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._prefix = prefix
        self._routes = [
            (route.path_regex.match, method, route.endpoint, route)
            for route in routes
            if isinstance(route, Route) and getattr(route.endpoint, "direct", False)
            for method in route.methods or ()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request here when its route is direct."""
        if scope["type"] == "http":
            path, asked = scope["path"], scope["method"]
            if path.startswith(self._prefix):
                below = path[len(self._prefix) :]
                for match, method, endpoint, route in self._routes:
                    if method == asked and (found := match(below)):
                        scope["path_params"] = found.groupdict()
                        scope["route"] = route
                        try:
                            response = await endpoint(Request(scope, receive, send))
                        except RequestError as error:
                            response = refusal(error)
                        await response(scope, receive, send)
                        return
        await self._app(scope, receive, send)
