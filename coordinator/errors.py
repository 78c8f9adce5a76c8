"""Errors of the coordinator. They carry a reason; `coordinator.http.error_handlers` turns it into an HTTP status."""

from enum import StrEnum

from edgefl.errors import EdgeFLError

__all__ = ["CoordinatorError", "DatabaseUnavailableError", "ErrorReason"]


class ErrorReason(StrEnum):
    """Why a request is not fulfilled."""

    NOT_FOUND = "not found"
    CONFLICT = "conflict"
    """The request does not fit the present state."""
    TOO_LARGE = "too large"
    UNAVAILABLE = "unavailable"
    """The request is valid, and may succeed later."""


class CoordinatorError(EdgeFLError):
    """Raised if the coordinator does not fulfil a valid request."""

    def __init__(self, reason: ErrorReason, problem: str, *, fix: str, retry_seconds: float | None = None) -> None:
        super().__init__(problem, fix=fix)
        self.reason = reason
        self.retry_seconds = retry_seconds
        """When to try again, where that is known."""


class DatabaseUnavailableError(EdgeFLError):
    """Raised if the database does not answer. The request was valid, and may succeed later."""
