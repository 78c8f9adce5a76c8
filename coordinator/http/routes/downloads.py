"""Downloads of a federation's models, and of its telemetry."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, BinaryIO, Literal

from fastapi import FastAPI, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from coordinator.federations.lifecycle import existing
from coordinator.federations.model_downloads import Form, Part, device_model, global_model
from coordinator.federations.telemetry_table import as_csv, rows, write_parquet
from coordinator.http.authentication import Caller, actor_of
from coordinator.http.routes.federations import LARGEST_ROUND, Named
from coordinator.http.routes.openapi_schemas import IDENTIFIER, reference
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.responses import Pieces, from_thread
from coordinator.http.routes.tasks import TENSORS
from coordinator.http.routes.view_models import TelemetryView
from coordinator.http.services import Services, services_of
from coordinator.rounds.context import Context
from coordinator.storage.records import AuditEvent

__all__ = ["add_routes"]

_BASE = "/v1/federations/{name}"
_BINARY = {"type": "string", "format": "binary"}
_CSV, _PARQUET, _ONNX = "text/csv", "application/vnd.apache.parquet", "application/octet-stream"
_Form = Annotated[Form, Query(alias="format")]


def add_routes(app: FastAPI) -> None:
    """Add the routes of this file."""
    admin = partial(add, app, caller=Caller.ADMIN, tag="results")
    telemetry = media(reference("TelemetryView"), about="A row for every task that ended.")
    telemetry["content"] |= {_CSV: {"schema": {"type": "string"}}, _PARQUET: {"schema": _BINARY}}
    model = media(_BINARY, kind=TENSORS, about="The weights, a model for onnxruntime, or the mask.")
    model["content"][_ONNX] = {"schema": _BINARY}
    add(app, "GET", _BASE + "/telemetry", get_telemetry, caller=Caller.VIEWER, tag="results", answers={200: telemetry})
    admin("GET", _BASE + "/model", get_model, answers={200: model})
    admin("GET", _BASE + "/devices/{device_id}/model", get_device_model, answers={200: model})


async def get_telemetry(
    request: Request,
    name: Named,
    form: Annotated[Literal["json", "csv", "parquet"], Query(alias="format")] = "json",
) -> Response:
    """Get what every task cost: time, memory, energy, network, predicted and measured."""
    services = services_of(request)
    await services.threads.run(existing, services.context, name)
    if form == "csv":
        headers = _attachment(f"{name}.csv")
        return Pieces(from_thread(services.threads, as_csv(rows(services.context.store, name))), 200, headers, _CSV)
    if form == "parquet":
        pieces = await services.threads.run_long(_parquet, services, name)
        return Pieces(from_thread(services.threads, pieces), 200, _attachment(f"{name}.parquet"), _PARQUET)
    body = await services.threads.run_long(_json, services.context, name)
    return Response(body, media_type="application/json")


def _json(context: Context, name: str) -> bytes:
    return TelemetryView(rows=list(rows(context.store, name))).model_dump_json().encode()


def _parquet(services: Services, name: str) -> Iterator[bytes]:
    """Write the file now, so that an error can still become a response. It is deleted while it is open."""
    path = services.context.blobs.spool()
    try:
        write_parquet(rows(services.context.store, name), path)
        file = path.open("rb")
    finally:
        path.unlink(missing_ok=True)
    return _pieces(file)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(256 * 1024):
            yield piece


async def get_model(
    request: Request,
    name: Named,
    form: _Form = "weights",
    fraction: Annotated[float | None, Query(gt=0, le=1)] = None,
    number: Annotated[int | None, Query(alias="round", ge=0, le=LARGEST_ROUND)] = None,
    part: Part = "whole",
) -> Response:
    """Get the newest global model or that of a round: all of it, the part that devices hold, which is what is judged,
    or its best submodel of at most a fraction of the parameters."""
    services = services_of(request)
    data = await services.threads.run_long(global_model, services.context, name, form, fraction, number, part)
    await _audit(request, name, form=form, fraction=fraction, round=number, part=part, bytes=len(data))
    titles = [name, *([] if number is None else [f"round-{number}"]), *([] if fraction is None else [f"{fraction:g}"])]
    return _model(data, "-".join(titles), form)


async def get_device_model(
    request: Request, name: Named, device_id: Annotated[str, Path(pattern=IDENTIFIER)], form: _Form = "weights"
) -> Response:
    """Get a device's submodel of the newest global model."""
    services = services_of(request)
    data = await services.threads.run_long(device_model, services.context, name, device_id, form)
    await _audit(request, name, form=form, device=device_id, bytes=len(data))
    return _model(data, f"{name}-{device_id}", form)


async def _audit(request: Request, name: str, **detail: object) -> None:
    """Enter the export of a model into the audit log, before the model leaves."""
    services = services_of(request)
    event = AuditEvent(
        at=services.context.now(), by=actor_of(request), action="model.export", target=name, detail=detail
    )
    await services.threads.run(services.context.store.audit.add, event)


def _model(data: bytes, name: str, form: Form) -> Response:
    ending = {"weights": "safetensors", "onnx": "onnx", "mask": "mask.safetensors"}[form]
    return Response(data, 200, _attachment(f"{name}.{ending}"), _ONNX if form == "onnx" else TENSORS)


def _attachment(name: str) -> dict[str, str]:
    """Return the headers that name the file for a browser or `curl -OJ`; these names need no escaping."""
    return {"Content-Disposition": f'attachment; filename="{name.replace(":", "_")}"', "Cache-Control": "no-store"}
