"""Energy from an instrument that counts joules: read at the start and at the end.

A counter that wraps is also read now and then in between, so that no wrap goes unnoticed in a long task.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from device_runtime.telemetry.clock import Clock, PeriodicThread, now
from device_runtime.telemetry.energy.energy_source import EnergyAmount, SourceLabel

__all__ = ["EnergyCounter", "increase"]

_LOOK_SECONDS = 60.0
"""The fastest known counter wraps after 65 kJ: four minutes at 250 W."""


def increase(before: float, after: float, wraps_at: float | None) -> float | None:
    """Return how far a counter advanced, if it wrapped at most once. None if it fell and does not wrap."""
    if after >= before:
        return after - before
    return after + wraps_at - before if wraps_at is not None and wraps_at >= before else None


@dataclass(frozen=True, slots=True)
class EnergyCounter:
    """A source whose `read` returns the joules counted so far, one number per counter, or None on failure.

    `wraps_at` holds the joules at which each counter starts again, None for one that does not.
    """

    label: SourceLabel
    read: Callable[[], Sequence[float] | None]
    wraps_at: tuple[float | None, ...]
    clock: Clock = now
    look_seconds: float = _LOOK_SECONDS

    def start(self) -> "_Counting":
        """Begin a measurement."""
        return _Counting(self)


class _Counting:
    def __init__(self, source: EnergyCounter) -> None:
        self._source = source
        self._joules: float | None = 0.0
        self._last = source.read()
        self._began = source.clock()
        self._sampler = PeriodicThread(self._advance, seconds=source.look_seconds)

    def stop(self) -> EnergyAmount | None:
        self._sampler.stop()
        self._advance()
        ended = self._source.clock()
        # Every task takes energy: a counter that did not move is too coarse for this task, or broken.
        return EnergyAmount(self._joules, ended - self._began) if self._joules else None

    def _advance(self) -> None:
        """Add what was counted since the last reading. A counter that fails once makes the whole sum unknown."""
        before, after = self._last, self._source.read()
        if self._joules is None or before is None or after is None or len(before) != len(after):
            self._joules = None
            return
        for start, end, wraps_at in zip(before, after, self._source.wraps_at, strict=True):
            step = increase(start, end, wraps_at)
            self._joules = None if step is None or self._joules is None else self._joules + step
        self._last = after
