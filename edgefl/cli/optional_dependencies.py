"""Missing optional packages: an error that names the extra to install, instead of a traceback."""

import contextlib
from collections.abc import Iterator

from edgefl.errors import MissingDependencyError

__all__ = ["requires_extra"]

_OURS = frozenset({"edgefl", "export", "device_runtime", "coordinator"})


@contextlib.contextmanager
def requires_extra(extra: str, *, action: str) -> Iterator[None]:
    """Turn the failed import of a third-party package into a `MissingDependencyError` that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in _OURS or not name:
            raise
        raise MissingDependencyError(name, action=action, extra=extra) from None
