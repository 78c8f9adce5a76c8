"""`two-class:RATE`: two classes a client, the smaller RATE times the larger."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.data import Samples, Scheme, partition
from edgefl.errors import DataError
from tests.data.labelled import balanced, labelled, samples_of

QUICK = settings(max_examples=150, deadline=None)


def test_two_classes_with_half_the_volume_by_hand() -> None:
    # 2 clients, 2 classes of 9: client A has 6 of one class and 3 of the other, client B the rest.
    samples = balanced(2, 9)
    counts = partition(samples, "two-class:0.5", clients=2).label_counts(samples.labels, 2)
    assert sorted(counts.tolist()) == [[3, 6], [6, 3]]


@pytest.mark.parametrize(("rate", "large", "small"), [(1, 30, 30), (0.75, 34, 26), (0.5, 40, 20), (0.25, 48, 12)])
def test_the_balance_rates_of_hermes_are_hit(rate: float, large: int, small: int) -> None:
    # 20 clients over 10 classes of 120: 60 of a class go to each ring, cut as 60 / (1 + rate).
    samples = balanced(10, 120)
    counts = partition(samples, f"two-class:{rate}", clients=20).label_counts(samples.labels, 10)
    assert all(sorted(row[row > 0].tolist(), reverse=True) == [large, small] for row in counts)
    assert ((counts > 0).sum(axis=0) == 4).all()


def test_the_balance_rate_is_hit_even_if_classes_differ_in_size() -> None:
    # Cutting every class at the same fraction would miss by up to 20 %; solving around the ring does not.
    sizes = [1000, 1100, 950, 1050, 900]
    samples = samples_of(np.repeat(np.arange(5), sizes))
    for seed in range(5):
        divided = partition(samples, "two-class:0.5", clients=5, seed=seed)
        for row in divided.label_counts(samples.labels, 5):
            small, large = sorted(row[row > 0].tolist())
            assert abs(small - 0.5 * large) <= 1


@QUICK
@given(samples=labelled(), rate=st.floats(0.01, 1), rings=st.integers(1, 9), seed=st.integers(0, 9))
def test_two_class_clients_hold_exactly_two_classes(samples: Samples, rate: float, rings: int, seed: int) -> None:
    values, sizes = np.unique(samples.labels, return_counts=True)
    clients = rings * len(values)
    if len(values) < 2 or 2 * rings > sizes.min():
        with pytest.raises(DataError):
            partition(samples, Scheme("two-class", rate), clients=clients, seed=seed)
        return
    divided = partition(samples, Scheme("two-class", rate), clients=clients, seed=seed)
    counts = divided.label_counts(samples.labels, 12)
    assert ((counts > 0).sum(axis=1) == 2).all()


@pytest.mark.parametrize(
    ("clients", "good"),
    [(1, "Use 5 clients"), (7, "Use 5 or 10 clients"), (24, "Use 20 clients"), (25, "Use 20 clients")],
)
def test_a_number_of_clients_at_which_the_rate_cannot_be_kept_is_refused(clients: int, good: str) -> None:
    # Five classes of nine: at most four rings, each of which takes two samples of every class.
    with pytest.raises(DataError, match=f"a multiple of 5 clients, at most 20. {good}"):
        partition(balanced(5, 9), "two-class:0.1", clients=clients)


def test_two_classes_cannot_be_had_from_one() -> None:
    with pytest.raises(DataError, match="one class"):
        partition(balanced(1, 10), "two-class:0.5", clients=2)


def test_a_class_with_one_sample_cannot_be_shared_by_two_clients() -> None:
    with pytest.raises(DataError, match="labels:2"):
        partition(samples_of(np.array([0, 0, 0, 1])), "two-class:0.5", clients=2)
