"""Keep this thread's rules of arithmetic while a library changes them.

onnxruntime's `set_denormal_as_zero` is meant for its own threads, but switches the thread that loads the graph too, for
the rest of the process: numpy would then lose the smallest numbers, and the same code would give other results after a
model was loaded than before.
"""

import contextlib
import ctypes
from collections.abc import Iterator

__all__ = ["kept_float_environment"]

_ROOM = 256
"""Bytes. The C library's `fenv_t` has 8 on ARM and 32 on x86."""


@contextlib.contextmanager
def kept_float_environment() -> Iterator[None]:
    """Put the floating-point environment back afterwards, where the C library lets us."""
    library = _library()
    saved = ctypes.create_string_buffer(_ROOM)
    known = library is not None and library.fegetenv(saved) == 0
    try:
        yield
    finally:
        if known and library is not None:
            library.fesetenv(saved)


def _library() -> ctypes.CDLL | None:
    for name in ("libm.so.6", None):  # glibc's; else whatever this process has loaded
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(name)
            library.fegetenv, library.fesetenv  # noqa: B018  only to see that they are there
            return library
    return None
