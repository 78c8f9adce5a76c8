"""Errors of the coordinator."""

from edgefl.errors import EdgeFLError

__all__ = ["DatabaseUnavailableError"]


class DatabaseUnavailableError(EdgeFLError):
    """Raised if the database does not answer. The request was valid, and may succeed later."""
