import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgefl.data import Partition, Samples, matched_test, partition, split_clients
from edgefl.errors import DataError

QUICK = settings(max_examples=150, deadline=None)


def one_client(labels: NDArray[np.int64]) -> Partition:
    return Partition("made", 0, (np.arange(len(labels)),))


def dirichlet_clients(labels: NDArray[np.int64], clients: int = 10) -> Partition:
    return partition(Samples(np.zeros((len(labels), 1)), labels), "dirichlet:0.3", clients=clients)


@QUICK
@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=80),
    validation=st.floats(0, 0.5),
    test=st.floats(0, 0.49),
    clients=st.integers(1, 10),
    seed=st.integers(0, 9),
)
def test_splits_are_disjoint_and_complete_and_training_knows_every_label(
    labels: list[int], validation: float, test: float, clients: int, seed: int
) -> None:
    known = np.array(labels)
    divided = partition(Samples(np.zeros((len(known), 1)), known), "iid", clients=min(clients, len(known)), seed=seed)
    splits = split_clients(divided, known, validation=validation, test=test, seed=seed)
    for client, split in zip(divided.clients, splits, strict=True):
        together = np.concatenate([split.train, split.validation, split.test])
        assert np.sort(together).tolist() == client.tolist()
        assert set(known[client].tolist()) == set(known[split.train].tolist())
        # What training can spare goes to the test part first, and then both parts that are wanted have a sample.
        spare = len(client) - len(set(known[client].tolist()))
        wanted = (test > 0) + (validation > 0)
        assert (len(split.test) > 0) == (test > 0 and spare > 0)
        assert (len(split.validation) > 0) == (validation > 0 and spare >= wanted)


@QUICK
@given(
    sizes=st.lists(st.integers(12, 60), min_size=1, max_size=5),
    validation=st.floats(0.05, 0.3),
    test=st.floats(0.05, 0.3),
)
def test_every_part_follows_the_clients_own_labels(sizes: list[int], validation: float, test: float) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    (split,) = split_clients(one_client(labels), labels, validation=validation, test=test)
    for part, fraction in ((split.test, test), (split.validation, validation)):
        counts = np.bincount(labels[part], minlength=len(sizes))
        assert abs(len(part) - fraction * len(labels)) <= 0.5 + 1e-9
        assert np.abs(counts - len(part) * np.array(sizes) / len(labels)).max() < 1


def test_a_split_by_hand() -> None:
    # 10 of label 0 and 20 of label 1: a test fifth is 2 and 4, a validation tenth 1 and 2, training the rest.
    labels = np.repeat([0, 1], [10, 20])
    (split,) = split_clients(one_client(labels), labels, validation=0.1, test=0.2)
    parts = (split.train, split.validation, split.test)
    assert [np.bincount(labels[part]).tolist() for part in parts] == [[7, 14], [1, 2], [2, 4]]


@pytest.mark.parametrize(
    ("labels", "sizes"),
    [
        ([0], (1, 0, 0)),
        ([0, 0], (1, 0, 1)),
        ([0, 0, 0], (1, 1, 1)),
        ([0, 1], (2, 0, 0)),
        ([0, 0, 1], (2, 0, 1)),
        ([0, 0, 1, 1, 2, 3, 4, 5, 6, 7], (8, 1, 1)),
    ],
)
def test_a_small_client_trains_first_then_tests_then_validates(labels: list[int], sizes: tuple[int, int, int]) -> None:
    (split,) = split_clients(one_client(np.array(labels)), np.array(labels))
    assert (len(split.train), len(split.validation), len(split.test)) == sizes


def test_a_seed_gives_the_same_split_and_another_seed_another() -> None:
    labels = np.arange(200) % 4
    splits = [split_clients(one_client(labels), labels, seed=seed)[0].test.tolist() for seed in (0, 0, 1)]
    assert splits[0] == splits[1] != splits[2]


def test_a_seed_that_is_no_whole_number_is_refused() -> None:
    labels = np.zeros(9, dtype=np.int64)
    with pytest.raises(DataError, match="The seed is -1"):
        split_clients(one_client(labels), labels, seed=-1)


@pytest.mark.parametrize(("validation", "test"), [(0.5, 0.5), (-0.1, 0.2), (0.1, -0.2), (float("nan"), 0.1)])
def test_fractions_that_leave_nothing_to_train_on_are_refused(validation: float, test: float) -> None:
    labels = np.zeros(9, dtype=np.int64)
    with pytest.raises(DataError, match="Fractions"):
        split_clients(one_client(labels), labels, validation=validation, test=test)


def test_splitting_with_the_labels_of_other_data_is_refused() -> None:
    with pytest.raises(DataError, match="does not match"):
        split_clients(one_client(np.zeros(9, dtype=np.int64)), np.zeros(8, dtype=np.int64))


def test_matched_test_samples_have_the_clients_label_proportions() -> None:
    labels, test_labels = np.arange(5000) % 10, np.arange(3000) % 10
    divided = dirichlet_clients(labels)
    counts = divided.label_counts(labels, 10)
    for row, chosen in zip(counts, matched_test(divided, labels, test_labels, samples=100), strict=True):
        assert len(chosen) == len(set(chosen.tolist())) == 100
        drawn = np.bincount(test_labels[chosen], minlength=10)
        assert np.abs(drawn - 100 * row / row.sum()).max() < 1


def test_too_few_test_samples_of_a_label_shrink_the_draw_and_keep_its_proportions() -> None:
    # The client has labels 3 : 1. Only 30 test samples of label 0 exist, so it gets 30 + 10.
    labels, test_labels = np.repeat([0, 1], [75, 25]), np.repeat([0, 1], [30, 500])
    (chosen,) = matched_test(one_client(labels), labels, test_labels, samples=100)
    assert np.bincount(test_labels[chosen]).tolist() == [30, 10]


def test_a_label_without_test_samples_is_left_out() -> None:
    labels, test_labels = np.array([0, 0, 1, 2]), np.array([0, 0, 2, 2, 2])
    (chosen,) = matched_test(one_client(labels), labels, test_labels, samples=3)
    assert np.bincount(test_labels[chosen]).tolist() == [2, 0, 1]


def test_a_client_that_the_test_set_knows_nothing_about_is_named() -> None:
    labels = np.array([0, 1])
    divided = Partition("made", 0, (np.array([0]), np.array([1])))
    with pytest.raises(DataError, match="client 1"):
        matched_test(divided, labels, np.array([0, 0]))


def test_no_test_samples_at_all_is_refused() -> None:
    labels = np.array([0, 1])
    with pytest.raises(DataError, match="at least 1"):
        matched_test(one_client(labels), labels, labels, samples=0)
