"""What devices report changes what they are given next."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import SchemaError
from edgefl.planning import Correction, budget_of, corrected, faded, refused
from edgefl.values import Budget, Prediction, Reason, Telemetry, Thermal, ThermalStatus, dumps, read
from tests.values.samples import PROFILE, TELEMETRY

MEASURED = Prediction(
    seconds=TELEMETRY.latency.round_seconds,
    peak_bytes=TELEMETRY.memory.peak_bytes,
    joules=7.5,
)


def telemetry(factor: float = 1.0, **changes: object) -> Telemetry:
    latency = dataclasses.replace(TELEMETRY.latency, round_seconds=TELEMETRY.latency.round_seconds * factor)
    return dataclasses.replace(TELEMETRY, latency=latency, **changes)  # type: ignore[arg-type]


def budget(correction: Correction) -> Budget:
    return budget_of(PROFILE, deadline_seconds=100, round_share=0.8, joules=50, correction=correction)


def seconds(correction: Correction) -> float:
    found = budget(correction).round_seconds
    assert found is not None
    return found


def test_a_device_that_does_as_predicted_keeps_its_budget() -> None:
    assert corrected(Correction(), MEASURED, telemetry()) == Correction()
    assert budget(Correction()) == Budget(round_seconds=80, peak_bytes=PROFILE.memory_free_bytes, joules=50)


@given(st.lists(st.floats(0.3, 5), min_size=2, max_size=2, unique=True))
def test_the_slower_a_round_was_the_smaller_the_next_budget(factors: list[float]) -> None:
    faster, slower = sorted(factors)
    assert seconds(corrected(Correction(), MEASURED, telemetry(slower))) < seconds(
        corrected(Correction(), MEASURED, telemetry(faster))
    )


def test_a_device_that_is_always_twice_as_slow_ends_with_half_the_seconds() -> None:
    known = Correction()
    for _ in range(12):
        known = corrected(known, MEASURED, telemetry(2))
    assert known.seconds == pytest.approx(2, rel=1e-3)
    assert seconds(known) == pytest.approx(40, rel=1e-3)


def test_it_recovers_from_heat_and_from_one_bad_round() -> None:
    hot = telemetry(3, thermal=Thermal(end_celsius=82, throttled=True))
    known = corrected(corrected(Correction(), MEASURED, hot), MEASURED, hot)
    assert seconds(known) < 80 / 3
    before = known
    for _ in range(20):
        known = corrected(known, MEASURED, telemetry())
        assert seconds(known) > seconds(before) or known == before
        before = known
    assert seconds(known) == pytest.approx(80, rel=1e-3)


def test_a_correction_fades() -> None:
    learned = Correction(seconds=4.0, peak_bytes=0.25, joules=2.0, strain=2.25)
    assert faded(learned, 0) == learned
    assert faded(learned, 1) == Correction(seconds=2.0, peak_bytes=0.5, joules=2.0**0.5, strain=1.5)
    assert seconds(faded(learned, 60)) == pytest.approx(80)


@pytest.mark.parametrize(
    "changes",
    [
        {"thermal": Thermal(throttled=True)},
        {"thermal": Thermal(end_celsius=80)},
        {"thermal": Thermal(end_status=ThermalStatus.MODERATE)},
        {"thermal": Thermal(start_status=ThermalStatus.NONE, end_status=ThermalStatus.SHUTDOWN)},
    ],
)
def test_heat_shrinks_time_and_energy(changes: dict[str, object]) -> None:
    after = budget(corrected(Correction(), MEASURED, telemetry(1.0, **changes)))
    assert after.round_seconds is not None
    assert after.joules is not None
    assert after.round_seconds < 80
    assert after.joules < 50
    assert after.peak_bytes == PROFILE.memory_free_bytes


def test_a_refusal_shrinks_what_it_was_about() -> None:
    assert refused(Correction(), Reason.TEMPERATURE).strain > 1
    assert refused(Correction(), Reason.ENERGY).strain > 1
    assert refused(Correction(), Reason.MEMORY).peak_bytes > 1
    assert refused(Correction(), Reason.DEADLINE).seconds > 1
    assert refused(Correction(), Reason.THERMAL) == refused(Correction(), Reason.TEMPERATURE)


@pytest.mark.parametrize("reason", [Reason.HOURS, Reason.POWER, Reason.METERED, Reason.BATTERY_SAVER, Reason.TRAFFIC])
def test_what_a_smaller_task_would_not_help_leaves_the_plan_as_it_is(reason: Reason) -> None:
    assert refused(Correction(strain=2.0), reason) == Correction(strain=2.0)


def test_light_pressure_is_no_heat() -> None:
    light = telemetry(1.0, thermal=Thermal(end_status=ThermalStatus.LIGHT))
    assert corrected(Correction(), MEASURED, light) == Correction()


@given(
    st.floats(1e-300, 1e300),
    st.one_of(st.none(), st.floats(0, 1e300)),
    st.integers(0, 2**53 - 1),
    st.booleans(),
)
def test_whatever_a_stranger_reports_the_factors_stay_within_bounds(
    measured: float, predicted: float | None, peak: int, throttled: bool
) -> None:
    latency = dataclasses.replace(
        TELEMETRY.latency,
        min_step_seconds=0,
        p50_step_seconds=0,
        p90_step_seconds=0,
        round_seconds=measured,
    )
    memory = dataclasses.replace(TELEMETRY.memory, baseline_bytes=0, peak_bytes=peak)
    odd = dataclasses.replace(TELEMETRY, latency=latency, memory=memory, thermal=Thermal(throttled=throttled))
    known = Correction()
    for _ in range(3):
        known = corrected(known, Prediction(seconds=predicted, peak_bytes=1), odd)
        assert all(1 / 8 <= factor <= 8 for factor in (known.seconds, known.peak_bytes, known.joules))
        assert 1 <= known.strain <= 4
    assert 80 / 32 <= seconds(known) <= 640


def test_one_report_moves_a_factor_by_no_more_than_half_of_the_way() -> None:
    assert corrected(Correction(), MEASURED, telemetry(1e9)).seconds == pytest.approx(8**0.5)


def test_a_correction_travels_as_json() -> None:
    known = corrected(Correction(), MEASURED, telemetry(2))
    assert read(dumps(known)) == known


def test_memory_is_what_is_free_or_what_is_allowed() -> None:
    assert budget_of(PROFILE, deadline_seconds=1, memory_bytes=1000).peak_bytes == 1000
    halved = budget_of(PROFILE, deadline_seconds=1, memory_bytes=1000, correction=Correction(peak_bytes=2))
    assert halved.peak_bytes == 500


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(SchemaError, match="share"):
        budget_of(PROFILE, deadline_seconds=1, round_share=0)


def test_a_long_deadline_does_not_mean_long_training() -> None:
    day = budget_of(PROFILE, deadline_seconds=86_400, most_seconds=1200)
    assert day.round_seconds == 1200
    assert budget_of(PROFILE, deadline_seconds=600, most_seconds=1200).round_seconds == 300
    slower = budget_of(PROFILE, deadline_seconds=86_400, most_seconds=1200, correction=Correction(seconds=2.0))
    assert slower.round_seconds == 600
