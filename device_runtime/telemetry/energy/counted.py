"""Energy from an instrument that counts joules: read at the start and at the end.

A counter that wraps is also read now and then in between, so that no wrap goes unseen in a long round.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from device_runtime.telemetry.clock import Clock, Periodic, now
from device_runtime.telemetry.energy.source import Amount, Label

__all__ = ["CountedEnergy", "increase"]

_LOOK_SECONDS = 60.0
"""The fastest known counter wraps after 65 kJ: four minutes at 250 W."""


def increase(before: float, after: float, wraps_at: float | None) -> float | None:
    """How far a counter went, if it wrapped once at most. None if it fell and does not wrap."""
    if after >= before:
        return after - before
    return after + wraps_at - before if wraps_at is not None and wraps_at >= before else None


@dataclass(frozen=True, slots=True)
class CountedEnergy:
    """A source whose `read` shows joules counted so far, one number a counter, or None if it cannot.

    `wraps_at` holds the joules at which each counter starts again, None for one that does not.
    """

    label: Label
    read: Callable[[], Sequence[float] | None]
    wraps_at: tuple[float | None, ...]
    clock: Clock = now
    look_seconds: float = _LOOK_SECONDS

    def start(self) -> "_Counting":
        """Begin a measurement."""
        return _Counting(self)


class _Counting:
    def __init__(self, source: CountedEnergy) -> None:
        self._source = source
        self._joules: float | None = 0.0
        self._last = source.read()
        self._began = source.clock()
        self._sampler = Periodic(self._advance, seconds=source.look_seconds)

    def stop(self) -> Amount | None:
        self._sampler.stop()
        self._advance()
        ended = self._source.clock()
        # Nothing that runs takes no energy: a counter that stood still is too coarse for this round, or broken.
        return Amount(self._joules, ended - self._began) if self._joules else None

    def _advance(self) -> None:
        """Add what was counted since the last look. A counter that failed once makes the whole sum unknown."""
        before, after = self._last, self._source.read()
        if self._joules is None or before is None or after is None or len(before) != len(after):
            self._joules = None
            return
        for start, end, wraps_at in zip(before, after, self._source.wraps_at, strict=True):
            step = increase(start, end, wraps_at)
            self._joules = None if step is None or self._joules is None else self._joules + step
        self._last = after
