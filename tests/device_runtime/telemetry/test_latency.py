from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runtime.telemetry.latency import StepTimer, drift
from edgefl.errors import EdgeFLError
from edgefl.values import Provenance, Scope


class SetClock:
    """A clock that moves only when told."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def timed(steps: Iterable[float], *, load: float = 0.0) -> StepTimer:
    clock = SetClock()
    timer = StepTimer(clock)
    clock.seconds += load
    timer.loaded()
    for seconds in steps:
        clock.seconds += 0.25  # what happens between steps belongs to the round, not to a step
        with timer:
            clock.seconds += seconds
    timer.end()
    clock.seconds += 1000
    return timer


def test_the_first_step_stays_apart_from_the_steady_ones() -> None:
    latency = timed([8.0, 1.0, 3.0, 2.0], load=4.0).latency()
    assert latency.load_seconds == 4.0
    assert latency.first_step_seconds == 8.0
    assert (latency.min_step_seconds, latency.p50_step_seconds, latency.p90_step_seconds) == (1.0, 2.0, 3.0)
    assert latency.steps_measured == 3
    assert latency.round_seconds == 4.0 + 4 * 0.25 + 14.0
    assert latency.provenance is Provenance.MEASURED
    assert (latency.source, latency.scope) == ("monotonic clock", Scope.PROCESS)


def test_nine_of_ten_steps_stay_within_p90() -> None:
    assert timed([50.0, *range(1, 11)]).latency().p90_step_seconds == 9.0


@given(st.lists(st.integers(min_value=1, max_value=1000), min_size=2, max_size=60))
def test_percentiles_are_those_of_numpy(steps: list[int]) -> None:
    latency = timed(steps).latency()
    steady = np.array(steps[1:], dtype=float)
    assert latency.min_step_seconds == steady.min()
    assert latency.p50_step_seconds == np.median(steady)
    assert latency.p90_step_seconds == np.percentile(steady, 90, method="inverted_cdf")


def test_a_single_step_is_all_there_is_to_measure() -> None:
    latency = timed([2.0]).latency()
    assert latency.first_step_seconds == latency.min_step_seconds == latency.p90_step_seconds == 2.0
    assert latency.steps_measured == 1


def test_a_step_that_fails_does_not_count() -> None:
    timer = timed([1.0, 2.0])
    with pytest.raises(ZeroDivisionError), timer:
        raise ZeroDivisionError
    assert timer.steps == 2


def test_a_round_without_steps_has_no_latency() -> None:
    with pytest.raises(EdgeFLError, match=r"no training step was timed.*recorder\.step"):
        timed([]).latency()


def test_loading_takes_no_time_where_nothing_was_loaded() -> None:
    timer = StepTimer()
    with timer:
        pass
    assert timer.latency().load_seconds == 0.0


def test_drift_compares_the_last_quarter_with_the_first() -> None:
    steady, slowing = [99.0, *[2.0] * 8], [99.0, *[2.0] * 4, *[2.5] * 4, *[3.0] * 4]
    assert timed(steady).drift == 1.0
    assert timed(slowing).drift == 1.5


def test_drift_of_a_few_steps_is_not_known() -> None:
    assert drift([1.0] * 7) is None
    assert drift([1.0] * 8) == 1.0
    assert drift([0.0] * 8) is None


def test_one_slow_step_is_no_drift() -> None:
    assert drift([1.0] * 19 + [50.0]) == 1.0
