"""The error that refuses a task. The agent reports it to the coordinator; `edgefl` commands show it to the user."""

import errno

from edgefl.errors import EdgeFLError
from edgefl.values import Reason

__all__ = ["RefusalError", "refusal_for"]


class RefusalError(EdgeFLError):
    """Raised when this device cannot or may not do a task. The reason is sent to the coordinator."""

    def __init__(self, reason: Reason, problem: str, *, fix: str) -> None:
        super().__init__(problem, fix=fix)
        self.reason = reason


def refusal_for(error: Exception) -> RefusalError:
    """Return the refusal of a task that failed with an error: whatever a library does with an untrusted graph must not
    end the agent."""
    if isinstance(error, RefusalError):
        return error
    if isinstance(error, MemoryError):
        return RefusalError(Reason.MEMORY, "there was not enough memory", fix="Plan a smaller submodel.")
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        said = error.strerror or str(error)
        return RefusalError(Reason.STORAGE if full else Reason.BROKEN, said, fix="Free some space.")
    if isinstance(error, EdgeFLError):
        return RefusalError(Reason.BROKEN, error.problem, fix=error.fix)
    return RefusalError(Reason.BROKEN, f"{type(error).__name__}: {error}", fix="Check what the plan names.")
