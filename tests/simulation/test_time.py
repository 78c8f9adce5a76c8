"""Simulated time: who is there, what a task takes, what becomes of it, and when a round ends."""

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgefl.errors import DataError, EdgeFLError
from edgefl.federation import BufferingSettings, FederationMode
from edgefl.masks import full_mask
from edgefl.planning import TrainingLoad
from edgefl.simulation import CostLimits, DeviceClass, Fate, FleetDevice, SimulatedFederation, fleet_of
from edgefl.simulation.availability import (
    Always,
    Availability,
    AvailabilityTrace,
    Sessions,
    finished_at,
    read_trace,
    was_online,
)
from edgefl.simulation.nights import NightlyCharging, nightly_from
from edgefl.simulation.results import RoundResult
from edgefl.simulation.task_time import spent
from edgefl.strategies import strategy_of
from edgefl.values.formatting import format_bytes
from tests.device_runtime.federation import bundle, digits
from tests.simulation.fleets import FEDAVG, fleet, settings_of

BASE = DeviceClass(
    name="base",
    download_bytes_per_second=1000.0,
    upload_bytes_per_second=100.0,
    idle_watts=1.0,
    busy_watts=5.0,
)


def device(kind: DeviceClass = BASE) -> FleetDevice:
    return fleet_of(digits(), clients=1, classes=[kind])[0]


def federation(
    devices: tuple[FleetDevice, ...], availability: Availability | None = None, **changes: Any
) -> SimulatedFederation:
    settings = settings_of(**({"rounds": 3, "per_round": 3} | changes))
    return SimulatedFederation(bundle(), devices, strategy_of("fedavg", FEDAVG), settings, availability=availability)


def test_a_task_takes_its_transfers_and_its_steps_and_their_energy() -> None:
    one = device()
    cost = full_mask(bundle().graph).cost
    took = spent(one, cost, batch=8, steps=4, load=TrainingLoad(runs=2, copies=3), down_bytes=3000, up_bytes=500)
    per_step = 1e-3 + 8 * (cost.forward_multiply_adds + cost.backward_multiply_adds) / 2e9
    assert took.training_seconds == pytest.approx(2 * 4 * per_step)
    plain = spent(one, cost, batch=8, steps=4, load=TrainingLoad(), down_bytes=3000, up_bytes=500)
    assert took.peak_bytes == plain.peak_bytes + 3 * cost.parameter_bytes
    assert (took.download_seconds, took.upload_seconds) == (3.0, 5.0)
    assert took.seconds == pytest.approx(8.0 + took.training_seconds)
    assert took.joules == pytest.approx(5.0 * took.training_seconds + 1.0 * 8.0)


def test_what_a_class_does_not_say_costs_no_time_and_has_no_joules() -> None:
    took = spent(
        device(DeviceClass()),
        full_mask(bundle().graph).cost,
        batch=8,
        steps=1,
        load=TrainingLoad(),
        down_bytes=9,
        up_bytes=9,
    )
    assert took.seconds == took.training_seconds
    assert took.joules is None


def test_devices_come_and_go_as_often_as_their_class_says() -> None:
    kind = replace(BASE, online_seconds=30.0, offline_seconds=90.0)
    devices = fleet_of(digits(), clients=40, classes=[kind])
    sessions = Sessions(3)
    there = [sum(sessions.online_until(one, at) is not None for one in devices) for at in range(0, 6000, 50)]
    assert sum(there) / len(there) / 40 == pytest.approx(0.25, abs=0.03)


def test_sessions_do_not_depend_on_when_they_are_asked_for() -> None:
    one = device(replace(BASE, online_seconds=30.0, offline_seconds=90.0))
    often, once = Sessions(3), Sessions(3)
    answers = [often.online_until(one, at) for at in range(0, 1000, 7)]
    assert once.online_until(one, 994) == answers[-1]


def test_a_device_that_always_is_there_never_goes() -> None:
    assert Sessions(0).online_until(device(), 1e9) == math.inf
    assert Always().online_until(device(), 1e9) == math.inf


