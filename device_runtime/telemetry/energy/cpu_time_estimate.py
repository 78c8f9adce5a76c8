"""The last resort: energy estimated from the CPU time of this process.

CPU seconds are exact; the power of a busy core is assumed. So the assumption is part of the source's name, the scope is
this process, and the label says 'estimated': it compares two devices only as far as their cores are alike.

The constants are round numbers for one more busy core. ARM: a Raspberry Pi 5 draws about 1.2 W more on the processor's
rail for each busy core. Others: a laptop or server processor uses 4 to 8 W for a busy core.
"""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass

from device_runtime.telemetry.clock import Clock, now
from device_runtime.telemetry.energy.energy_source import EnergyAmount, SourceLabel
from edgefl.values import Provenance, Scope

__all__ = ["CpuTimeEstimate", "watts_per_core"]

_ARM_WATTS = 1.2
_OTHER_WATTS = 6.0


def watts_per_core(architecture: str | None = None) -> float:
    """Return the assumed power of a busy core on this kind of machine."""
    name = (platform.machine() if architecture is None else architecture).lower()
    return _ARM_WATTS if name.startswith(("arm", "aarch64")) else _OTHER_WATTS


@dataclass(frozen=True, slots=True)
class CpuTimeEstimate:
    """CPU seconds of this process, including all its threads, times a constant. Child processes do not count."""

    watts_per_core: float
    cpu_seconds: Callable[[], float] = time.process_time
    clock: Clock = now

    @property
    def label(self) -> SourceLabel:
        """The estimate, with its constant."""
        name = f"CPU seconds x {self.watts_per_core:g} W a core"
        return SourceLabel(name, Scope.PROCESS, Provenance.ESTIMATED)

    def start(self) -> "_Estimating":
        """Begin an estimate."""
        return _Estimating(self)


class _Estimating:
    def __init__(self, source: CpuTimeEstimate) -> None:
        self._source = source
        self._began = source.clock()
        self._cpu_began = source.cpu_seconds()

    def stop(self) -> EnergyAmount:
        seconds = self._source.clock() - self._began
        return EnergyAmount((self._source.cpu_seconds() - self._cpu_began) * self._source.watts_per_core, seconds)
