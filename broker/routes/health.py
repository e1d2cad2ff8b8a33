"""Whether the broker runs, whether it can serve, and its numbers."""

from __future__ import annotations

import logging

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lakepass.broker.answers import error_answer, json_answer
from lakepass.broker.state import CurrentBroker

router = APIRouter(tags=["Health"])
logger = logging.getLogger("lakepass.broker")


@router.get("/health/live", summary="Is the process running?")
async def live() -> Response:
    """Always yes, when it can be asked."""
    return json_answer({"status": "live"})


@router.get("/health/ready", summary="Can requests be served?")
async def ready(broker: CurrentBroker) -> Response:
    """Yes when the database answers."""
    try:
        await broker.lookups.ready()
    except Exception:
        logger.exception("the database does not answer")
        return error_answer(
            503, "TEMPORARILY_UNAVAILABLE", "The database does not answer.", {"Retry-After": "5"}
        )
    return json_answer({"status": "ready"})


@router.get("/metrics", summary="Prometheus metrics")
async def metrics(request: Request) -> Response:
    """Counts and durations."""
    return Response(request.app.state.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")
