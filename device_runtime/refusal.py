"""A task that this device does not do, and why. The agent tells the coordinator; `edgefl` commands tell a person."""

from edgefl.errors import EdgeFLError
from edgefl.values import Reason

__all__ = ["RefusalError"]


class RefusalError(EdgeFLError):
    """Raised where a task cannot or may not be done here. The reason goes to the coordinator."""

    def __init__(self, reason: Reason, problem: str, *, fix: str) -> None:
        super().__init__(problem, fix=fix)
        self.reason = reason
