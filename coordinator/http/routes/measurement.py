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
    return document(await _measurement(services_of(request), federation))


async def get_measurement_artifact(
    request: Request, digest: str, federation: Annotated[str, Depends(federation_of)]
) -> Response:
    """Download a graph, weights or a submodel that the measurement names, or a range of it.

    A device finds them among the artifacts of its tasks too; this route is also for the holder of a join key.
    """
    services = services_of(request)
    measurement = await _measurement(services, federation)
    if not any(digest in (case.graph, case.weights, case.submodel) for case in measurement.cases):
        raise HttpError(404, f"the measurement names no {digest[:80]!r}", fix="Get /v1/measurement again.")
    return await services.threads.run(artifact_response, services, federation, digest, wanted_by(request))


async def _measurement(services: Services, federation: str) -> Measurement:
    known = await services.threads.run(lambda: services.measurements.known(existing(services.context, federation)))
    if known is not None:
        return known
    # The first to ask must not hold up the polls of everybody else.
    return await services.threads.run_long(lambda: services.measurements.of(existing(services.context, federation)))
