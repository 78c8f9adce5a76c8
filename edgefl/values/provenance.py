"""Provenance and scope of a measurement: measured or estimated, and what it covers.

Joules estimated from CPU time must never be mistaken for joules from a power meter, nor the power of one chip for that
of the whole phone. So these labels are fields without a default.
"""

from enum import StrEnum

__all__ = ["Provenance", "Scope"]


class Provenance(StrEnum):
    """How a number was obtained."""

    MEASURED = "measured"
    """Read from an instrument or a system counter."""

    ESTIMATED = "estimated"
    """Computed from something else, such as CPU seconds and an assumed power."""


class Scope(StrEnum):
    """What a number covers."""

    PROCESS = "process"
    """This process alone."""

    PACKAGE = "package"
    """The processor package, including everything that runs on it."""

    DEVICE = "device"
    """The whole device, including display and radio."""

    HEAP = "heap"
    """A managed heap alone: that of a virtual machine, or of a WebAssembly module."""