def test_a_trace_says_who_is_there(tmp_path: Path) -> None:
    first, second = fleet()[:2]
    path = tmp_path / "trace.csv"
    path.write_text(f"device,from_seconds,to_seconds\n{first.device_id},10,20\n{first.device_id},40,50\n")
    trace = read_trace(path, fleet())
    assert [trace.online_until(first, at) for at in (5, 10, 19, 20, 45)] == [None, 20.0, 20.0, None, 50.0]
    assert trace.online_until(second, 15) is None
    assert trace.next_change([first, second], 20) == 40.0
    assert trace.next_change([first, second], 60) == math.inf


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("device,from_seconds\nx,1\n", "lacks a column"),
        ("device,from_seconds,to_seconds\nnobody,1,2\n", "no device 'nobody'"),
        ("device,from_seconds,to_seconds\nnobody,2,1\n", "from 2.0 to 1.0"),
        ("device,from_seconds,to_seconds\nnobody,x,1\n", "are not numbers"),
    ],
)
def test_a_wrong_trace_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises((DataError, EdgeFLError), match=says):
        read_trace(path, fleet())


def test_a_round_lasts_as_long_as_its_slowest_device() -> None:
    fast, slow = replace(BASE, name="fast", speed=10.0), replace(BASE, name="slow", speed=0.1)
    with federation(fleet_of(digits(), clients=4, classes=[fast, slow]), per_round=4) as made:
        results = list(made.rounds())
    for result in results:
        assert result.simulated_seconds == max(one.simulated_seconds for one in result.devices)
        assert all(one.fate is Fate.ARRIVED for one in result.devices)
    assert results[1].began_at == results[0].simulated_seconds
    assert results[0].joules == pytest.approx(sum(one.joules or 0.0 for one in results[0].devices))


def test_a_late_update_does_not_count_and_the_round_ends_at_its_deadline() -> None:
    slow = replace(BASE, name="slow", upload_bytes_per_second=1.0)
    with federation(fleet_of(digits(), clients=2, classes=[slow]), deadline=600.0) as made:
        before = {name: array.copy() for name, array in made.model.weights.items()}
        (result, *_) = made.rounds()
        assert all((made.model.weights[name] == array).all() for name, array in before.items())
    assert {one.fate for one in result.devices} == {Fate.LATE}
    assert result.simulated_seconds == 600.0


def test_devices_that_fail_send_nothing_and_are_asked_less_often() -> None:
    broken, sound = replace(BASE, name="broken", fails=1.0), replace(BASE, name="sound")
    devices = fleet_of(digits(), clients=10, classes=[broken, sound])
    with federation(devices, rounds=12) as made:
        rounds = [one for result in made.rounds() for one in result.devices]
    assert {one.fate for one in rounds if one.device_id.startswith("broken")} == {Fate.LOST}
    assert {one.fate for one in rounds if one.device_id.startswith("sound")} == {Fate.ARRIVED}
    late = [one.device_id.partition("-")[0] for one in rounds[18:]]
    assert late.count("sound") > late.count("broken")


def test_a_device_that_leaves_before_it_is_done_is_lost() -> None:
    one = device()
    trace = AvailabilityTrace({one.device_id: [(100.0, 101.0), (200.0, 1e6)]})
    with federation((one,), availability=trace) as made:
        first, second, _ = made.rounds()
    assert (first.began_at, first.devices[0].fate) == (100.0, Fate.LOST)
    assert (second.began_at, second.devices[0].fate) == (700.0, Fate.ARRIVED)


def test_a_trace_that_ends_before_the_federation_is_an_error() -> None:
    one = device()
    with (
        federation((one,), availability=AvailabilityTrace({one.device_id: [(0.0, 1.0)]})) as made,
        pytest.raises(EdgeFLError, match="and none will be"),
    ):
        list(made.rounds())


HOUR, DAY = 3600.0, 86_400.0


def phones(count: int = 12) -> tuple[FleetDevice, ...]:
    return fleet_of(digits(), clients=count, classes=[DeviceClass(name="phone", speed=2e-5)])


def online_hours(nights: NightlyCharging, one: FleetDevice, days: int) -> float:
    ticks = [at * 600.0 for at in range(int(days * DAY / 600))]
    return sum(nights.online_until(one, at) is not None for at in ticks) / 6


