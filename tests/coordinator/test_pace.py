"""When a device is told to come back: about when its round ends, and never much later."""

import pytest

from coordinator.handout import nothing
from coordinator.pace import LONGEST_PAUSE, Pace
from edgefl.values import Assignment, loads


def counted(*counts: int, longest: float = LONGEST_PAUSE) -> Pace:
    """Return the pace of a federation whose open tasks were counted once a second."""
    pace = Pace(lambda federation: longest)
    for second, count in enumerate(counts):
        pace.count({"fed": count} if count else {}, float(second))
    return pace


def test_tasks_go_on_ending_as_fast_as_they_did() -> None:
    assert counted(1000, 800, 600).pause("fed") == pytest.approx(3.0)
    assert counted(1000, 500, 100).pause("fed") == pytest.approx(2 * 100 / 900)


@pytest.mark.parametrize("counts", [(), (10,), (10, 10, 10), (10, 5, 0)])
def test_where_nothing_is_known_nobody_is_kept_away(counts: tuple[int, ...]) -> None:
    assert counted(*counts).pause("fed") == 0


def test_more_tasks_are_a_new_beginning() -> None:
    assert counted(10, 5, 20).pause("fed") == 0
    assert counted(10, 5, 20, 10).pause("fed") == pytest.approx(1.0)


def test_a_slow_round_keeps_nobody_away_for_long() -> None:
    assert counted(1000, 999).pause("fed") == LONGEST_PAUSE
    assert counted(1000, 999, longest=0.5).pause("fed") == 0.5


def test_one_federation_says_nothing_about_another() -> None:
    assert counted(1000, 500).pause("other") == 0


def test_a_pause_comes_before_the_usual_jitter() -> None:
    hints = [loads(Assignment, nothing(5.0).body).retry_seconds for _ in range(200)]
    assert 6 <= min(hints) < 6.5
    assert 7.5 < max(hints) <= 8
