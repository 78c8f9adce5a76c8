"""The error that refuses a task. The agent reports it to the coordinator; `edgefl` commands show it to the user."""

from edgefl.errors import EdgeFLError
from edgefl.values import Reason

__all__ = ["RefusalError"]


class RefusalError(EdgeFLError):
    """Raised when this device cannot or may not do a task. The reason is sent to the coordinator."""

    def __init__(self, reason: Reason, problem: str, *, fix: str) -> None:
        super().__init__(problem, fix=fix)
        self.reason = reason
