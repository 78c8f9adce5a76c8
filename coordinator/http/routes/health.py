"""Health, readiness, metrics and the OpenAPI document."""

import time
from functools import partial

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from coordinator.http.authentication import Caller
from coordinator.http.error_handlers import HttpError, retry_after
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.view_models import Health
from coordinator.http.services import Services, services_of

__all__ = ["add_routes"]

_NO_SUCH = "sha256:" + "0" * 64
_FRESH_SECONDS = 1.0
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def add_routes(app: FastAPI) -> None:
    """Add the routes of this file."""
    public = partial(add, app, caller=Caller.PUBLIC, tag="service")
    public("GET", "/healthz", get_health, model=Health)
    public("GET", "/readyz", get_readiness, model=Health)
    public("GET", "/openapi.json", get_openapi, answers={200: media({"type": "object"})})
    add(
        app,
        "GET",
        "/metrics",
        get_metrics,
        caller=Caller.VIEWER,
        tag="service",
        answers={200: media({"type": "string"}, kind="text/plain", about="Prometheus' text form.")},
    )


async def get_health() -> Health:
    """Check that the process runs."""
    return Health(status="ok")


async def get_readiness(request: Request) -> Health:
    """Check that database, blob store and rounds work."""
    services = services_of(request)
    state = request.app.state
    if time.monotonic() - getattr(state, "ready_at", float("-inf")) > _FRESH_SECONDS:
        state.ready_at = time.monotonic()  # anybody may call this, so storage is checked at most once a second
        state.broken = await services.threads.run(_broken, services)
    if state.broken:
        raise HttpError(
            503, f"not ready: {', '.join(state.broken)}", fix="Look at the coordinator's log.", headers=retry_after(5)
        )
    return Health(status="ok")


def _broken(services: Services) -> list[str]:
    broken = []
    for name, ask in (
        ("the database does not answer", lambda: services.context.store.federations.get("-")),
        ("the blob store does not answer", lambda: services.context.blobs.size(_NO_SUCH)),
    ):
        try:
            ask()
        except Exception:
            broken.append(name)
    if not services.driver.alive:
        broken.append("rounds do not advance")
    if not services.upload_queue.alive:
        broken.append("updates are not stored")
    return broken


async def get_metrics(request: Request) -> Response:
    """Get the numbers that Prometheus collects."""
    services = services_of(request)
    return Response(await services.threads.run_long(services.metrics.text), media_type=_TEXT)


async def get_openapi(request: Request) -> Response:
    """Get the description of this API."""
    return Response(request.app.state.openapi_text, media_type="application/json")
