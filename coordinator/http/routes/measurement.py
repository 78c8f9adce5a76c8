"""What a device measures itself with, before it enrols or later."""

from typing import Annotated

from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from coordinator.federations.lifecycle import existing
from coordinator.http.authentication import Caller
from coordinator.http.error_handlers import HttpError
from coordinator.http.routes.artifacts import ARTIFACT_ANSWERS, artifact_response, wanted_by
from coordinator.http.routes.openapi_schemas import reference
from coordinator.http.routes.registration import add, federation_of, media
from coordinator.http.routes.responses import document
from coordinator.http.services import Services, services_of
from edgefl.values import Measurement

__all__ = ["add_routes"]


def add_routes(app: FastAPI) -> None:
    """Add the routes of this file."""
    add(
        app,
        "GET",
        "/v1/measurement",
        get_measurement,
        caller=Caller.MEMBER,
        tag="devices",
        answers={200: media(reference("Measurement"), about="Steps to time.")},
    )
    add(
        app,
        "GET",
        "/v1/measurement/{digest}",
        get_measurement_artifact,
        caller=Caller.MEMBER,
        tag="devices",
        answers=ARTIFACT_ANSWERS,
    )


async def get_measurement(request: Request, federation: Annotated[str, Depends(federation_of)]) -> Response:
    """Return the steps of a federation's own model that a device times to profile itself."""
    services = services_of(request)
    return document(await services.threads.run(_measurement, services, federation))


async def get_measurement_artifact(
    request: Request, digest: str, federation: Annotated[str, Depends(federation_of)]
) -> Response:
    """Download a graph, weights or a submodel that the measurement names, or a range of it.

    A device finds them among the artifacts of its tasks too; this route is also for the holder of a join key.
    """
    services = services_of(request)
    return await services.threads.run(_artifact, services, federation, digest, request)


def _measurement(services: Services, federation: str) -> Measurement:
    return services.measurements.of(existing(services.context, federation))


def _artifact(services: Services, federation: str, digest: str, request: Request) -> Response:
    if not services.measurements.names(existing(services.context, federation), digest):
        raise HttpError(404, f"the measurement names no {digest[:80]!r}", fix="Get /v1/measurement again.")
    return artifact_response(services, federation, digest, wanted_by(request))
