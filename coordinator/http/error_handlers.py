"""What the coordinator answers when it does not do what was asked: a status, and JSON that says why and what to do.

    {"error": {"problem": "there is no federation 'digit'", "fix": "List them with: edgefl fed list"}}

Every room of the coordinator raises `ProblemError`; `coordinator.http.app` registers the handlers. A device takes a 4xx
for an answer only if its body has this form, so nothing here may answer in another one.
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

from coordinator.errors import DatabaseUnavailableError
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

__all__ = ["ProblemError", "add_handlers", "answer", "as_problem", "noted", "problem_body"]

_log = logging.getLogger("coordinator.http.error_handlers")

_LONGEST_TEXT = 1000


class ProblemError(EdgeFLError):
    """An answer that is no success: a status of 4xx or 5xx, what happened, and what to do."""

    def __init__(self, status: int, problem: str, *, fix: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem, fix=fix)
        self.status = status
        self.headers = dict(headers or {})


def problem_body(problem: str, fix: str) -> bytes:
    """Return the JSON of an answer that is no success."""
    said = {"problem": _line(problem), "fix": _line(fix)}
    return json.dumps({"error": said}, ensure_ascii=False).encode()


def answer(error: ProblemError) -> Response:
    """Return the HTTP form of a problem."""
    body = problem_body(error.problem, error.fix)
    return Response(body, error.status, dict(error.headers), media_type="application/json")


def as_problem(error: Exception) -> ProblemError:
    """Return what a caller is told about an error. What was not raised on purpose is a bug, and says no more."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, DatabaseUnavailableError):  # its message is for the log: it may name hosts and files
        return ProblemError(
            503, "the coordinator's database does not answer", fix="Try again later.", headers={"Retry-After": "5"}
        )
    if isinstance(error, EdgeFLError):
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
        return ProblemError(status, error.problem, fix=error.fix)
    return ProblemError(
        500,
        "the coordinator failed at this request",
        fix="Try again later; its log has the reason under the request id.",
    )


def noted(error: Exception) -> ProblemError:
    """Return what a caller is told about an error, and log what is not the caller's doing."""
    problem = as_problem(error)
    if problem.status >= 500 and not isinstance(error, ProblemError):
        # A database that is down fails every request: the traceback of each would say nothing new.
        _log.error("a request failed: %s", error, exc_info=error if problem.status == 500 else None)
    return problem


# A text that is no JSON at all is 400; one that is, but breaks its schema, is 422, as are bodies that are wrong.
_STATUS: tuple[tuple[type[EdgeFLError], int], ...] = (
    (FieldError, 422),
    (SchemaError, 400),
    (WireFormatError, 422),
    (MaskError, 422),
    (DataError, 422),
    (ExportError, 422),
    (MissingDependencyError, 501),
)


def add_handlers(app: FastAPI) -> None:
    """Let an app answer every error in the one form. Bugs are for the outermost middleware, which logs them."""
    app.add_exception_handler(EdgeFLError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_error(request: Request, error: Exception) -> Response:
    return answer(noted(error))


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = dict(error.errors()[0])
    where = ".".join(str(part) for part in first.get("loc", ()))
    if first.get("type") == "json_invalid":
        return answer(
            ProblemError(400, "the body is no valid JSON", fix="Send JSON as the OpenAPI document describes.")
        )
    return answer(
        ProblemError(
            422,
            f"{where or 'the request'} is wrong: {first.get('msg', 'it does not fit')}",
            fix="Correct it; the OpenAPI document at /openapi.json describes every field.",
        )
    )


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem, fix = {
        404: (f"there is nothing at {request.url.path}", "Look the path up at /openapi.json."),
        405: (
            f"{request.url.path} does not take {request.method}",
            f"Use one of: {(error.headers or {}).get('Allow', 'the methods in /openapi.json')}.",
        ),
    }.get(error.status_code, (str(error.detail), "Compare the request with /openapi.json."))
    return answer(ProblemError(error.status_code, problem, fix=fix, headers=error.headers))


def _line(text: str) -> str:
    return printable(text)[:_LONGEST_TEXT]
