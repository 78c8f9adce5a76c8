"""Compiled programs: which a federation has and wants, leases for those who compile them, and their upload.

A worker (`edgefl compile`) downloads the bundle, takes what is wanted, renews its lease while it compiles, sends the
file, and then the document that says how it is called.
"""

from functools import partial
from typing import Annotated

from fastapi import FastAPI, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.federations import programs
from coordinator.federations.lifecycle import existing
from coordinator.http.authentication import Caller, actor_of
from coordinator.http.routes.conversion import program_view
from coordinator.http.routes.federations import Named
from coordinator.http.routes.openapi_schemas import DIGEST, IDENTIFIER, reference
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.request_bodies import read_document, read_model, upload
from coordinator.http.routes.responses import Pieces, from_thread
from coordinator.http.routes.view_models import (
    LeaseView,
    ProgramFailure,
    ProgramFileView,
    ProgramsView,
    ProgramView,
    RetryRequest,
    RetryView,
    WorkerRequest,
)
from coordinator.http.server_settings import ServerLimits
from coordinator.http.services import Services, services_of
from coordinator.rounds.context import Context
from coordinator.storage.records import AuditEvent
from edgefl.values import Program, to_json

__all__ = ["add_routes"]

_BASE = "/v1/federations/{name}"
_BINARY = {"type": "string", "format": "binary"}
_ZIP = "application/zip"
_Key = Annotated[str, Path(pattern=DIGEST, description="The key of the program's specification.")]
_Worker = Annotated[str, Query(pattern=IDENTIFIER, description="The name of the worker.")]


def add_routes(app: FastAPI, limits: ServerLimits) -> None:
    """Add the routes of this file."""
    admin = partial(add, app, caller=Caller.ADMIN, tag="programs")
    worker = media(reference("WorkerRequest"), about="Who compiles it.", required=True)
    small = limits.document_bytes
    admin("GET", _BASE + "/bundle", get_bundle, answers={200: media(_BINARY, kind=_ZIP, about="The bundle.")})
    add(
        app,
        "GET",
        _BASE + "/programs",
        list_programs,
        caller=Caller.VIEWER,
        tag="programs",
        model=ProgramsView,
    )
    admin(
        "POST",
        _BASE + "/programs/take",
        take_program,
        answers={
            200: media(reference("LeaseView"), about="What to compile."),
            204: {"description": "Nothing is wanted."},
        },
        body=worker,
        most_bytes=small,
    )
    again = media(reference("RetryRequest"), about="Which program; without one, all that failed.")
    admin("POST", _BASE + "/programs/retry", retry_programs, model=RetryView, body=again, most_bytes=small)
    admin("PUT", _BASE + "/programs/{key}/lease", renew_lease, status=204, body=worker, most_bytes=small)
    admin("DELETE", _BASE + "/programs/{key}/lease", give_back_lease, status=204)
    failure = media(reference("ProgramFailure"), about="Who could not compile it, and why.", required=True)
    admin("POST", _BASE + "/programs/{key}/failure", report_failure, status=204, body=failure, most_bytes=small)
    stored = media(reference("ProgramView"), about="Devices may use it.")
    admin(
        "PUT",
        _BASE + "/programs/{key}",
        put_program,
        status=201,
        answers={201: stored, 200: media(reference("ProgramView"), about="There is one already, which stays.")},
        body=media(reference("Program"), about="How the program is called, and its file.", required=True),
        most_bytes=limits.json_bytes,
    )
    file = media(_BINARY, kind="application/octet-stream", about="The bytes of a .pte file.", required=True)
    admin(
        "POST",
        "/v1/programs",
        keep_program_file,
        status=201,
        model=ProgramFileView,
        body=file,
        most_bytes=limits.program_bytes,
    )


async def get_bundle(request: Request, name: Named) -> Response:
    """Download the bundle of a federation: its model graph, its ONNX graphs, its first weights, and its programs."""
    services = services_of(request)
    federation = await services.threads.run(existing, services.context, name)
    size = await services.threads.run(services.context.blobs.size, federation.bundle)
    if size is None:
        raise CoordinatorError(
            ErrorReason.NOT_FOUND, f"the bundle of {name!r} is gone", fix="Restore the blob store from a backup."
        )
    now, by = services.context.now(), actor_of(request)
    event = AuditEvent(at=now, by=by, action="bundle.download", target=name, detail={"bundle": federation.bundle})
    await services.threads.run(services.context.store.audit.add, event)
    pieces = services.context.blobs.read(federation.bundle, 0, size)
    headers = {"Cache-Control": "no-store", "ETag": f'"{federation.bundle}"', "Content-Length": str(size)}
    return Pieces(from_thread(services.threads, iter(pieces)), 200, headers, _ZIP)


