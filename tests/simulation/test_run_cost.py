"""What a run has spent, and limits that end it."""

from dataclasses import replace

import pytest

from edgefl.errors import EdgeFLError
from edgefl.simulation import CostLimits, RunCost, limits_from
from edgefl.simulation.request import read_request
from edgefl.simulation.run_cost import costs_of
from edgefl.values import FieldError, dumps
from tests.report.runs import PHONE, PI, asked, tiny_run


def test_costs_add_up_and_time_includes_waiting() -> None:
    """Rounds of 5 s that begin every 10 s; three devices with 8 J, 1,000 bytes up and 2,000 down each."""
    assert list(costs_of(tiny_run().rounds)) == [
        RunCost(5.0, 24.0, 3000, 6000),
        RunCost(15.0, 48.0, 6000, 12000),
        RunCost(25.0, 72.0, 9000, 18000),
    ]
    assert RunCost(0.0, 0.0, 3000, 6000).total_bytes == 9000


def test_energy_is_unknown_once_a_device_has_no_power_figures() -> None:
    first, *others = tiny_run().rounds
    unknown = replace(first, devices=(*first.devices[:2], replace(first.devices[2], joules=None)))
    assert [cost.joules for cost in costs_of((unknown, *others))] == [None, None, None]


def test_limits_are_times_energies_and_amounts_of_data() -> None:
    assert limits_from(["20 s", "2 kJ", "10 MiB up", "1 kB down"]) == CostLimits(
        seconds=20.0, joules=2000.0, up_bytes=10 * 2**20, down_bytes=1000
    )
    assert limits_from(["1.5h", "20 MiB"]) == CostLimits(seconds=5400.0, total_bytes=20 * 2**20)
    assert not limits_from([])


@pytest.mark.parametrize("text", ["20", "", "up", "20 W", "20 s up", "10 MiB sideways", "-3 s", "0 J", "1e999 s"])
def test_other_limits_are_refused(text: str) -> None:
    with pytest.raises(FieldError):
        limits_from([text])


def test_a_kind_is_limited_once() -> None:
    with pytest.raises(FieldError, match="twice"):
        limits_from(["20 s", "1 min"])


def test_a_limit_is_reached_when_it_is_spent() -> None:
    limits = CostLimits(seconds=20.0, up_bytes=6000)
    first, second, _ = costs_of(tiny_run().rounds)
    assert limits.reached(first) is None
    assert limits.share(first) == 0.5
    assert limits.reached(second) == "5.86 KiB up spent, of 5.86 KiB"
    assert CostLimits(seconds=12.0).reached(second) == "15 s spent, of 12 s"
    assert CostLimits().reached(second) is None


def test_energy_that_nobody_knows_cannot_be_limited() -> None:
    with pytest.raises(FieldError, match="class 'phone' has no power figures"):
        asked(tiny_run(), until=CostLimits(joules=1.0))
    assert asked(tiny_run(), classes=(PI,), until=CostLimits(joules=1.0)).request.until
    assert asked(tiny_run(), classes=(PI, PHONE), until=CostLimits(up_bytes=1)).request.until


def test_a_request_keeps_its_limits_and_reads_the_time_of_earlier_versions() -> None:
    request = tiny_run().request
    assert "until" not in dumps(request), "without limits, earlier versions can read it"
    limited = replace(request, until=CostLimits(seconds=20.0, down_bytes=5))
    assert read_request(dumps(limited).encode()) == limited
    earlier = dumps(request).replace('"resumes"', '"most_seconds": 60.0, "resumes"')
    assert read_request(earlier.encode()).until == CostLimits(seconds=60.0)
    none = dumps(request).replace('"resumes"', '"most_seconds": null, "resumes"')
    assert read_request(none.encode()) == request


def test_errors_of_limits_are_for_people() -> None:
    with pytest.raises(EdgeFLError) as error:
        limits_from(["ten minutes"])
    assert "'20 s'" in str(error.value)
