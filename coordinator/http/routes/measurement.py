"""What a device measures itself with, before it enrols or later."""

from typing import Annotated

from fastapi import Depends, FastAPI, Query
from starlette.requests import Request
from starlette.responses import Response

from coordinator.errors import CoordinatorError
from coordinator.federations.lifecycle import existing
from coordinator.federations.measurement import FederationMeasurement
from coordinator.http.authentication import Caller
from coordinator.http.error_handlers import HttpError
from coordinator.http.routes.artifacts import ARTIFACT_ANSWERS, artifact_response, wanted_by
from coordinator.http.routes.openapi_schemas import reference
from coordinator.http.routes.registration import add, federation_of, media
from coordinator.http.routes.responses import document
from coordinator.http.services import Services, services_of
from edgefl.values import GraphFormat

__all__ = ["add_routes"]

_Form = Annotated[GraphFormat, Query(alias="format", description="What the device's engine runs.")]


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


async def get_measurement(
    request: Request, federation: Annotated[str, Depends(federation_of)], form: _Form = GraphFormat.ONNX
) -> Response:
    """Return the steps of a federation's own model that a device times to profile itself.

    Those of the format `executorch` are compiled programs, as far as the federation has any.
    """
    return document((await _measurement(services_of(request), federation, form)).measurement)


async def get_measurement_artifact(
    request: Request, digest: str, federation: Annotated[str, Depends(federation_of)]
) -> Response:
    """Download what the measurement or a program in it names (graphs, weights, submodels, programs), or a range of it.

    A device finds them among the artifacts of its tasks too; this route is also for the holder of a join key.
    """
    services = services_of(request)
    if not await _is_named(services, federation, digest):
        raise HttpError(404, f"the measurement names no {digest[:80]!r}", fix="Get /v1/measurement again.")
    return await services.threads.run(artifact_response, services, federation, digest, wanted_by(request))


async def _is_named(services: Services, federation: str, digest: str) -> bool:
    """Return whether a measurement names a body, for graphs or for programs."""
    if digest in (await _measurement(services, federation, GraphFormat.ONNX)).digests:
        return True
    try:
        return digest in (await _measurement(services, federation, GraphFormat.EXECUTORCH)).digests
    except CoordinatorError:  # it has no programs
        return False


async def _measurement(services: Services, federation: str, form: GraphFormat) -> FederationMeasurement:
    known = await services.threads.run(_known, services, federation, form)
    if known is not None:
        return known
    # The first to ask must not hold up the polls of everybody else.
    return await services.threads.run_long(
        lambda: services.measurements.of(existing(services.context, federation), form)
    )


def _known(services: Services, federation: str, form: GraphFormat) -> FederationMeasurement | None:
    return services.measurements.known(existing(services.context, federation), form)
