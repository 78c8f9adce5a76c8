"""What a claim of samples counts for: nothing changes among plausible ones, and a liar counts for ten devices."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import SchemaError
from edgefl.masks import full_mask
from edgefl.strategies import AggregationMethod, AggregationSettings, FedAvg, FedNova, Model, Overlap, UpdateWeighting
from edgefl.strategies.aggregation import aggregate
from edgefl.strategies.averaging_strategy import MappedUpdates
from edgefl.strategies.running_mean import RunningMean
from edgefl.strategies.sample_counts import claims_of, sample_cap
from edgefl.strategies.strategy import ClientUpdate
from edgefl.values import LARGEST_INTEGER
from examples.networks import cnn4
from tests.strategies.rounds import ROUND_CONTEXT, client_update, random_weights, rounds

GRAPH = cnn4()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))
LIAR = LARGEST_INTEGER


def moved(by: float, samples: int = 10, trust: float = 1.0) -> ClientUpdate:
    new = {name: (array + by).astype(array.dtype) for name, array in MODEL.weights.items()}
    return client_update(full_mask(GRAPH), MODEL.weights, new, samples=samples, trust=trust)


def change(strategy: FedAvg | FedNova, made: list[ClientUpdate]) -> float:
    found = strategy.combine(MODEL, made, ROUND_CONTEXT)
    return float(np.mean([(found.weights[name] - MODEL.weights[name]).mean() for name in MODEL.weights]))


@pytest.mark.parametrize("claim", [LIAR, 2**40, 10_000])
def test_a_claim_counts_for_ten_median_ones_at_most(claim: int) -> None:
    made = [moved(1, samples=100) for _ in range(9)] + [moved(0, samples=claim)]
    assert change(FedAvg(), made) == pytest.approx(9 / 19, rel=1e-4)


def test_in_buffered_mode_the_claim_is_bounded_and_then_discounted_for_its_age() -> None:
    made = [moved(1, samples=100) for _ in range(9)] + [moved(0, samples=LIAR, trust=0.5)]
    assert change(FedAvg(), made) == pytest.approx(9 / 14, rel=1e-4)


def test_of_two_devices_one_does_not_vouch_for_itself() -> None:
    assert change(FedAvg(), [moved(1, samples=100), moved(0, samples=LIAR)]) == pytest.approx(1 / 11, rel=1e-4)


def test_the_bound_is_a_setting() -> None:
    made = [moved(1, samples=100), moved(1, samples=100), moved(0, samples=LIAR)]
    assert change(FedAvg(averaging=AggregationSettings(most_times_median=2)), made) == pytest.approx(0.5, rel=1e-4)
    with pytest.raises(SchemaError, match="1 or more"):
        AggregationSettings(most_times_median=0.5)


@pytest.mark.parametrize("weighing", UpdateWeighting)
def test_in_a_clipped_mean_every_update_counts_the_same(weighing: UpdateWeighting) -> None:
    settings = AggregationSettings(average=AggregationMethod.CLIPPED, clip_update_norm=1e9, weighing=weighing)
    made = [moved(1, samples=100) for _ in range(9)] + [moved(0, samples=LIAR)]
    assert change(FedAvg(averaging=settings), made) == pytest.approx(0.9, rel=1e-4)


def test_fednova_bounds_the_claim_too() -> None:
    made = [moved(1, samples=100) for _ in range(9)] + [moved(0, samples=LIAR)]
    assert change(FedNova(), made) > 0.4


@given(rounds())
def test_plausible_claims_count_as_they_are_to_the_bit(case: tuple[Model, list[ClientUpdate]]) -> None:
    model, made = case
    claims = [update.result.samples for update in made]
    cap = sample_cap(claims, 10)
    made = [
        dataclasses.replace(update, result=dataclasses.replace(update.result, samples=int(min(claim, cap))))
        for update, claim in zip(made, claims, strict=True)
    ]
    mean = RunningMean(model, Overlap.HOLDERS)
    for update in made:
        mean.add(update, update.trust * update.result.samples)
    expected, found = mean.result(), aggregate(AggregationSettings(), model, made)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], strict=True)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=15), st.data())
def test_fewer_than_half_of_the_devices_cannot_raise_the_bound(honest: list[int], data: st.DataObject) -> None:
    lies = data.draw(st.lists(st.integers(0, LIAR), max_size=len(honest)))
    assert sample_cap(honest + lies, 10) <= 10 * max(honest)


def test_claims_are_known_without_loading_transformed_updates_again() -> None:
    def never(update: ClientUpdate) -> ClientUpdate:
        raise AssertionError("loaded")

    assert claims_of(MappedUpdates(never, [moved(1, samples=3), moved(1, samples=4)])) == [3, 4]
    assert sample_cap([], 10) == sample_cap([0, 0], 10) == float("inf")
