"""Labels that every measurement carries: how it came about, and what it covers.

A number of joules that was estimated from CPU time must never be mistaken for one that a power meter saw,
nor the power of one chip for that of the whole phone. So these labels are fields without a default.
"""

from enum import StrEnum

__all__ = ["Provenance", "Scope"]


class Provenance(StrEnum):
    """How a number came about."""

    MEASURED = "measured"
    """An instrument or a counter of the system showed it."""

    ESTIMATED = "estimated"
    """It was computed from something else, such as CPU seconds and an assumed power."""


class Scope(StrEnum):
    """What a number covers."""

    PROCESS = "process"
    """This process alone."""

    PACKAGE = "package"
    """The processor package, with everything that runs on it."""

    DEVICE = "device"
    """The whole device: display, radio and all."""
