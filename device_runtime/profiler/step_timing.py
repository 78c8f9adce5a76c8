"""Measures how long steps take: all cases in turn, repeatedly, within a time limit.

Cases take turns so that a noisy moment of the machine affects all of them alike. Each is first tried once, from the
smallest to the largest, and cases that would not fit the time three times are left out: on a slow device the fit then
uses smaller submodels. Weights are created for a visit and dropped after it, so memory is that of the largest case
alone.

The median step counts. If other work occupies the processor, medians measure that work and not the device; then the
fastest step counts, and the profile says so.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from device_runtime.engines import Engine
from device_runtime.profiler.cases import Case, CaseProgram, Trial, load_step
from device_runtime.telemetry.clock import Clock, now
from device_runtime.telemetry.sysfs import ROOT, read_text
from edgefl.local_rules import TrainStep

__all__ = ["CROWDED", "CaseTimes", "TimingResult", "time_cases", "waited_seconds"]

FEWEST_TURNS = 3
MOST_TURNS = 20
CROWDED = 0.05
"""The share of its time that a thread may wait for a processor before the fastest steps replace medians."""
_ENOUGH_TURNS = 6
_STEADY = 0.01
"""Turns end early once the typical median is known to this relative accuracy."""
_VISIT_SECONDS = 0.02
_MOST_STEPS = 5

Progress = Callable[[float], None]
"""Called with the share of the time that has passed."""


@dataclass(slots=True, eq=False)
class CaseTimes:
    """A case, and the seconds of its steps, by visit."""

    case: Case
    visits: list[list[float]] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The typical step."""
        return statistics.median(second for visit in self.visits for second in visit)

    @property
    def fastest(self) -> float:
        """The step that was disturbed least."""
        return min(second for visit in self.visits for second in visit)

    @property
    def steps_a_visit(self) -> int:
        """Short steps run several times per visit: creating the weights would take longer than one."""
        return min(_MOST_STEPS, 1 + int(_VISIT_SECONDS / self.median))

    @property
    def visit_seconds(self) -> float:
        """The duration of a visit, including its warm-up."""
        return (1 + self.steps_a_visit) * self.median

    @property
    def unsteadiness(self) -> float:
        """The relative standard error of the median, from quartiles, which a single slow visit does not move."""
        medians = [statistics.median(visit) for visit in self.visits]
        low, middle, high = statistics.quantiles(medians, n=4)
        return float(0.93 * (high - low) / (middle * len(medians) ** 0.5))


@dataclass(frozen=True, slots=True)
class TimingResult:
    """The timed cases, and the share of the time that the process waited for a busy processor."""

    timed: Sequence[CaseTimes]
    waiting: float

    @property
    def crowded(self) -> bool:
        """Whether other work interfered."""
        return self.waiting > CROWDED

    @property
    def seconds(self) -> dict[Case, float]:
        """The seconds of a step, for every case."""
        return {one.case: one.fastest if self.crowded else one.median for one in self.timed}


def time_cases(
    engine: Engine,
    cases: Sequence[Case],
    *,
    seconds: float,
    progress: Progress = lambda share: None,
    clock: Clock = now,
    root: Path = ROOT,
) -> TimingResult:
    """Time the steps of as many cases as the seconds allow."""
    began, waited = clock(), waited_seconds(root)
    timed = _Turns(engine, clock, began + seconds, seconds, progress).run(cases)
    took = clock() - began
    return TimingResult(timed, (waited_seconds(root) - waited) / took if took > 0 else 0.0)


def waited_seconds(root: Path = ROOT) -> float:
    """Return how long the main thread has waited for a processor in total, or 0 if the system does not say."""
    words = (read_text(root / "proc/self/schedstat") or "").split()
    return int(words[1]) * 1e-9 if len(words) == 3 and words[1].isdecimal() else 0.0


class _Turns:
    def __init__(self, engine: Engine, clock: Clock, deadline: float, seconds: float, progress: Progress) -> None:
        self._engine, self._clock = engine, clock
        self._deadline, self._seconds, self._progress = deadline, seconds, progress
        self._steps: dict[CaseProgram, TrainStep] = {}

    def run(self, cases: Sequence[Case]) -> list[CaseTimes]:
        tried = self._try_each(sorted(cases, key=lambda case: case.multiply_adds))
        for turn in range(1, MOST_TURNS):  # trying them was the first turn
            if turn >= _ENOUGH_TURNS and statistics.median(timed.unsteadiness for timed in tried) < _STEADY:
                break
            if turn >= FEWEST_TURNS and sum(timed.visit_seconds for timed in tried) > self._left:
                break
            for timed in tried:
                self._visit(timed, warm_up=1, steps=timed.steps_a_visit)
        return tried

    def _try_each(self, cases: Sequence[Case]) -> list[CaseTimes]:
        tried: list[CaseTimes] = []
        for case in cases:
            if tried and not self._affordable(tried, case):
                break
            timed = CaseTimes(case)
            # The third step is the first for which the engine has planned its memory.
            self._visit(timed, warm_up=2, steps=1)
            tried.append(timed)
        return tried

    def _affordable(self, tried: Sequence[CaseTimes], case: Case) -> bool:
        """Return whether trying this case leaves time for the turns of all, if it is as fast as the last one."""
        last = tried[-1]
        growth = max(1.0, case.multiply_adds / max(1, last.case.multiply_adds))
        guess = growth * last.median
        turn = sum(timed.visit_seconds for timed in tried) + 2 * guess
        return 3 * guess + (FEWEST_TURNS - 1) * turn <= self._left

    def _visit(self, timed: CaseTimes, *, warm_up: int, steps: int) -> None:
        trial = Trial(timed.case, self._step(timed.case))
        trial.run(warm_up)
        visit = []
        for _ in range(steps):
            began = self._clock()
            trial.run()
            visit.append(self._clock() - began)
        timed.visits.append(visit)
        self._progress(1 - max(0.0, self._left) / self._seconds)

    def _step(self, case: Case) -> TrainStep:
        if case.program not in self._steps:
            self._steps[case.program] = load_step(self._engine, case)
        return self._steps[case.program]

    @property
    def _left(self) -> float:
        return self._deadline - self._clock()
