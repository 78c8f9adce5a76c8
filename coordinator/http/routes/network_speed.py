"""Transfers of random bytes in both directions, with which `edgefl profile` measures the network."""

import os
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import FastAPI, Query
from starlette.requests import Request
from starlette.responses import Response

from coordinator.http.authentication import Caller
from coordinator.http.error_handlers import HttpError
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.responses import Pieces
from coordinator.http.server_settings import ServerLimits
from coordinator.http.services import services_of

__all__ = ["add_routes"]

_BINARY = {"type": "string", "format": "binary"}
_KIND = "application/octet-stream"
_NOISE = os.urandom(256 * 1024)
"""Sent repeatedly: no compressor on the way looks back that far."""


def add_routes(app: FastAPI, limits: ServerLimits) -> None:
    """Add the routes of this file."""
    add(
        app,
        "GET",
        "/v1/speed",
        measure_download,
        caller=Caller.MEMBER,
        tag="speed",
        answers={200: media(_BINARY, kind=_KIND, about="As many bytes as requested.")},
    )
    add(
        app,
        "POST",
        "/v1/speed",
        measure_upload,
        caller=Caller.MEMBER,
        tag="speed",
        status=204,
        body=media(_BINARY, kind=_KIND, about="Any bytes."),
        most_bytes=limits.speed_bytes,
        takes_gzip=False,  # what was compressed measures nothing
    )


async def measure_download(request: Request, size: Annotated[int, Query(alias="bytes", ge=0, le=2**40)]) -> Response:
    """Download some bytes, to measure the network."""
    most = services_of(request).limits.speed_bytes
    if size > most:
        raise HttpError(422, f"{size:,} bytes are too many for a measurement", fix=f"Ask for {most:,} at most.")
    headers = {"Content-Length": str(size), "Cache-Control": "no-store, no-transform"}
    return Pieces(_noise(size), 200, headers, _KIND)


async def measure_upload(request: Request) -> Response:
    """Upload some bytes, to measure the network. They are not stored."""
    async for _ in request.stream():
        pass
    return Response(status_code=204)


async def _noise(size: int) -> AsyncIterator[bytes]:
    for start in range(0, size, len(_NOISE)):
        yield _NOISE[: size - start]
