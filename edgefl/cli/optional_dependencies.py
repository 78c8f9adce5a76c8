"""What to do where a package is missing that a verb needs: a sentence that names the extra, in place of a traceback."""

import contextlib
from collections.abc import Iterator

from edgefl.errors import MissingDependencyError

__all__ = ["requires_extra"]

_OURS = frozenset({"edgefl", "export", "device_runtime", "coordinator"})


@contextlib.contextmanager
def requires_extra(extra: str, *, action: str) -> Iterator[None]:
    """Say that an extra is missing if one of its packages is."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in _OURS or not name:
            raise
        raise MissingDependencyError(name, action=action, extra=extra) from None
