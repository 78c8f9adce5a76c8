"""Builds the OpenAPI document from the routes, the documents of `edgefl.values` and the Pydantic models."""

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from coordinator.http.routes.openapi_schemas import document_schemas, reference
from coordinator.http.routes.registration import SCHEMES
from coordinator.http.routes.view_models import (
    DeadlineRequest,
    FederationRequest,
    FederationView,
    KeyRequest,
    LeaseView,
    MoveRequest,
    NewKeyView,
    NewTokenView,
    ProgramFailure,
    ProgramView,
    RetryRequest,
    RotateRequest,
    TelemetryView,
    TokenRequest,
    WorkerRequest,
)
from edgefl import __version__

__all__ = ["openapi_text"]

_MODELS = (
    DeadlineRequest,
    FederationRequest,
    FederationView,
    KeyRequest,
    LeaseView,
    MoveRequest,
    NewKeyView,
    NewTokenView,
    ProgramFailure,
    ProgramView,
    RetryRequest,
    RotateRequest,
    TelemetryView,
    TokenRequest,
    WorkerRequest,
)
_ABOUT = """Federated training for phones and Raspberry Pis.

JSON for control, safetensors for tensors, artifacts by digest. `x-caller` says who may call a route. Every answer of
4xx and 5xx is a `Problem`. Every request of a device may be repeated."""


def openapi_text(app: FastAPI) -> str:
    """Return the document of an app."""
    document = get_openapi(title="EdgeFL coordinator", version=__version__, description=_ABOUT, routes=app.routes)
    components = document.setdefault("components", {})
    schemas: dict[str, Any] = components.setdefault("schemas", {})
    schemas |= document_schemas()
    for model in _MODELS:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    schemas["FederationRequest"]["properties"]["settings"] = reference("FederationSettings")
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own, which no response here uses
        schemas.pop(name, None)
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    components["securitySchemes"] = dict(SCHEMES)
    return json.dumps(document)
