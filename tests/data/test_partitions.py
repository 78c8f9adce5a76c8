from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.data import Partition, Samples, parse_scheme, partition
from edgefl.errors import DataError
from tests.data.labelled import balanced, labelled, samples_of

QUICK = settings(max_examples=150, deadline=None)


SCHEMES = st.sampled_from(
    [
        *("iid", "owner", "dirichlet:0.001", "dirichlet:0.3", "dirichlet:1000000"),
        *("labels:1", "labels:2", "labels:5", "two-class:0.01", "two-class:0.5", "two-class:1"),
    ]
)


@QUICK
@given(samples=labelled(), scheme=SCHEMES, clients=st.integers(1, 40), seed=st.integers(0, 2**63))
def test_every_scheme_gives_every_sample_to_exactly_one_client_or_says_why_not(
    samples: Samples, scheme: str, clients: int, seed: int
) -> None:
    divided = None
    with suppress(DataError):
        divided = partition(samples, scheme, clients=clients, seed=seed)
    if divided is None:
        assert clients > len(samples) or not scheme.startswith(("iid", "dirichlet"))
        return
    assert len(divided) == clients
    assert all(len(client) > 0 and (np.diff(client) > 0).all() for client in divided.clients)
    assert np.sort(np.concatenate(divided.clients)).tolist() == list(range(len(samples)))
    assert divided.digest() == partition(samples, scheme, clients=clients, seed=seed).digest()


@pytest.mark.parametrize("scheme", ["iid", "dirichlet:0.3", "labels:3", "two-class:0.5"])
def test_another_seed_gives_other_clients(scheme: str) -> None:
    digests = {partition(balanced(10, 40), scheme, clients=20, seed=seed).digest() for seed in range(5)}
    assert len(digests) == 5


# These were computed once. They rest on numpy's PCG64 Generator: should one change, published results can no longer
# be repeated from their seeds.
GOLDEN = {
    "iid": "805c3c400bfb4fb0",
    "dirichlet:0.3": "1d129142e26362c3",
    "labels:3": "109d0f5551b173af",
    "owner": "823b5e70ba91c13b",
    "two-class:0.5": "fa01844e57931b28",
}


@pytest.mark.parametrize("scheme", list(GOLDEN))
def test_a_seed_still_gives_the_clients_that_it_gave(scheme: str) -> None:
    labels = np.repeat(np.arange(10), 37)
    divided = partition(samples_of(labels, np.arange(370) % 23), scheme, clients=20, seed=42)
    assert divided.digest()[:16] == GOLDEN[scheme]


@pytest.mark.parametrize(
    ("scheme", "clients", "words"),
    [
        ("iid", 41, "from 1 to 40"),
        ("iid", 0, "from 1 to 40"),
        ("iid", -3, "from 1 to 40"),
        ("labels:5", 4, "1 to 4"),
        ("labels:1", 3, "at least 4 clients, or 2 labels"),
        ("labels:2", 40, "at most 1 labels"),
        ("owner", 5, "no owners"),
    ],
)
def test_an_impossible_division_says_the_limits(scheme: str, clients: int, words: str) -> None:
    with pytest.raises(DataError, match=words):
        partition(balanced(4, 10), scheme, clients=clients)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None])
def test_a_seed_that_is_no_whole_number_from_0_up_is_refused(seed: Any) -> None:
    with pytest.raises(DataError, match=f"The seed is {seed!r}"):
        partition(balanced(2, 5), clients=2, seed=seed)


@pytest.mark.parametrize("clients", ["3", 2.0, [2]])
def test_a_number_of_clients_that_is_no_whole_number_is_refused(clients: Any) -> None:
    with pytest.raises(DataError, match="Use a whole number from 1 to 10"):
        partition(balanced(2, 5), clients=clients)


def test_numpy_integers_are_whole_numbers() -> None:
    assert len(partition(balanced(2, 5), clients=np.int64(3), seed=np.uint8(1))) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("random", "iid, dirichlet:ALPHA, labels:K, owner, two-class:RATE"),
        ("", "iid, dirichlet:ALPHA, labels:K, owner, two-class:RATE"),
        ("random:3", "iid, dirichlet:ALPHA"),
        ("random:x", "iid, dirichlet:ALPHA"),
        ("iid:3", "Write just iid"),
        ("dirichlet", "needs a number. Use .* such as dirichlet:0.3"),
        ("dirichlet:", "such as dirichlet:0.3"),
        ("dirichlet:0", "from 0.001 to 1e[+]06"),
        ("dirichlet:-1", "from 0.001"),
        ("dirichlet:nan", "from 0.001"),
        ("dirichlet:inf", "from 0.001"),
        ("dirichlet:lots", "'lots'"),
        ("labels:0", "from 1 to 65536"),
        ("labels:1e300", r"number 1e\+300\. Use a whole number from 1 to 65536"),
        ("labels:2.5", "whole number"),
        ("two-class:0", "above 0 and at most 1"),
        ("two-class:1.5", "above 0 and at most 1"),
    ],
)
def test_a_scheme_that_cannot_be_says_what_can(text: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        parse_scheme(text)


@pytest.mark.parametrize("text", ["iid", "dirichlet:0.3", "dirichlet:1", "labels:3", "owner", "two-class:0.25"])
def test_a_scheme_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_scheme(f"  {text.upper()} ")) == text


@pytest.mark.parametrize("clients", [[], [[0, 1], []], [[0, 1], [1, 2]], [[0], [2]], [[-1, 0]]])
def test_a_partition_that_does_not_use_every_sample_once_is_refused(clients: list[list[int]]) -> None:
    with pytest.raises(DataError):
        Partition("made", 0, tuple(np.array(client, dtype=np.int64) for client in clients))


def test_labels_of_other_data_are_refused() -> None:
    divided = partition(balanced(2, 5), clients=2)
    with pytest.raises(DataError, match="10 samples does not match 3 labels"):
        divided.label_counts(np.zeros(3, dtype=np.int64), 2)
    with pytest.raises(DataError, match="up to 7"):
        divided.label_counts(np.full(10, 7), 2)
