"""Error responses: a status, and JSON that says what happened and what to do.

    {"error": {"problem": "there is no federation 'digit'", "fix": "List them with: edgefl fed list"}}

Routes and middleware raise `HttpError`; the layers below raise `CoordinatorError`, whose reason gets its status here.
`coordinator.http.app` registers the handlers. A device accepts a 4xx only if its body has this form, so every error
response must have it.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coordinator.errors import CoordinatorError, DatabaseUnavailableError, ErrorReason, disk_full, is_disk_full
from edgefl.errors import (
    DataError,
    EdgeFLError,
    ExportError,
    MaskError,
    MissingDependencyError,
    SchemaError,
    WireFormatError,
)
from edgefl.values import FieldError, printable

__all__ = ["HttpError", "add_handlers", "as_http_error", "error_body", "error_response", "log_error", "retry_after"]

_log = logging.getLogger("coordinator.http.error_handlers")

_LONGEST_TEXT = 1000
_STATUS_OF_REASON = {
    ErrorReason.NOT_FOUND: 404,
    ErrorReason.CONFLICT: 409,
    ErrorReason.TOO_LARGE: 413,
    ErrorReason.UNAVAILABLE: 503,
}
# Text that is not JSON is 400; JSON that breaks its schema is 422, and so are invalid bodies.
_STATUS_OF_KIND: tuple[tuple[type[EdgeFLError], int], ...] = (
    (FieldError, 422),
    (SchemaError, 400),
    (WireFormatError, 422),
    (MaskError, 422),
    (DataError, 422),
    (ExportError, 422),
    (MissingDependencyError, 501),
)


class HttpError(EdgeFLError):
    """An error response: a status of 4xx or 5xx, what happened, and what to do."""

    def __init__(self, status: int, problem: str, *, fix: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem, fix=fix)
        self.status = status
        self.headers = dict(headers or {})


def retry_after(seconds: float) -> dict[str, str]:
    """Return the header that says when to try again, in whole seconds."""
    return {"Retry-After": str(max(1, round(seconds)))}


def error_body(problem: str, fix: str) -> bytes:
    """Return the JSON of an error response."""
    error = {"problem": _line(problem), "fix": _line(fix)}
    return json.dumps({"error": error}, ensure_ascii=False).encode()


def error_response(error: HttpError) -> Response:
    """Return the response of an error."""
    body = error_body(error.problem, error.fix)
    return Response(body, error.status, dict(error.headers), media_type="application/json")


def as_http_error(error: Exception) -> HttpError:
    """Return the HTTP form of any error. An unexpected one is a bug, and gives no details."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, CoordinatorError):
        headers = None if error.retry_seconds is None else retry_after(error.retry_seconds)
        return HttpError(_STATUS_OF_REASON[error.reason], error.problem, fix=error.fix, headers=headers)
    if is_disk_full(error) and not _is_callers(error):
        return as_http_error(disk_full())
    if isinstance(error, DatabaseUnavailableError):  # its message is for the log: it may name hosts and files
        return HttpError(
            503, "the coordinator's database does not answer", fix="Try again later.", headers=retry_after(5)
        )
    if isinstance(error, EdgeFLError):
        return HttpError(_status(error), error.problem, fix=error.fix)
    return HttpError(
        500,
        "the coordinator failed at this request",
        fix="Try again later; its log has the reason under the request id.",
    )


def _status(error: EdgeFLError) -> int:
    return next((status for kind, status in _STATUS_OF_KIND if isinstance(error, kind)), 500)


def _is_callers(error: Exception) -> bool:
    """Return whether the caller caused an error: there may have been another one before it."""
    return isinstance(error, EdgeFLError) and not isinstance(error, DatabaseUnavailableError) and _status(error) < 500


def log_error(error: Exception) -> HttpError:
    """Return the HTTP form of an error, and log it if the caller did not cause it."""
    converted = as_http_error(error)
    if converted.status >= 500 and not isinstance(error, (HttpError, CoordinatorError)):
        # A database that is down fails every request: the traceback of each would say nothing new.
        _log.error("a request failed: %s", error, exc_info=error if converted.status == 500 else None)
    return converted


def add_handlers(app: FastAPI) -> None:
    """Let an app answer every error in this form. Bugs go to the outermost middleware, which logs them."""
    app.add_exception_handler(EdgeFLError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_error(request: Request, error: Exception) -> Response:
    return error_response(log_error(error))


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = dict(error.errors()[0])
    where = ".".join(str(part) for part in first.get("loc", ()))
    if first.get("type") == "json_invalid":
        return error_response(
            HttpError(400, "the body is not valid JSON", fix="Send JSON as the OpenAPI document describes.")
        )
    return error_response(
        HttpError(
            422,
            f"{where or 'the request'} is invalid: {first.get('msg', 'it does not fit')}",
            fix="Correct it; the OpenAPI document at /openapi.json describes every field.",
        )
    )


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem, fix = {
        404: (f"there is nothing at {request.url.path}", "Look the path up at /openapi.json."),
        405: (
            f"{request.url.path} does not support {request.method}",
            f"Use one of: {(error.headers or {}).get('Allow', 'the methods in /openapi.json')}.",
        ),
    }.get(error.status_code, (str(error.detail), "Compare the request with /openapi.json."))
    return error_response(HttpError(error.status_code, problem, fix=fix, headers=error.headers))


def _line(text: str) -> str:
    return printable(text)[:_LONGEST_TEXT]
