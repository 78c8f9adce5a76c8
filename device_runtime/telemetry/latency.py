"""Times of a task and its training steps.

`StepTimer` has little overhead: a step costs two readings of the clock and one append. Statistics are computed once, at
the end.
"""

import math
import statistics
from collections.abc import Sequence
from types import TracebackType

from device_runtime.telemetry.clock import CLOCK_NAME, Clock, now
from edgefl.errors import EdgeFLError
from edgefl.values import Latency, Provenance, Scope

__all__ = ["StepTimer", "drift"]

_FEWEST_FOR_DRIFT = 8
"""With fewer than two steps in a quarter, one slow step would look like a trend."""


class StepTimer:
    """Times one task. Enter it around each training step: `with timer: ...`.

    A step that raises does not count. It must not be entered twice at the same time.
    """

    __slots__ = ("_clock", "_earlier", "_ended", "_loaded", "_seconds", "_step_began", "began")

    def __init__(self, clock: Clock = now) -> None:
        self._clock = clock
        self._seconds: list[float] = []
        self._earlier = 0.0
        self._step_began = 0.0
        self._loaded: float | None = None
        self._ended: float | None = None
        self.began = clock()

    def recall(self, seconds: Sequence[float]) -> None:
        """Put the steps of an earlier process, which did not finish the task, before those of this one."""
        self._seconds[:0] = seconds
        self._earlier += sum(seconds)

    def loaded(self) -> None:
        """Record that the engine is ready: the time since the task began is the load time."""
        self._loaded = self._clock()

    def __enter__(self) -> "StepTimer":
        self._step_began = self._clock()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._seconds.append(self._clock() - self._step_began)

    def end(self) -> None:
        """Record that the task is over."""
        self._ended = self._clock()

    @property
    def seconds(self) -> tuple[float, ...]:
        """The time of every step so far."""
        return tuple(self._seconds)

    @property
    def steps(self) -> int:
        """The number of timed steps, including the first."""
        return len(self._seconds)

    @property
    def drift(self) -> float | None:
        """Median step of the last quarter over that of the first; above 1 is slower. None for a short task."""
        return drift(self._seconds[1:])

    def latency(self) -> Latency:
        """Return the times of the task. The first step includes the warm-up and is kept apart, unless it is the only
        one."""
        if not self._seconds:
            raise EdgeFLError(
                "no training step was timed, so the latency is not known",
                fix="Run at least one training step, each inside 'with recorder.step():'",
            )
        ended = self._clock() if self._ended is None else self._ended
        steady = sorted(self._seconds[1:] or self._seconds)
        return Latency(
            load_seconds=0.0 if self._loaded is None else self._loaded - self.began,
            first_step_seconds=self._seconds[0],
            min_step_seconds=steady[0],
            p50_step_seconds=statistics.median(steady),
            p90_step_seconds=steady[math.ceil(0.9 * len(steady)) - 1],
            steps_measured=len(steady),
            round_seconds=self._earlier + ended - self.began,
            source=CLOCK_NAME,
            scope=Scope.PROCESS,
            provenance=Provenance.MEASURED,
        )


def drift(seconds: Sequence[float]) -> float | None:
    """Return the median of the last quarter over that of the first, or None if there are too few or the first is zero.

    A device that heats up and slows down shows it here, even where the system does not report throttling.
    """
    if len(seconds) < _FEWEST_FOR_DRIFT:
        return None
    quarter = len(seconds) // 4
    first, last = statistics.median(seconds[:quarter]), statistics.median(seconds[-quarter:])
    return last / first if first > 0 else None
