"""When a device is told to come back: about when the next round begins, never much later, and not with all others."""

import pytest

from coordinator.polling.poll_response import nothing, retry_seconds
from coordinator.polling.poll_schedule import (
    LEAST_SPREAD,
    LONGEST_IDLE,
    LONGEST_PAUSE,
    LONGEST_SPREAD,
    DelayBounds,
    PollDelay,
    PollSchedule,
)
from edgefl.values import Assignment, loads


def counted(*counts: int, longest: float = LONGEST_IDLE) -> PollSchedule:
    """Return the pace of a federation whose open tasks were counted once a second."""
    pace = PollSchedule(lambda federation: DelayBounds(pause=min(longest, LONGEST_PAUSE), idle=longest))
    for second, count in enumerate(counts):
        pace.count({"fed": count} if count else {}, float(second))
    return pace


def pause(*counts: int, longest: float = LONGEST_PAUSE) -> float:
    """Return what is said right after the last count."""
    return counted(*counts, longest=longest).delay("fed", len(counts) - 1.0).pause


def test_tasks_go_on_ending_as_fast_as_they_did() -> None:
    assert pause(1000, 800, 600) == pytest.approx(3.0)
    assert pause(1000, 500, 100) == pytest.approx(2 * 100 / 900)


@pytest.mark.parametrize("counts", [(), (10,), (10, 10, 10), (10, 5, 0)])
def test_where_nothing_is_known_nobody_is_kept_away(counts: tuple[int, ...]) -> None:
    assert pause(*counts) == 0


def test_a_round_is_expected_to_follow_as_soon_as_the_last_one_did() -> None:
    assert pause(10, 5, 0, 0, 10) == pytest.approx(4.0)  # it began four seconds after the one before
    assert pause(10, 5, 0, 0, 10, 2) == pytest.approx(0.25 + 2.0)  # it ends sooner, and two seconds lie between rounds
    assert pause(10, 5, 0, 0, 10, 5, 0) == pytest.approx(2.0)
    assert pause(10, 5, 0, 0, 10, 5, 0, 0) == pytest.approx(1.0)


def test_where_nothing_goes_on_devices_come_more_and_more_rarely() -> None:
    pace = counted(10, 5, 0)
    assert pace.delay("fed", 2.0).pause == 0
    assert pace.delay("fed", 32.0).pause == pytest.approx(3.0)
    assert pace.delay("fed", 3600.0).pause == LONGEST_IDLE
    assert counted(10, 5, 0, longest=4.0).delay("fed", 3600.0).pause == 4.0
    never = PollSchedule()
    assert never.delay("fed", 1000.0).pause == 0
    assert never.delay("fed", 1100.0).pause == pytest.approx(10.0)


def test_a_round_after_a_long_time_of_nothing_says_nothing_about_the_next() -> None:
    pace = counted(10, 5, 0)
    pace.count({"fed": 10}, 3600.0)
    assert pace.delay("fed", 3600.0).pause == 0
    pace.count({"fed": 5}, 3601.0)
    assert pace.delay("fed", 3601.0).pause == pytest.approx(1.0)


def test_a_federation_that_is_over_is_forgotten() -> None:
    pace = counted(10, 5)
    pace.count({}, 3.0, over={"fed"})
    assert not pace.federations


def test_a_round_that_takes_longer_than_the_last_one_is_judged_by_itself() -> None:
    assert pause(10, 0, 10, 9, 8, 7) == pytest.approx(LONGEST_PAUSE)
    assert pause(10, 0, 10, 8, 6, 4, 2) == pytest.approx(1.0 + 1.0)


def test_more_tasks_are_a_new_beginning() -> None:
    assert pause(10, 5, 20) == pytest.approx(2.0)
    assert pause(10, 5, 20, 10) == pytest.approx(1.0)


def test_a_slow_round_keeps_nobody_away_for_long() -> None:
    assert pause(1000, 999) == LONGEST_PAUSE
    assert pause(1000, 999, longest=0.5) == 0.5


def test_devices_come_no_faster_than_tasks_ended_at_best() -> None:
    def spread(*counts: int) -> float:
        return counted(*counts).delay("fed", float(len(counts))).spread

    assert spread() == spread(1000) == LEAST_SPREAD
    assert spread(1000, 600, 300) == pytest.approx(1000 / (0.9 * 400))
    assert spread(1000, 600, 300, 0, 900) == LEAST_SPREAD + 0.5  # the pace of the last round is remembered
    assert spread(1000, 600, 300, 0, 900, 800, 0, 900) == LONGEST_SPREAD  # and of no earlier one
    assert spread(1000, 990) == LONGEST_SPREAD
    assert spread(10, 0) == LEAST_SPREAD
    assert spread(1000, 990, 0) == LONGEST_SPREAD  # what a deadline ended says nothing about what can be served


def test_one_federation_says_nothing_about_another() -> None:
    assert counted(1000, 500).delay("other", 2.0) == PollDelay()


def test_a_pause_comes_before_the_jitter() -> None:
    hints = [loads(Assignment, nothing(PollDelay(5.0, 2.0)).body).retry_seconds for _ in range(200)]
    hints += [retry_seconds(PollDelay(5.0, 2.0)) for _ in range(200)]
    assert 5.3 <= min(hints) < 5.8
    assert 6.8 < max(hints) <= 7.3
