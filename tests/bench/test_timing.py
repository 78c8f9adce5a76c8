"""Percentiles and ratios, against numbers computed by hand."""

import pytest

from edgefl.bench.timing import Ratio, Times, ratio_of


def test_percentiles_of_five_turns() -> None:
    figures = Times((5.0, 1.0, 3.0, 2.0, 4.0)).figures()
    assert figures == {"turns": 5, "min": 1.0, "p50": 3.0, "p90": pytest.approx(4.6), "p99": None, "max": 5.0}


def test_the_99th_percentile_needs_a_hundred_turns() -> None:
    assert Times(tuple(float(turn) for turn in range(101))).figures()["p99"] == pytest.approx(99.0)


def test_a_ratio_is_of_medians_and_its_spread_is_of_paired_turns() -> None:
    dense, sparse = Times((4.0, 6.0, 8.0, 12.0, 10.0)), Times((2.0, 2.0, 4.0, 4.0, 4.0))
    # Medians 8 and 4. Turn by turn: 2, 3, 2, 3, 2.5; their quartiles are the second and the fourth in order.
    assert ratio_of(dense, sparse) == Ratio(2.0, 2.0, 3.0)


def test_a_burst_that_hits_both_sides_leaves_the_ratio_alone() -> None:
    quiet = ratio_of(Times((2.0, 2.0, 2.0, 2.0)), Times((1.0, 1.0, 1.0, 1.0)))
    assert ratio_of(Times((2.0, 20.0, 2.0, 20.0)), Times((1.0, 10.0, 1.0, 10.0))) == quiet


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(2.0, 1.9, 2.1), "clear"),
        (Ratio(0.5, 0.48, 0.52), "clear"),
        (Ratio(1.05, 0.95, 1.15), "no difference seen"),
        (Ratio(2.0, 1.2, 2.6), "too noisy to mean much"),
        (Ratio(1.0, 0.5, 1.5), "too noisy to mean much"),
    ],
)
def test_a_ratio_says_whether_it_may_be_quoted(ratio: Ratio, verdict: str) -> None:
    assert ratio.verdict == verdict
    assert ratio.figures("the other")["verdict"] == verdict
