"""Upload of bundles: exported models for federations."""

from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request

from coordinator.http.authentication import Caller, actor_of
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.request_bodies import upload
from coordinator.http.routes.view_models import BundleView
from coordinator.http.server_settings import ServerLimits
from coordinator.http.services import services_of
from coordinator.rounds.context import Context
from coordinator.storage.records import Actor, AuditEvent
from edgefl.artifacts.bundle import pack_bundle, unpack_bundle

__all__ = ["add_routes"]


def add_routes(app: FastAPI, limits: ServerLimits) -> None:
    """Add the routes of this file."""
    binary = {"type": "string", "format": "binary"}
    add(
        app,
        "POST",
        "/v1/bundles",
        keep_bundle,
        caller=Caller.ADMIN,
        tag="federations",
        status=201,
        model=BundleView,
        body=media(binary, kind="application/zip", about="What `edgefl export` wrote.", required=True),
        most_bytes=limits.bundle_bytes,
    )


async def keep_bundle(request: Request) -> BundleView:
    """Upload an exported model, and get its digest."""
    services = services_of(request)
    async with upload(request, "operator") as body:
        return BundleView(digest=await services.threads.run_long(_keep, services.context, body, actor_of(request)))


def _keep(context: Context, body: bytes | Path, by: Actor) -> str:
    data = body.read_bytes() if isinstance(body, Path) else body
    digest = context.blobs.put(pack_bundle(unpack_bundle(data)))  # the same bytes, however it was zipped
    event = AuditEvent(at=context.now(), by=by, action="bundle.upload", target=digest, detail={"bytes": len(data)})
    context.store.audit.add(event)
    return digest
