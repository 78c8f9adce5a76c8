"""Settings of the C library's memory allocator, for a process that receives large bodies from strangers.

glibc raises the size above which memory is given back at once, up to 32 MiB, as soon as something large is freed. From
then on, large updates and bundles leave holes in the heaps of the threads that read them: a few refused ones of 8 MiB
keep 30 MiB. A fixed size keeps them apart from everything else. Other C libraries have no such setting.
"""

import contextlib
import ctypes

__all__ = ["give_back_large_memory"]

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""Numbers of the settings in glibc's malloc.h."""
_LARGE = 2**20
"""Bodies up to this size stay in memory, so most requests never need more at once."""


def give_back_large_memory() -> None:
    """Let this process give large blocks of memory back to the system when they are freed."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_TRIM_THRESHOLD, 2 * _LARGE)
