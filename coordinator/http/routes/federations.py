"""Federations: create, start, pause, resume, abort and show them."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import FastAPI, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from coordinator.federations import lifecycle
from coordinator.federations.overview import overview_of
from coordinator.http.authentication import Caller, actor_of
from coordinator.http.error_handlers import HttpError
from coordinator.http.routes.conversion import federation_view, round_view, task_view
from coordinator.http.routes.openapi_schemas import IDENTIFIER, reference
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.request_bodies import read_model
from coordinator.http.routes.view_models import (
    DeadlineRequest,
    FederationRequest,
    FederationsView,
    FederationView,
    MoveRequest,
    RoundsView,
    RoundView,
    TasksView,
)
from coordinator.http.server_settings import ServerLimits
from coordinator.http.services import services_of
from coordinator.rounds.context import Context
from coordinator.storage.records import Actor
from edgefl.federation.settings import FederationSettings
from edgefl.strategies import is_user_strategy
from edgefl.values import from_json

__all__ = ["LARGEST_ROUND", "Named", "add_routes"]

LARGEST_ROUND = 2**31 - 1
Named = Annotated[str, Path(pattern=IDENTIFIER, description="The federation's name.")]
_Number = Annotated[int, Path(ge=0, le=LARGEST_ROUND)]
_BASE = "/v1/federations"


def add_routes(app: FastAPI, limits: ServerLimits) -> None:
    """Add the routes of this file."""
    admin = partial(add, app, caller=Caller.ADMIN, tag="federations")
    viewer = partial(add, app, caller=Caller.VIEWER, tag="federations")
    admin(
        "POST",
        _BASE,
        create_federation,
        status=201,
        answers={
            201: media(reference("FederationView"), about="It is created."),
            200: media(reference("FederationView"), about="It exists, with these settings and this bundle."),
        },
        body=media(reference("FederationRequest"), about="Settings, and the digest of a bundle.", required=True),
        most_bytes=limits.json_bytes,
    )
    viewer("GET", _BASE, list_federations, model=FederationsView)
    viewer("GET", _BASE + "/{name}", show_federation, model=FederationView)
    for verb in lifecycle.Verb:
        admin(
            "POST",
            f"{_BASE}/{{name}}/{verb}",
            _moving(verb),
            model=FederationView,
            body=media(reference("MoveRequest"), about="Why, for a person."),
            most_bytes=limits.document_bytes,
        )
    admin(
        "PUT",
        _BASE + "/{name}/deadline",
        change_deadline,
        model=FederationView,
        body=media(reference("DeadlineRequest"), about="How long rounds last from now on.", required=True),
        most_bytes=limits.document_bytes,
    )
    viewer("GET", _BASE + "/{name}/rounds", list_rounds, model=RoundsView)
    viewer("GET", _BASE + "/{name}/rounds/{number}", show_round, model=RoundView)
    viewer("GET", _BASE + "/{name}/tasks", list_tasks, model=TasksView)


async def create_federation(request: Request) -> Response:
    """Create a federation. Creating the same one again returns 200; another one of its name returns 409."""
    services = services_of(request)
    requested = await read_model(request, FederationRequest)
    view, new = await services.threads.run_long(_create, services.context, requested, actor_of(request))
    return Response(view.model_dump_json().encode(), 201 if new else 200, media_type="application/json")


def _create(context: Context, requested: FederationRequest, by: Actor) -> tuple[FederationView, bool]:
    settings, digest = from_json(FederationSettings, requested.settings), requested.bundle
    settings.check_real_time()
    if context.blobs.size(digest) is None:
        raise HttpError(404, f"there is no bundle {digest}", fix="Send it to /v1/bundles first.")
    if is_user_strategy(settings.strategy.name):  # never import code because of a name that was sent
        raise HttpError(
            403,
            f"the strategy {settings.strategy.name!r} is not one of EdgeFL's own",
            fix="Create this federation on the coordinator's machine: edgefl serve FILE",
        )
    federation, new = lifecycle.create(context, settings, context.blobs.get(digest), by=by)
    return _view(context, federation.id), new


async def list_federations(request: Request) -> FederationsView:
    """List all federations."""
    services = services_of(request)

    def listed() -> FederationsView:
        known = services.context.store.federations.all()
        views = [federation_view(overview_of(services.context, one)) for one in known]
        return FederationsView(federations=views)

    return await services.threads.run_long(listed)


async def show_federation(request: Request, name: Named) -> FederationView:
    """Show a federation and its settings."""
    services = services_of(request)
    return await services.threads.run_long(_view, services.context, name)


def _view(context: Context, name: str) -> FederationView:
    return federation_view(overview_of(context, lifecycle.existing(context, name)), whole=True)


def _moving(verb: lifecycle.Verb) -> Callable[..., object]:
    async def move(request: Request, name: Named) -> FederationView:
        services = services_of(request)
        requested = await read_model(request, MoveRequest)

        def moved() -> FederationView:
            lifecycle.move(services.context, name, verb, requested.reason, by=actor_of(request))
            return _view(services.context, name)

        view = await services.threads.run_long(moved)
        services.driver.wake()
        return view

    move.__name__ = f"{verb}_federation"
    move.__doc__ = f"{verb.capitalize()} a federation."
    return move


async def change_deadline(request: Request, name: Named) -> FederationView:
    """Change how long rounds last, including the open one, or when the open one closes.

    Devices that already have a task keep its deadline.
    """
    services = services_of(request)
    requested = await read_model(request, DeadlineRequest)

    def changed() -> FederationView:
        lifecycle.change_deadline(services.context, name, requested.seconds, requested.closes_in, by=actor_of(request))
        return _view(services.context, name)

    view = await services.threads.run_long(changed)
    services.driver.wake()
    return view


async def list_rounds(request: Request, name: Named) -> RoundsView:
    """List the rounds of a federation."""
    services = services_of(request)

    def listed() -> RoundsView:
        lifecycle.existing(services.context, name)
        return RoundsView(rounds=[round_view(one) for one in services.context.store.rounds.of(name)])

    return await services.threads.run_long(listed)


async def show_round(request: Request, name: Named, number: _Number) -> RoundView:
    """Show a round."""
    services = services_of(request)
    found = await services.threads.run(services.context.store.rounds.get, name, number)
    if found is None:
        raise HttpError(404, f"{name!r} has no round {number}", fix="Rounds are counted from 0; list them first.")
    return round_view(found)


async def list_tasks(
    request: Request, name: Named, number: Annotated[int | None, Query(alias="round", ge=0, le=LARGEST_ROUND)] = None
) -> TasksView:
    """List the tasks of a federation, or of one of its rounds."""
    services = services_of(request)

    def listed() -> TasksView:
        lifecycle.existing(services.context, name)
        return TasksView(tasks=[task_view(task) for task in services.context.store.tasks.of(name, number=number)])

    return await services.threads.run_long(listed)
