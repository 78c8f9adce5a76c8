"""What a sample of the caller's federation is, so that a device can check its data before it enrols."""

from typing import Annotated

from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from coordinator.federations.lifecycle import existing
from coordinator.http.authentication import Caller
from coordinator.http.routes.openapi_schemas import reference
from coordinator.http.routes.registration import add, federation_of, media
from coordinator.http.routes.responses import document
from coordinator.http.services import Services, services_of
from edgefl.values import SampleSpec

__all__ = ["add_routes"]


def add_routes(app: FastAPI) -> None:
    """Add the route of this file."""
    add(
        app,
        "GET",
        "/v1/sample",
        describe_sample,
        caller=Caller.MEMBER,
        tag="devices",
        answers={200: media(reference("SampleSpec"), about="What a sample of the federation is.")},
    )


async def describe_sample(request: Request, federation: Annotated[str, Depends(federation_of)]) -> Response:
    """Describe a sample: shape, type, normalisation, classes, and an example."""
    services = services_of(request)
    known = await services.threads.run(_known, services, federation)
    # The first to ask may have the evaluation data loaded, and must not hold up the polls of everybody else.
    return document(known or await services.threads.run_long(_sample, services, federation))


def _known(services: Services, federation: str) -> SampleSpec | None:
    return services.context.repository.known_sample(existing(services.context, federation))


def _sample(services: Services, federation: str) -> SampleSpec:
    return services.context.repository.sample(existing(services.context, federation))
