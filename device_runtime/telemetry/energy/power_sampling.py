"""Energy from an instrument that shows power: samples in a thread, integrated by the trapezoid rule.

The rule uses the actual times of the samples, since a thread on a busy device is sometimes late. At both ends the
nearest sample is held, so that the time before the first one is not lost.
"""

from collections.abc import Callable
from dataclasses import dataclass

from device_runtime.telemetry.clock import Clock, PeriodicThread, now
from device_runtime.telemetry.energy.energy_source import EnergyAmount, SourceLabel

__all__ = ["PowerSampler", "PowerIntegral"]

_MOST_MISSED = 0.1
"""Share of readings that may fail. With more, the energy between the others is too uncertain."""


class PowerIntegral:
    """Joules from successive samples of power, in constant memory."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._first: float | None = None
        self._moment, self._watts = began, 0.0
        self._joules = 0.0
        self.samples = 0

    def add(self, moment: float, watts: float) -> None:
        """Add a sample. Times must not decrease."""
        if self._first is None:
            self._first = moment
            self._joules = watts * (moment - self._began)
        else:
            self._joules += (moment - self._moment) * (watts + self._watts) / 2
        self._moment, self._watts = moment, watts
        self.samples += 1

    def joules(self, ended: float) -> float:
        """Return the energy up to this time."""
        return self._joules + self._watts * (ended - self._moment)

    @property
    def hertz(self) -> float | None:
        """The actual sampling rate, or None for fewer than two samples."""
        if self._first is None or self._moment <= self._first:
            return None
        return (self.samples - 1) / (self._moment - self._first)


@dataclass(frozen=True, slots=True)
class PowerSampler:
    """A source whose `read` returns the present watts, or None on failure."""

    label: SourceLabel
    read: Callable[[], float | None]
    hertz: float
    clock: Clock = now

    def start(self) -> "_Sampling":
        """Begin a measurement: a first sample at once, more from a thread."""
        return _Sampling(self.read, self.hertz, self.clock)


class _Sampling:
    def __init__(self, read: Callable[[], float | None], hertz: float, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._began = clock()
        self._integral = PowerIntegral(self._began)
        self._missed = 0
        self._take()
        self._sampler = PeriodicThread(self._take, seconds=1 / hertz)

    def stop(self) -> EnergyAmount | None:
        self._sampler.stop()
        self._take()
        ended = self._clock()
        taken = self._integral.samples
        joules = self._integral.joules(ended)
        if taken == 0 or self._missed > _MOST_MISSED * (taken + self._missed) or joules < 0:
            return None
        return EnergyAmount(joules, ended - self._began, self._integral.hertz)

    def _take(self) -> None:
        asked = self._clock()
        watts = self._read()
        if watts is None:
            self._missed += 1
        else:
            # A reading may take milliseconds; the power is that of some moment within them.
            self._integral.add((asked + self._clock()) / 2, watts)
