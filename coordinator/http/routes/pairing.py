"""Pairing: the pins for devices that have joined, and the page that a scanned code opens."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from coordinator.http.authentication import Caller
from coordinator.http.routes.openapi_schemas import reference
from coordinator.http.routes.page import page_response
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.responses import document
from coordinator.http.services import services_of
from coordinator.page.static_files import POLICY_WITHOUT_REQUESTS
from edgefl.values import Pins

__all__ = ["add_routes"]


def add_routes(app: FastAPI) -> None:
    """Add the routes of this file."""
    pins = media(reference("Pins"), about="The pins of the certificate's current and next key.")
    add(app, "GET", "/v1/pins", get_pins, caller=Caller.MEMBER, tag="devices", answers={200: pins})
    pages: dict[int | str, dict[str, Any]] = {
        200: media({"type": "string"}, kind="text/html", about="The page."),
        304: {"description": "The caller has it."},
    }
    add(app, "GET", "/join", get_join_page, caller=Caller.PUBLIC, tag="page", answers=pages)


async def get_pins(request: Request) -> Response:
    """Get the public keys that this coordinator's certificate may have. Empty if devices verify it as usual."""
    address = services_of(request).address
    return document(Pins(pins=() if address is None else address.pins), headers={"Cache-Control": "no-store"})


async def get_join_page(request: Request) -> Response:
    """Get the page that a pairing code opens. The key is behind the '#' of its address, which no browser sends."""
    return await page_response(request, "join.html", policy=POLICY_WITHOUT_REQUESTS)