def test_phones_charge_about_as_long_as_asked_and_never_at_noon() -> None:
    nights, fleet_of_phones = NightlyCharging(seed=1, skips=0.25, interrupted=0.0), phones()
    hours = [online_hours(nights, one, 20) / 20 for one in fleet_of_phones]
    assert sum(hours) / len(hours) == pytest.approx(0.75 * 7, rel=0.1)
    assert all(nights.online_until(one, day * DAY) is None for one in fleet_of_phones for day in range(20))


def test_nights_do_not_depend_on_when_they_are_asked_for() -> None:
    one = phones(1)[0]
    often, once = NightlyCharging(seed=4), NightlyCharging(seed=4)
    answers = [often.online_until(one, at * 1000.0) for at in range(1500)]
    assert once.online_until(one, 1_499_000.0) == answers[-1]
    assert [once.online_until(one, at * 1000.0) for at in range(1500)] == answers
    assert NightlyCharging(seed=5).next_change([one], 0.0) != often.next_change([one], 0.0)


def test_time_zones_spread_the_nights() -> None:
    def first_night(spread: float) -> float:
        nights = NightlyCharging(seed=1, spread=spread, skips=0.0)
        begins = [nights.next_change([one], 0.0) for one in phones()]
        return max(begins) - min(begins)

    assert first_night(0.0) < 4 * HOUR
    assert 6 * HOUR < first_night(12 * HOUR) < 16 * HOUR


def test_work_goes_on_when_the_device_is_back() -> None:
    one = device()
    trace = AvailabilityTrace({one.device_id: [(0.0, 10.0), (100.0, 130.0)]})
    assert finished_at(trace, one, 0.0, 10.0) == 10.0
    assert finished_at(trace, one, 4.0, 10.0) == 104.0
    assert finished_at(trace, one, 50.0, 30.0) == 130.0
    assert finished_at(trace, one, 0.0, 41.0) == math.inf
    assert was_online(trace, one, 20.0, 100.0)
    assert was_online(trace, one, 5.0, 50.0)
    assert not was_online(trace, one, 20.0, 90.0)


@pytest.mark.parametrize(
    ("spec", "says"),
    [("daily", "'daily' is not known"), ("nightly:zones=3", "'zones' is not one of"), ("nightly:hours=20h", "hours")],
)
def test_a_wrong_availability_is_refused(spec: str, says: str) -> None:
    with pytest.raises(EdgeFLError, match=says):
        nightly_from(spec, 0)


def test_an_availability_is_written_with_units() -> None:
    assert nightly_from("nightly:spread=10h,skips=0.3", 7) == NightlyCharging(7, spread=10 * HOUR, skips=0.3)


def test_a_device_that_leaves_loses_its_task_or_resumes_it_the_next_night() -> None:
    one = device(replace(BASE, upload_bytes_per_second=None, download_bytes_per_second=None, speed=1e-4))
    trace = AvailabilityTrace({one.device_id: [(0.0, 5.0), (DAY, DAY + 5e5)]})
    with federation((one,), availability=trace, rounds=1, deadline=3 * DAY) as made:
        (lost,) = made.rounds()
    assert lost.devices[0].fate is Fate.LOST
    settings = settings_of(rounds=1, per_round=1, deadline=3 * DAY)
    with SimulatedFederation(
        bundle(), (one,), strategy_of("fedavg", FEDAVG), settings, availability=trace, resumes=True
    ) as made:
        (resumed,) = made.rounds()
    assert resumed.devices[0].fate is Fate.ARRIVED
    assert resumed.devices[0].away_seconds == pytest.approx(DAY - 5.0)
    assert resumed.simulated_seconds == pytest.approx(resumed.devices[0].simulated_seconds + DAY - 5.0)


def buffered(availability: Availability, **changes: Any) -> SimulatedFederation:
    settings = replace(
        settings_of(rounds=50, deadline=18 * HOUR),
        mode=FederationMode.BUFFERED,
        buffering=BufferingSettings(**({"size": 4, "at_once": 12} | changes)),
    )
    strategy = strategy_of("fedavg", FEDAVG)
    return SimulatedFederation(bundle(), phones(), strategy, settings, availability=availability)


