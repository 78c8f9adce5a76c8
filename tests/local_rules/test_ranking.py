"""Exactly so many entries, the right ones, and the same ones every time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgefl.local_rules.ranking import highest, lowest


@given(st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0, np.inf, np.nan]), min_size=1), st.integers(0, 60))
def test_the_lowest_are_the_first_of_a_stable_sort(values: list[float], count: int) -> None:
    array = np.array(values, np.float32)
    expected = np.zeros(array.size, np.bool_)
    expected[np.argsort(array, kind="stable")[:count]] = True
    assert np.array_equal(lowest(array, count), expected)


def test_the_highest_keep_the_shape_and_leave_out_what_is_not_a_number() -> None:
    values = np.array([[1, np.nan, 3], [3, 2, 0]], np.float32)
    assert highest(values, 3).tolist() == [[False, False, True], [True, True, False]]


def test_a_seed_decides_among_equals_alone() -> None:
    values = np.array([5] + [1] * 40 + [0], np.float32)
    picks = [highest(values, 11, seed=seed) for seed in range(20)]
    assert all(pick[0] and not pick[-1] and pick.sum() == 11 for pick in picks)
    assert len({pick.tobytes() for pick in picks}) == 20
    assert np.array_equal(picks[3], highest(values, 11, seed=3))
