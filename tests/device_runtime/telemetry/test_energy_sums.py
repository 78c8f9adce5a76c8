"""From power to energy, and from counters to energy."""

import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runtime.telemetry.clock import now
from device_runtime.telemetry.energy.energy_counter import EnergyCounter, increase
from device_runtime.telemetry.energy.energy_source import EnergyAmount, EnergySource, SourceLabel
from device_runtime.telemetry.energy.power_sampling import PowerIntegral, PowerSampler
from edgefl.values import Provenance, Scope

LABEL = SourceLabel("a test", Scope.DEVICE, Provenance.MEASURED)


def samples(power: Callable[[], float | None], *, at_least: int, hertz: float = 500.0) -> EnergyAmount | None:
    """Measure until so many readings were asked for."""
    asked = 0
    enough = threading.Event()

    def read() -> float | None:
        nonlocal asked
        asked += 1
        if asked >= at_least:
            enough.set()
        return power()

    measurement = PowerSampler(LABEL, read, hertz).start()
    assert enough.wait(timeout=30)
    return measurement.stop()


def test_the_trapezoid_rule_goes_over_the_moments_of_the_samples() -> None:
    integral = PowerIntegral(began=10.0)
    for moment, watts in [(10.0, 2.0), (10.1, 4.0), (10.5, 4.0), (11.5, 0.0)]:
        integral.add(moment, watts)
    assert integral.joules(11.5) == pytest.approx(0.1 * 3 + 0.4 * 4 + 1.0 * 2)
    assert integral.hertz == pytest.approx(3 / 1.5)


def test_the_nearest_sample_is_held_at_both_ends() -> None:
    integral = PowerIntegral(began=0.0)
    integral.add(1.0, 5.0)
    integral.add(2.0, 7.0)
    assert integral.joules(4.0) == pytest.approx(5.0 + 6.0 + 14.0)


def test_no_sample_is_no_energy_and_no_rate() -> None:
    integral = PowerIntegral(began=3.0)
    assert integral.joules(9.0) == 0.0
    assert integral.hertz is None


@given(st.lists(st.floats(min_value=0.001, max_value=10), min_size=1, max_size=30))
def test_constant_power_is_power_times_time_however_the_samples_fall(gaps: list[float]) -> None:
    integral, moment = PowerIntegral(began=0.0), 0.0
    for gap in gaps:
        moment += gap
        integral.add(moment, 3.5)
    assert integral.joules(moment + 1) == pytest.approx(3.5 * (moment + 1))


def test_a_power_source_measures_in_a_thread_and_tells_its_rate() -> None:
    amount = samples(lambda: 2.5, at_least=10)
    assert amount is not None
    assert amount.joules == pytest.approx(2.5 * amount.seconds)
    assert amount.watts == pytest.approx(2.5)
    assert amount.sample_hertz is not None
    assert amount.sample_hertz > 0


def test_rising_power_is_followed() -> None:
    began = now()
    amount = samples(lambda: 1000 * (now() - began), at_least=30)
    assert amount is not None
    assert amount.joules == pytest.approx(1000 * amount.seconds**2 / 2, rel=0.1)


def test_a_reading_that_fails_now_and_then_is_left_out() -> None:
    readings = iter([2.0] * 15 + [None] + [2.0] * 100000)
    amount = samples(lambda: next(readings), at_least=30)
    assert amount is not None
    assert amount.joules == pytest.approx(2.0 * amount.seconds)


def test_an_instrument_that_fails_often_or_always_gives_nothing() -> None:
    readings = iter([2.0, None] * 100000)
    assert samples(lambda: next(readings), at_least=20) is None
    assert samples(lambda: None, at_least=3) is None


def test_an_instrument_that_is_wired_the_wrong_way_round_gives_nothing() -> None:
    assert samples(lambda: -2.0, at_least=3) is None


def test_counters_are_added_up_from_start_to_end() -> None:
    shown = iter([(100.0, 7.0), (103.5, 7.5)])
    source = EnergyCounter(LABEL, lambda: next(shown), wraps_at=(None, None))
    amount = source.start().stop()
    assert amount is not None
    assert amount.joules == pytest.approx(4.0)
    assert amount.sample_hertz is None


def test_a_counter_that_wraps_goes_on_from_zero() -> None:
    shown = iter([(262_140.0,), (10.0,)])
    amount = EnergyCounter(LABEL, lambda: next(shown), wraps_at=(262_143.0,)).start().stop()
    assert amount is not None
    assert amount.joules == pytest.approx(13.0)


def test_several_wraps_in_one_round_are_all_seen() -> None:
    counted = iter(range(0, 10_000_000, 60))
    asked: list[int] = []

    def read() -> tuple[float]:
        asked.append(next(counted))
        return (asked[-1] % 100.0,)

    measurement = EnergyCounter(LABEL, read, wraps_at=(100.0,), look_seconds=0.001).start()
    while len(asked) < 10:
        time.sleep(0.001)
    amount = measurement.stop()
    assert amount is not None
    assert amount.joules == pytest.approx(asked[-1])
    assert amount.joules > 500


def test_a_counter_that_falls_and_does_not_wrap_is_unknown() -> None:
    assert increase(5.0, 3.0, None) is None
    assert increase(5.0, 3.0, 4.0) is None  # it was above its own end: that is no wrap
    assert increase(5.0, 3.0, 6.0) == 4.0
    shown = iter([(5.0,), (3.0,)])
    assert EnergyCounter(LABEL, lambda: next(shown), wraps_at=(None,)).start().stop() is None


def test_a_counter_that_stands_still_gives_nothing_rather_than_zero() -> None:
    assert EnergyCounter(LABEL, lambda: (5.0,), wraps_at=(None,)).start().stop() is None


@pytest.mark.parametrize("shown", [[None, (5.0,)], [(5.0,), None], [(5.0,), (6.0, 7.0)]])
def test_a_counter_that_cannot_be_read_gives_nothing(shown: list[tuple[float, ...] | None]) -> None:
    readings = iter(shown)
    assert EnergyCounter(LABEL, lambda: next(readings), wraps_at=(None,)).start().stop() is None


def test_both_kinds_are_energy_sources() -> None:
    assert isinstance(PowerSampler(LABEL, lambda: 1.0, 10), EnergySource)
    assert isinstance(EnergyCounter(LABEL, lambda: (1.0,), (None,)), EnergySource)
