"""Runs at equal cost, computed by hand."""

from dataclasses import replace

import pytest

from edgefl.federation.evaluation import Score
from edgefl.report.equal_cost import equal_cost_of
from edgefl.simulation.run_folder import Run
from tests.report.runs import tiny_run


def run(accuracies: list[float | None], *, seconds: float, up: int, joules: float | None = 1.0) -> Run:
    """A run whose rounds follow each other at once."""
    plain = tiny_run(names=("a",), rounds=1)
    (first,) = plain.rounds
    device = replace(first.devices[0], up_bytes=up, down_bytes=100, joules=joules)
    rounds = tuple(
        replace(
            first,
            number=number,
            devices=(device,),
            score=None if accuracy is None else Score(accuracy, 1.0, 10),
            began_at=seconds * number,
            simulated_seconds=seconds,
        )
        for number, accuracy in enumerate(accuracies)
    )
    return replace(plain, rounds=rounds)


def test_a_run_is_credited_with_the_last_evaluation_within_the_cheapest_ones_cost() -> None:
    slow = run([0.5, 0.9, 0.8], seconds=10.0, up=10)  # 30 s, 30 bytes up
    fast = run([0.1, None, 0.3, 0.4, 0.6], seconds=4.0, up=100)  # 20 s, 500 bytes up
    found = equal_cost_of([slow, fast])
    assert found.budgets == {"seconds": 20.0, "joules": 3.0, "up_bytes": 30, "down_bytes": 300, "total_bytes": 330}
    assert found.runs[0].accuracy == {
        "seconds": 0.9,
        "joules": 0.8,
        "up_bytes": 0.8,
        "down_bytes": 0.8,
        "total_bytes": 0.8,
    }
    assert found.runs[1].accuracy == {
        "seconds": 0.6,
        "joules": 0.3,
        "up_bytes": None,
        "down_bytes": 0.3,
        "total_bytes": 0.1,
    }


def test_the_cost_of_a_target_is_that_of_the_first_round_that_reached_it() -> None:
    slow = run([0.5, 0.9, 0.8], seconds=10.0, up=10)
    fast = run([0.1, None, 0.3, 0.4, 0.75], seconds=4.0, up=100)
    found = equal_cost_of([slow, fast])
    assert [target.share for target in found.targets] == [0.8, 0.9, 0.95]
    assert [target.accuracy for target in found.targets] == pytest.approx([0.72, 0.81, 0.855])
    assert [costs["seconds"] for costs in found.runs[0].costs] == [20.0, 20.0, 20.0]
    assert [costs["up_bytes"] for costs in found.runs[1].costs] == [500, None, None]


def test_costs_that_a_run_does_not_know_are_not_compared() -> None:
    found = equal_cost_of([run([0.5], seconds=1.0, up=1), run([0.5], seconds=1.0, up=1, joules=None)])
    assert "joules" not in found.budgets
    assert found.runs[0].costs[0]["joules"] == 1.0
    assert found.runs[1].costs[0]["joules"] is None


def test_runs_without_an_evaluation_have_nothing_to_compare() -> None:
    found = equal_cost_of([run([None], seconds=1.0, up=1), replace(run([], seconds=1.0, up=1), summary=None)])
    assert found.targets == ()
    assert found.budgets["seconds"] == 0.0
    assert found.runs[0].accuracy["seconds"] is None
