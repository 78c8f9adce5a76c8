"""Medians and trimmed means against a slow loop over coordinates."""

import dataclasses
import statistics
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.masks import Array, full_mask, random_channels
from edgefl.strategies import ClientUpdate, Model
from edgefl.strategies.order_statistics import OrderStatistic, aggregate_by_order, median, trimmed_mean
from examples.networks import cnn4
from tests.strategies.rounds import changes_of, client_update, random_weights, rounds


def slow(model: Model, made: list[ClientUpdate], middle: Callable[[list[float]], float]) -> dict[str, Array]:
    exact = {}
    counted = [one for one in made if one.result.samples]
    for name, now in model.weights.items():
        exact[name] = now.astype(np.float64)
        found = [changes_of(model, one, name) for one in counted]
        for coordinate in np.ndindex(now.shape):
            held = [change[coordinate] for change in found if coordinate in change]
            if held:
                exact[name][coordinate] += middle(held)
    return exact


def slow_trimmed(trim: float) -> Callable[[list[float]], float]:
    def middle(values: list[float]) -> float:
        cut = int(trim * len(values))
        return statistics.fmean(sorted(values)[cut : len(values) - cut])

    return middle


MIDDLES: dict[str, tuple[OrderStatistic, Callable[[list[float]], float]]] = {
    "median": (median, statistics.median),
    "trimmed by a third": (trimmed_mean(0.34), slow_trimmed(0.34)),
    "not trimmed": (trimmed_mean(0.0), slow_trimmed(0.0)),
}


@pytest.mark.parametrize("name", MIDDLES)
@settings(max_examples=15)
@given(case=rounds(), memory=st.sampled_from([1, 400, 10**6]))
def test_the_middle_of_the_holders_whatever_the_memory(
    name: str, case: tuple[Model, list[ClientUpdate]], memory: int
) -> None:
    model, made = case
    fast, obvious = MIDDLES[name]
    found, exact = aggregate_by_order(model, made, fast, memory), slow(model, made, obvious)
    for tensor, array in found.items():
        assert (array.dtype, array.shape) == (np.dtype(np.float32), model.weights[tensor].shape)
        largest = max([abs(change) for one in made for change in changes_of(model, one, tensor).values()], default=0)
        assert np.allclose(array, exact[tensor], rtol=1e-6, atol=1e-6 * (1 + largest))


def moved_by(model: Model, values: list[float], samples: int = 10) -> list[ClientUpdate]:
    mask = full_mask(model.graph)
    moved = [{name: array + np.float32(value) for name, array in model.weights.items()} for value in values]
    return [client_update(mask, model.weights, new, samples=samples) for new in moved]


@pytest.mark.parametrize(
    ("middle", "moved"), [(median, 3), (trimmed_mean(0.2), 8 / 3), (trimmed_mean(0.19), 10_008 / 5)]
)
def test_liars_are_sorted_out_however_many_samples_they_claim(middle: OrderStatistic, moved: float) -> None:
    graph = cnn4()
    model = Model(graph, {name: np.zeros_like(array) for name, array in random_weights(graph, 0).items()})
    made = moved_by(model, [1, 3, 4, 10_000, 0])
    made[3] = dataclasses.replace(made[3], result=dataclasses.replace(made[3].result, samples=10**9))
    found = aggregate_by_order(model, made, middle, 2**20)
    assert all(np.allclose(array, moved) for array in found.values())


def test_updates_without_weight_do_not_count() -> None:
    graph = cnn4()
    model = Model(graph, random_weights(graph, 0))
    made = moved_by(model, [1, 2, 3]) + moved_by(model, [50, 60], samples=0)
    found = aggregate_by_order(model, made, median, 2**20)
    assert all(np.allclose(array, model.weights[name] + 2, atol=1e-5) for name, array in found.items())
    assert all(np.array_equal(a, model.weights[n]) for n, a in aggregate_by_order(model, [], median, 2**20).items())


class Loaded:
    """Updates that are made when their turn comes, and how often that was."""

    def __init__(self, model: Model, count: int) -> None:
        self.model, self.count, self.passes = model, count, 0
        self.mask = random_channels(model.graph, 0.5, np.random.default_rng(0))

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[ClientUpdate]:
        self.passes += 1
        for number in range(self.count):
            moved = {name: array + np.float32(number) for name, array in self.model.weights.items()}
            yield client_update(self.mask, self.model.weights, moved)


def test_memory_is_bounded_and_bought_with_passes() -> None:
    model = Model(cnn4(), random_weights(cnn4(), 0))
    size = sum(array.nbytes for array in model.weights.values())
    found, peaks = [], []
    for models in (20, 2):
        loaded = Loaded(model, 20)
        tracemalloc.start()
        found.append(aggregate_by_order(model, loaded, median, models * size))
        peaks.append(tracemalloc.get_traced_memory()[1] / size)
        tracemalloc.stop()
        assert 20 / models <= loaded.passes <= 20 / models + 2
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])
    # 18 models less are sorted at a time; the next model and an update on its way are needed either way.
    assert peaks[1] < peaks[0] - 16
    assert peaks[1] < 2 + 4
