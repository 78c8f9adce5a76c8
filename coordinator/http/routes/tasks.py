"""The tasks of devices: the next task, its result, or its refusal. These are the busiest routes."""

import gzip
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path
from starlette.requests import Request
from starlette.responses import Response

from coordinator.http.authentication import Caller
from coordinator.http.error_handlers import HttpError, as_http_error
from coordinator.http.routes.openapi_schemas import IDENTIFIER, reference
from coordinator.http.routes.registration import add, device_of, media, parameter
from coordinator.http.routes.request_bodies import arrived, is_grouped, read_document, upload
from coordinator.http.routes.responses import document, taken_codings
from coordinator.http.server_settings import ServerLimits
from coordinator.http.services import Services, services_of
from coordinator.polling.long_poll import LONGEST_WAIT
from coordinator.rounds.upload_checks import own_task
from coordinator.rounds.uploads import refuse
from coordinator.storage.records import Device, Task
from edgefl.errors import EdgeFLError
from edgefl.values import Refusal
from edgefl.wire import byte_shuffle

__all__ = ["TENSORS", "add_routes"]

TENSORS = "application/vnd.safetensors"

_Task = Annotated[str, Path(pattern=IDENTIFIER, description="The task's id, from its plan.")]
_Caller = Annotated[Device, Depends(device_of)]
_LARGEST_WAIT = 3600


def add_routes(app: FastAPI, limits: ServerLimits) -> None:
    """Add the routes of this file."""
    receipt: dict[int | str, dict[str, Any]] = {
        200: media(reference("Receipt"), about="It was accepted, now or before, or came too late.")
    }
    add(
        app,
        "POST",
        "/v1/tasks/next",
        next_task,
        caller=Caller.DEVICE,
        tag="tasks",
        answers={200: media(reference("Assignment"), about="What to do, or when to ask again.")},
        busy=[
            parameter(
                "wait",
                "query",
                {"type": "number", "minimum": 0, "maximum": _LARGEST_WAIT, "default": 0},
                f"Seconds to wait for a task, at most {LONGEST_WAIT:g}.",
            ),
            parameter("Accept-Encoding", "header", {"type": "string"}, "'gzip', to get a compressed plan."),
        ],
    )
    add(
        app,
        "PUT",
        "/v1/tasks/{task_id}/result",
        deliver_result,
        caller=Caller.DEVICE,
        tag="tasks",
        answers=receipt,
        body=media(
            {"type": "string", "format": "binary"}, kind=TENSORS, about="A body of kind `update`.", required=True
        ),
        most_bytes=limits.upload_bytes,
        takes_planes=True,
        busy=[parameter("task_id", "path", {"type": "string", "pattern": IDENTIFIER}, "The task's id, from its plan.")],
    )
    add(
        app,
        "PUT",
        "/v1/tasks/{task_id}/refusal",
        refuse_task,
        caller=Caller.DEVICE,
        tag="tasks",
        answers=receipt,
        body=media(reference("Refusal"), about="Why the task is not done.", required=True),
        most_bytes=limits.refusal_bytes,
    )


async def next_task(request: Request, device: _Caller) -> Response:
    """Get the next task, or wait for one."""
    answer = await services_of(request).long_polls.next(device, _seconds(request))
    body, headers = answer.body, dict[str, str]()
    if answer.has_plan:
        headers["Accept-Encoding"] = byte_shuffle.CODINGS  # the encodings that its result may have
        if "gzip" in taken_codings(request.headers.get("accept-encoding")):
            body = gzip.compress(body, mtime=0)
            headers["Content-Encoding"] = "gzip"
    return Response(body, 200, headers, "application/json")


def _seconds(request: Request) -> float:
    text = request.query_params.get("wait", "0") if request.scope["query_string"] else "0"
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= _LARGEST_WAIT:
        raise HttpError(422, f"{text[:40]!r} is not a valid time to wait", fix=f"Give 0 to {_LARGEST_WAIT} seconds.")
    return seconds


async def deliver_result(request: Request, device: _Caller) -> Response:
    """Send the result of a task. It is on disk when this returns."""
    services, task_id = services_of(request), request.path_params["task_id"]
    try:
        with services.uploads.one(device.id):
            task = await services.threads.read(own_task, services.context, device, task_id)
            most = await _most_bytes(services, task)
            async with upload(request, device.id, most) as body:
                came, grouped = arrived(request, body), is_grouped(request)
                receipt = await services.upload_queue.deliver(device, task_id, body, came, grouped=grouped, known=task)
    except EdgeFLError as error:
        services.metrics.update("rejected" if as_http_error(error).status < 500 else "failed")
        raise
    services.metrics.update(receipt.outcome)
    services.long_polls.ended(device.id)
    return document(replace(receipt, retry_seconds=services.long_polls.retry_seconds(device)))


async def _most_bytes(services: Services, task: Task) -> int:
    """Return how large the update of a task may be: it is counted once for a mask and a rule."""
    known = services.upload_sizes.known(task)
    return await services.threads.run(services.upload_sizes.most_bytes, task) if known is None else known


async def refuse_task(request: Request, task_id: _Task, device: _Caller) -> Response:
    """Refuse a task, with a reason."""
    services = services_of(request)
    refusal = await read_document(request, Refusal)
    receipt = await services.threads.run(refuse, services.context, device, task_id, refusal)
    services.metrics.update("refused")
    services.long_polls.ended(device.id)
    services.driver.wake()
    return document(receipt)
