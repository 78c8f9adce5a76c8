"""Health, readiness, metrics and the OpenAPI document."""

from functools import partial

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from coordinator.http.authentication import Caller
from coordinator.http.error_handlers import HttpError, retry_after
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.view_models import Health
from coordinator.http.services import services_of

__all__ = ["add_routes"]

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
    """Check that the database and the blob store can be read and written, and that rounds advance."""
    services = services_of(request)
    broken = await services.readiness.broken()
    if not services.driver.alive:
        broken.append("rounds do not advance")
    if not services.upload_queue.alive:
        broken.append("updates are not stored")
    if broken:
        raise HttpError(
            503, f"not ready: {', '.join(broken)}", fix="Look at the coordinator's log.", headers=retry_after(5)
        )
    return Health(status="ok")


async def get_metrics(request: Request) -> Response:
    """Get the numbers that Prometheus collects."""
    services = services_of(request)
    return Response(await services.threads.run_long(services.metrics.text), media_type=_TEXT)


async def get_openapi(request: Request) -> Response:
    """Get the description of this API."""
    return Response(request.app.state.openapi_text, media_type="application/json")