def test_buffered_rounds_make_progress_night_by_night() -> None:
    with buffered(NightlyCharging(seed=1, spread=6 * HOUR)) as made:
        results = list(made.rounds(CostLimits(seconds=3 * DAY)))
    fates = [one.fate for result in results for one in result.devices]
    assert len(results) >= 5
    assert fates.count(Fate.ARRIVED) == 4 * len(results)
    assert all(result.simulated_seconds > 0 for result in results)
    assert results[-1].began_at + results[-1].simulated_seconds <= 3 * DAY
    assert len({one.device_id for result in results for one in result.devices}) >= 10


def test_buffered_mode_is_the_same_every_time_and_ends_with_its_last_round() -> None:
    def run() -> tuple[list[RoundResult], bytes]:
        with buffered(NightlyCharging(seed=1, spread=6 * HOUR)) as made:
            results = [replace(one, seconds=0.0, devices=()) for one in itertools.islice(made.rounds(), 3)]
            return results, b"".join(array.tobytes() for array in made.model.weights.values())

    assert run() == run()


def test_a_run_ends_when_a_cost_is_spent_is_judged_there_and_says_why() -> None:
    devices = fleet_of(digits(), clients=3, classes=[BASE])
    with federation(devices, rounds=9, evaluate_every=9) as made:
        first = next(made.rounds())
    limit = 3 * first.up_bytes // 2
    with federation(devices, rounds=9, evaluate_every=9) as made:
        results = list(made.rounds(CostLimits(up_bytes=limit)))
        assert made.stopped is not None
        assert made.stopped.endswith(f"up spent, of {format_bytes(limit)}")
    assert [result.number for result in results] == [0, 1]
    assert results[0].score is None
    assert results[1].score is not None
    with federation(devices, rounds=9, evaluate_every=9) as made:
        joules = sum(one.joules or 0.0 for one in first.devices)
        assert [result.number for result in made.rounds(CostLimits(joules=joules / 2))] == [0]
    with federation(devices, rounds=2) as made:
        assert len(list(made.rounds(CostLimits(up_bytes=limit)))) == 2
        assert made.stopped is None, "all rounds were run"


def test_a_limit_of_time_is_spent_by_waiting_for_devices_too() -> None:
    one = device()
    trace = AvailabilityTrace({one.device_id: [(0.0, 100.0), (DAY, 2 * DAY)]})
    with federation((one,), availability=trace, rounds=9, per_round=1, deadline=90.0) as made:
        results = list(made.rounds(CostLimits(seconds=3600.0)))
        assert made.stopped is not None
    assert results
    assert results[-1].began_at < 3600.0


def test_no_more_devices_work_at_once_than_allowed() -> None:
    with buffered(Always(), at_once=2, size=2) as made:
        results = list(itertools.islice(made.rounds(), 4))
    assert all(len(result.devices) == 2 for result in results)
    ends = sorted(result.began_at + result.simulated_seconds for result in results)
    assert ends[0] > 0


def test_a_round_closes_with_the_updates_that_it_wants() -> None:
    fast, slow = replace(BASE, name="fast", speed=10.0), replace(BASE, name="slow", speed=1e-4)
    settings = settings_of(rounds=1, per_round=2, deadline=1e6)
    settings = replace(settings, selection=replace(settings.selection, over_select=2.0))
    devices = fleet_of(digits(), clients=4, classes=[fast, slow])
    with SimulatedFederation(bundle(), devices, strategy_of("fedavg", FEDAVG), settings) as made:
        (result,) = made.rounds()
    fates = {one.device_id: one.fate for one in result.devices}
    assert {name.partition("-")[0]: fate for name, fate in fates.items()} == {"fast": Fate.ARRIVED, "slow": Fate.LATE}
    slowest = max(one.simulated_seconds for one in result.devices)
    assert (
        result.simulated_seconds
        == max(one.simulated_seconds for one in result.devices if one.fate is Fate.ARRIVED)
        < slowest
    )