async def list_programs(request: Request, name: Named) -> ProgramsView:
    """List the programs of a federation: those that are ready, those that are wanted, and those that failed."""
    services = services_of(request)
    return await services.threads.run_long(_listed, services.context, name)


def _listed(context: Context, name: str) -> ProgramsView:
    ladder = context.programs.of(existing(context, name)).ladder
    views = [program_view(one, ladder) for one in context.store.programs.of(name)]
    return ProgramsView(programs=sorted(views, key=lambda view: (view.role == "infer", view.rung, view.key)))


async def take_program(request: Request, name: Named) -> Response:
    """Take the next wanted program, to compile it. Asking again returns the one that this worker holds."""
    services = services_of(request)
    requested = await read_model(request, WorkerRequest)
    found = await services.threads.run_long(programs.take, services.context, name, requested.worker)
    if found is None:
        return Response(status_code=204)
    spec, seconds = to_json(found.spec), programs.LEASE_SECONDS
    view = LeaseView(key=found.key, spec=spec, rung=found.rung, lease_seconds=seconds)
    return Response(view.model_dump_json().encode(), 200, media_type="application/json")


async def renew_lease(request: Request, name: Named, key: _Key) -> Response:
    """Go on compiling a program; 409 if somebody else has taken it over or delivered it."""
    services = services_of(request)
    requested = await read_model(request, WorkerRequest)
    await services.threads.run(programs.renew, services.context, name, key, requested.worker)
    return Response(status_code=204)


async def give_back_lease(request: Request, name: Named, key: _Key, worker: _Worker) -> Response:
    """Give a program back, so that others can compile it at once."""
    services = services_of(request)
    await services.threads.run(programs.give_back, services.context, name, key, worker)
    return Response(status_code=204)


async def report_failure(request: Request, name: Named, key: _Key) -> Response:
    """Report that a program cannot be compiled. After the third time nobody tries it again."""
    services = services_of(request)
    requested = await read_model(request, ProgramFailure)
    run = services.threads.run
    await run(programs.fail, services.context, name, key, requested.worker, requested.reason)
    return Response(status_code=204)


async def retry_programs(request: Request, name: Named) -> RetryView:
    """Let programs be compiled again: one that failed or is no good, or all that failed."""
    services = services_of(request)
    requested = await read_model(request, RetryRequest)
    by = actor_of(request)
    count = await services.threads.run(
        lambda: programs.want_again(services.context, name, requested.key, by=by),
    )
    return RetryView(programs=count)


async def keep_program_file(request: Request) -> ProgramFileView:
    """Upload the file of a program, and get its digest. Its document follows."""
    services, by = services_of(request), actor_of(request)
    async with upload(request, "operator") as body:
        digest = await services.threads.run_long(lambda: programs.keep_file(services.context, body, by=by))
    return ProgramFileView(digest=digest)


async def put_program(request: Request, name: Named, key: _Key, worker: _Worker | None = None) -> Response:
    """Let devices use a program whose file was uploaded. The first one of its key stays, with a lease or without."""
    services = services_of(request)
    program = await read_document(request, Program)
    view, new = await services.threads.run_long(_put, services, name, key, program, worker, request)
    services.driver.wake()  # a device may have waited for it
    return Response(view.model_dump_json().encode(), 201 if new else 200, media_type="application/json")


def _put(
    services: Services, name: str, key: str, program: Program, worker: str | None, request: Request
) -> tuple[ProgramView, bool]:
    context = services.context
    new = programs.deliver(context, name, key, program, worker, by=actor_of(request))
    stored = context.store.programs.get(name, key)
    if stored is None:  # an operator let it be compiled again meanwhile, and nobody wants it
        raise CoordinatorError(ErrorReason.NOT_FOUND, f"nobody wants the program {key}", fix="Take the next one.")
    return program_view(stored, context.programs.of(existing(context, name)).ladder), new
