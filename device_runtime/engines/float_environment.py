"""Preserves this thread's floating-point settings while a library changes them.

onnxruntime's `set_denormal_as_zero` is meant for its own threads, but also changes the thread that loads the graph, for
the rest of the process: numpy would then flush the smallest numbers to zero, and the same code would give different
results after a model was loaded.
"""

import contextlib
import ctypes
from collections.abc import Iterator

__all__ = ["preserved_float_environment"]

_ROOM = 256
"""Bytes. The C library's `fenv_t` has 8 on ARM and 32 on x86."""


@contextlib.contextmanager
def preserved_float_environment() -> Iterator[None]:
    """Restore the floating-point environment afterwards, if the C library allows it."""
    library = _library()
    saved = ctypes.create_string_buffer(_ROOM)
    known = library is not None and library.fegetenv(saved) == 0
    try:
        yield
    finally:
        if known and library is not None:
            library.fesetenv(saved)


def _library() -> ctypes.CDLL | None:
    for name in ("libm.so.6", None):  # glibc's, else whatever this process has loaded
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(name)
            library.fegetenv, library.fesetenv  # noqa: B018  checks that they exist
            return library
    return None
