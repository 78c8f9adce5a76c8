"""Errors of the coordinator. They carry a reason; `coordinator.http.error_handlers` turns it into an HTTP status."""

import errno
import sqlite3
from enum import StrEnum

from edgefl.errors import EdgeFLError

__all__ = ["CoordinatorError", "DatabaseUnavailableError", "ErrorReason", "disk_full", "is_disk_full"]

_FULL_ERRNO = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL_SQLSTATE = "53100"
_FULL_SECONDS = 30
"""When to try again: an operator must first free some space."""


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


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether a full disk or a used-up quota is behind an error: of a file, SQLite or PostgreSQL."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        driver = getattr(error, "orig", None) or error  # SQLAlchemy wraps the error of the database
        if isinstance(driver, OSError) and driver.errno in _FULL_ERRNO:
            return True
        if isinstance(driver, sqlite3.Error) and getattr(driver, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
            return True
        if getattr(driver, "sqlstate", None) == _FULL_SQLSTATE:
            return True
        error = error.__cause__ or error.__context__
    return False


def disk_full() -> CoordinatorError:
    """Return the error about a full disk. Nothing of the request was stored."""
    return CoordinatorError(
        ErrorReason.UNAVAILABLE,
        "the coordinator's disk is full",
        fix="Send it again later; its operator must free some space.",
        retry_seconds=_FULL_SECONDS,
    )
