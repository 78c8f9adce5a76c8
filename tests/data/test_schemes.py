"""Each scheme by itself: iid, dirichlet, labels, owner; `test_two_class.py` has the last one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.data import Samples, Scheme, partition
from edgefl.data.schemes.apportionment import apportion
from edgefl.errors import DataError
from tests.data.labelled import balanced, labelled, samples_of

QUICK = settings(max_examples=150, deadline=None)


def test_iid_clients_differ_by_one_sample_at_most() -> None:
    sizes = partition(balanced(3, 34), "iid", clients=7).sizes
    assert sizes.max() - sizes.min() == 1


def test_a_smaller_alpha_makes_clients_less_alike() -> None:
    samples = balanced(10, 500)

    def largest_share(alpha: float) -> float:
        counts = partition(samples, f"dirichlet:{alpha}", clients=20, seed=1).label_counts(samples.labels, 10)
        return float((counts / counts.sum(axis=1)[:, None]).max(axis=1).mean())

    assert largest_share(0.05) > largest_share(0.5) + 0.1 > largest_share(100) + 0.2
    assert largest_share(1e6) < 0.11


@QUICK
@given(
    samples=labelled(),
    alpha=st.floats(1e-3, 1e6),
    clients=st.integers(1, 30),
    minimum=st.integers(0, 12),
    seed=st.integers(0, 9),
)
def test_dirichlet_keeps_the_minimum_or_says_the_largest_possible_one(
    samples: Samples, alpha: float, clients: int, minimum: int, seed: int
) -> None:
    if clients > len(samples):
        return
    wanted = Scheme("dirichlet", alpha)
    if minimum * clients > len(samples) or minimum == 0:
        with pytest.raises(DataError, match=f"from 1 to {len(samples) // clients}"):
            partition(samples, wanted, clients=clients, seed=seed, minimum=minimum)
        return
    assert partition(samples, wanted, clients=clients, seed=seed, minimum=minimum).sizes.min() >= minimum


def test_dirichlet_leaves_no_client_below_a_tenth_of_the_average_by_default() -> None:
    assert partition(balanced(10, 100), "dirichlet:0.01", clients=20).sizes.min() >= 5
    assert partition(balanced(10, 600), "dirichlet:0.01", clients=20).sizes.min() >= 10
    assert partition(balanced(2, 10), "dirichlet:0.01", clients=20).sizes.min() == 1


@QUICK
@given(samples=labelled(), k=st.integers(1, 6), clients=st.integers(1, 40), seed=st.integers(0, 9))
def test_k_labels_a_client_are_k_different_ones_in_balanced_use(
    samples: Samples, k: int, clients: int, seed: int
) -> None:
    values, sizes = np.unique(samples.labels, return_counts=True)
    possible = k <= len(values) <= clients * k <= np.minimum(sizes, clients).sum()
    if not possible or clients > len(samples):
        with pytest.raises(DataError):
            partition(samples, f"labels:{k}", clients=clients, seed=seed)
        return
    counts = partition(samples, f"labels:{k}", clients=clients, seed=seed).label_counts(samples.labels, 12)
    assert ((counts > 0).sum(axis=1) == k).all()
    holders = (counts > 0).sum(axis=0)[values]
    assert holders.min() >= 1
    for label, label_holders in zip(values, holders, strict=True):
        held = counts[:, label][counts[:, label] > 0]
        assert held.max() - held.min() <= 1
        # only a label that has no sample left for one more client may have clearly fewer holders than another
        assert label_holders >= holders.max() - 1 or label_holders == min(len(held), int(held.sum()))
    with_room = holders[sizes > holders]
    assert len(with_room) == 0 or with_room.max() - with_room.min() <= 1


def test_three_labels_a_client_of_a_hundred_as_in_fedmrn() -> None:
    # 100 clients x 3 labels over 10 labels: each label has 30 holders, each with 6000 / 30 = 200 samples.
    samples = balanced(10, 6000)
    counts = partition(samples, "labels:3", clients=100).label_counts(samples.labels, 10)
    assert set(counts.ravel().tolist()) == {0, 200}
    assert (counts > 0).sum(axis=0).tolist() == [30] * 10
    assert counts.sum(axis=1).tolist() == [600] * 100
    assert len({tuple(row > 0) for row in counts}) > 50


def test_two_labels_among_three_clients_by_hand() -> None:
    # 3 clients x 2 labels over 3 labels of 8 samples: every pair of labels once, 4 samples of each.
    samples = balanced(3, 8)
    counts = partition(samples, "labels:2", clients=3).label_counts(samples.labels, 3)
    assert sorted(counts.tolist()) == [[0, 4, 4], [4, 0, 4], [4, 4, 0]]


def test_a_rare_label_has_no_more_holders_than_samples() -> None:
    samples = samples_of(np.repeat(np.arange(4), [100, 100, 100, 2]))
    counts = partition(samples, "labels:2", clients=10).label_counts(samples.labels, 4)
    assert (counts > 0).sum(axis=0).tolist() == [6, 6, 6, 2]
    assert ((counts > 0).sum(axis=1) == 2).all()


def test_owners_are_clients_and_are_grouped_without_being_split() -> None:
    owners = np.repeat([5, 9, 2, 7], [40, 30, 20, 10])
    samples = samples_of(np.zeros(100, dtype=np.int64), owners)
    assert partition(samples, "owner").sizes.tolist() == [20, 40, 10, 30]
    grouped = partition(samples, "owner", clients=2)
    assert sorted(grouped.sizes.tolist()) == [50, 50]
    held = [set(owners[client].tolist()) for client in grouped.clients]
    assert held[0].isdisjoint(held[1])


def test_more_clients_than_owners_says_how_many_owners_there_are() -> None:
    samples = samples_of(np.zeros(9, dtype=np.int64), np.arange(9) % 3)
    with pytest.raises(DataError, match="at most 3 clients"):
        partition(samples, "owner", clients=4)


@QUICK
@given(
    total=st.integers(0, 1000),
    weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=20),
)
def test_apportioning_gives_all_and_stays_within_one_of_what_is_due(total: int, weights: list[float]) -> None:
    shares = np.array(weights)
    counts = apportion(total, shares)
    assert counts.sum() == total
    if shares.sum() > 0:
        assert np.abs(counts - total * shares / shares.sum()).max() < 1 + 1e-6


def test_apportioning_respects_limits_and_passes_on_what_does_not_fit() -> None:
    assert apportion(10, np.array([8.0, 1.0, 1.0]), np.array([3, 9, 9])).tolist() == [3, 4, 3]
    assert apportion(3, np.array([1.0, 0.0]), np.array([1, 5])).tolist() == [1, 2]
