"""FedMAP: what is believed about masks, phases, capacities, submodels of any size, and what strangers may send."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from edgefl.errors import MaskError, SchemaError, WireFormatError
from edgefl.local_rules import ProbabilisticMasks, Sgd, TrainingInput, rule_of
from edgefl.local_rules.probabilistic_masks import Granularity, extract
from edgefl.masks import Mask, full_mask, gather, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import ClientUpdate, FedMAP, Model, Participant, PlannedTask, RoundContext, strategy_of
from edgefl.strategies.mask_posterior import (
    add_counts,
    check_counts,
    initial_belief,
    magnitude_belief,
    probabilities,
)
from edgefl.values import Budget, LocalWork
from edgefl.wire import Counts, Dense, Expected, Payload, Sparse
from examples.networks import cnn4
from tests.local_rules.quadratic import Quadratic, nth_batch
from tests.strategies.rounds import client_update, random_weights, slow_mean
from tests.values.samples import PROFILE, RESULT

WORK = LocalWork(epochs=1, batch_size=32)
BOTH = pytest.mark.parametrize("granularity", ["weight", "channel"])


def three_layers() -> ModelGraph:
    build = GraphBuilder("three", channels=6)
    build.linear("head", build.linear("b", build.linear("a", build.input, 16), 12), 4, head=True)
    return build.finish()


GRAPH = three_layers()
WEIGHTS = sum(GRAPH.tensor[f"{name}.weight"].size for name in ("a", "b", "head"))


def made(**settings: Any) -> FedMAP:
    strategy = strategy_of("fedmap", settings)
    assert isinstance(strategy, FedMAP)
    return strategy


def round_context(number: int, seed: int = 1) -> RoundContext:
    return RoundContext(number, 100, seed, WORK)


def device(name: str = "pi-4", **limits: Any) -> Participant:
    return Participant(name, PROFILE, Budget(**limits), 64)


def limited(granularity: str, share: float, name: str = "pi-4") -> Participant:
    """A device that may have this share of the model."""
    return device(name, **{"weight_density" if granularity == "weight" else "kept_fraction": share})


def believing(strategy: FedMAP, seed: int = 0, graph: ModelGraph = GRAPH) -> Model:
    """A model whose probabilities are all different."""
    model = strategy.begin(graph, random_weights(graph, seed))
    generator = np.random.default_rng(seed)
    state = {name: (1.5 + 9 * generator.random(array.shape)).astype(np.float32) for name, array in model.state.items()}
    return dataclasses.replace(model, state=state)


def counts(numbers: Mapping[str, Any], limit: int | None = None) -> dict[str, Payload]:
    arrays = {name: np.asarray(array, np.uint16) for name, array in numbers.items()}
    most = limit or max(1, *(int(array.max()) for array in arrays.values()))
    return {f"m/{name}": Counts.of(array, most) for name, array in arrays.items()}


def sent(model: Model, planned: PlannedTask, tensors: Mapping[str, Payload], **others: Any) -> ClientUpdate:
    return ClientUpdate("pi-4", planned.mask, planned.rule, 1, model.weights, RESULT, tensors, **others)


# Eq. 9


def test_counts_become_probabilities_as_by_hand() -> None:
    belief = initial_belief({"a": (3,), "b": (2,)}, 2.0)
    assert all((p == 0.5).all() for p in probabilities(belief).values())
    add_counts(belief, counts({"a": [2, 1, 0], "b": [2, 0]}), 1.0)  # two draws; three entries fell out on the way
    add_counts(belief, counts({"a": [1, 1, 1], "b": [1, 1]}), 1.0)  # a device of capacity 1
    assert belief["alpha/a"].tolist() == [5, 4, 3]
    assert belief["beta/a"].tolist() == [2, 3, 3]
    p = probabilities(belief)
    assert np.allclose(p["a"], [4 / 5, 3 / 5, 2 / 4])
    assert np.allclose(p["b"], [4 / 5, 2 / 4])
    add_counts(belief, counts({"a": [0, 0, 1], "b": [0, 3]}), 0.5)  # the largest of all arrays, and half a word
    assert belief["alpha/a"].tolist() == [5, 4, 3.5]
    assert belief["beta/a"].tolist() == [2.5, 3.5, 3.5]
    assert belief["beta/b"].tolist() == [2.5, 3]


def test_a_phase_adds_up_and_the_next_one_counts_anew() -> None:
    strategy = made(granularity="channel", mask_rounds=2, weight_rounds=1, prior=3.0)
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    (planned,) = strategy.plan(model, [device()], round_context(0)).values()
    ones = sent(model, planned, counts({"a": np.ones(16), "b": np.ones(12)}))
    alphas = []
    for number in (0, 1, 3, 4):
        model = strategy.combine(model, [ones, ones], round_context(number))
        alphas.append(float(model.state["alpha/a"][0]))
        assert float(model.state["beta/b"][0]) == 3
    assert alphas == [5, 7, 5, 7]
    # What devices learn from in the first round of a phase is what was known before it.
    p = strategy.plan(model, [device()], round_context(6))["pi-4"].extras["p/a"]
    assert np.allclose(p, (7 - 1) / (7 + 3 - 2))


def test_devices_of_a_mask_phase_share_one_body_of_probabilities() -> None:
    model = believing(made())
    planned_tasks = made().plan(model, [device("a"), limited("weight", 0.25, "b")], round_context(0))
    first, second = planned_tasks["a"], planned_tasks["b"]
    assert first.mask.digest == full_mask(GRAPH).digest
    assert all(first.extras[name] is second.extras[name] for name in first.extras)
    assert {name: array.shape for name, array in first.extras.items()} == {
        f"p/{name}.weight": GRAPH.tensor[f"{name}.weight"].shape for name in ("a", "b", "head")
    }


# Phases


def test_phases_alternate() -> None:
    strategy = made(mask_rounds=2, weight_rounds=3)
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    names = [strategy.plan(model, [device()], round_context(number))["pi-4"].rule.name for number in range(12)]
    mask, weight = ["probabilistic_masks"] * 2, ["sgd"] * 3
    assert names == (mask + weight) * 2 + mask


def test_first_come_rounds_of_weights_and_then_the_phases() -> None:
    strategy = made(first_weight_rounds=2, mask_rounds=1, weight_rounds=2)
    assert [number for number in range(12) if strategy.learns_masks(number)] == [2, 5, 8, 11]
    assert not any(made(first_weight_rounds=5, mask_rounds=0).learns_masks(number) for number in range(20))


def test_without_mask_rounds_devices_train_weights_alone_and_beliefs_stay() -> None:
    strategy = made(mask_rounds=0, weight_rounds=2)
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    assert not any(strategy.learns_masks(number) for number in range(6))
    task = strategy.plan(model, [device()], round_context(0))["pi-4"]
    assert task.rule.name == "sgd"
    update = client_update(task.mask, model.weights, random_weights(GRAPH, 1))
    after = strategy.combine(model, [update], round_context(0))
    assert after.state.keys() == model.state.keys()
    assert all(np.array_equal(after.state[name], model.state[name]) for name in model.state)


@BOTH
def test_the_settings_reach_the_devices(granularity: str) -> None:
    strategy = made(
        granularity=granularity, mask_rate=7, gradient="straight_through", max_draws=9, learning_rate=0.03, momentum=0.5
    )
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    planned_tasks = [
        strategy.plan(model, [limited(granularity, 0.25)], round_context(number))["pi-4"] for number in (0, 5)
    ]
    masking, training = (rule_of(planned.rule) for planned in planned_tasks)
    assert isinstance(masking, ProbabilisticMasks)
    assert (masking.learning_rate, masking.capacity, masking.max_draws) == (7, 0.25, 9)
    assert (masking.granularity.value, masking.gradient.value) == (granularity, "straight_through")
    assert isinstance(training, Sgd)
    assert training.descent == strategy.descent
    assert training.codec.value == ("sparse" if granularity == "weight" else "dense")
    unsaid = rule_of(made(granularity=granularity).plan(model, [device()], round_context(0))["pi-4"].rule)
    assert isinstance(unsaid, ProbabilisticMasks)
    assert unsaid.learning_rate == (100_000 if granularity == "weight" else 10_000)


# Capacities


def share(mask: Mask, granularity: str) -> float:
    if granularity == "channel":
        return mask.cost.parameters / GRAPH.parameters
    return sum(int(mask.held[name].sum()) for name in mask.held) / WEIGHTS if mask.held else 1.0


@BOTH
def test_every_device_gets_the_largest_capacity_that_fits_it(granularity: str) -> None:
    strategy = made(granularity=granularity, capacities="0.5, 1, 0.25")
    model = believing(strategy)
    devices = [limited(granularity, limit, str(limit)) for limit in (1.0, 0.9, 0.5, 0.3, 0.2)]
    planned_tasks = strategy.plan(model, devices, round_context(0))
    told = {name: planned.rule.settings["capacity"] for name, planned in planned_tasks.items()}
    assert told == {"1.0": 1, "0.9": 0.5, "0.5": 0.5, "0.3": 0.25}  # and none for the last
    parts = strategy.plan(model, devices, round_context(5))
    assert set(parts) == set(told)
    for name, planned in parts.items():
        assert 0 < share(planned.mask, granularity) <= float(told[name])
    assert parts["1.0"].mask.digest == full_mask(GRAPH).digest


@BOTH
def test_with_any_capacity_devices_get_nearly_all_that_fits(granularity: str) -> None:
    strategy = made(granularity=granularity, capacities="any")
    (planned,) = strategy.plan(believing(strategy), [limited(granularity, 0.4)], round_context(0)).values()
    assert planned.rule.settings["capacity"] == 25 / 64


def test_slow_devices_train_fewer_channels_and_no_submodel_takes_too_long() -> None:
    strategy = made(granularity="channel", capacities="any")
    graph = cnn4()
    model = believing(strategy, graph=graph)
    whole = strategy.plan(model, [device()], round_context(5))["pi-4"].predicted
    assert whole is not None
    limit = (whole.seconds or 0) / 3
    devices = [device(f"d{n}", round_seconds=limit) for n in range(4)]
    for number in (0, 5):
        for planned in strategy.plan(model, devices, round_context(number)).values():
            assert planned.predicted is not None
            assert limit / 3 < (planned.predicted.seconds or 0) <= limit
    # An engine works on whole arrays, however few of their weights are held.
    weights = made(granularity="weight", capacities="any")
    for number in (0, 5):
        assert weights.plan(believing(weights, graph=graph), devices, round_context(number)) == {}


def test_learning_masks_takes_the_memory_of_the_whole_model() -> None:
    strategy = made(granularity="channel", capacities="any")
    model = believing(strategy, graph=cnn4())
    masking, training = (
        strategy.plan(model, [device(kept_fraction=0.1)], round_context(number))["pi-4"].predicted for number in (0, 5)
    )
    assert masking is not None
    assert training is not None
    assert masking.peak_bytes is not None
    assert masking.peak_bytes > (training.peak_bytes or 0) + 0.8 * 4 * cnn4().parameters
    tight = device(kept_fraction=0.1, peak_bytes=masking.peak_bytes - 1)
    assert strategy.plan(model, [tight], round_context(0)) == {}
    assert set(strategy.plan(model, [tight], round_context(5))) == {"pi-4"}


@BOTH
def test_the_seed_and_the_device_decide_what_is_drawn(granularity: str) -> None:
    strategy = made(granularity=granularity, capacities="0.3")
    model = believing(strategy)
    devices = [limited(granularity, 0.3, f"d{n}") for n in range(4)]

    def digests(seed: int) -> list[str]:
        return [planned.mask.digest for planned in strategy.plan(model, devices, round_context(5, seed)).values()]

    assert digests(1) == digests(1)
    assert len(set(digests(1) + digests(2))) > 5
    top = made(granularity=granularity, capacities="0.3", drawing="top")
    assert len({planned.mask.digest for planned in top.plan(model, devices, round_context(5)).values()}) == 1


@BOTH
def test_the_first_submodels_are_drawn_whatever_is_believed(granularity: str) -> None:
    settings = {"granularity": granularity, "capacities": "0.3", "drawing": "top", "mask_rounds": 0}
    devices = [limited(granularity, 0.3, f"d{n}") for n in range(6)]
    strategy = made(first_weight_rounds=3, first_probabilities="magnitude", **settings)
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))

    def digests(number: int, rounds: int = 100) -> list[str]:
        planned_tasks = strategy.plan(model, devices, RoundContext(number, rounds, number, WORK))
        return [planned.mask.digest for planned in planned_tasks.values()]

    assert len(set(digests(0))) > 1
    assert digests(2) == [
        planned.mask.digest
        for planned in made(**{**settings, "drawing": "sample"})
        .plan(made(**settings).begin(GRAPH, model.weights), devices, RoundContext(2, 100, 2, WORK))
        .values()
    ]
    assert len(set(digests(3) + digests(4))) == 1
    ended = {
        planned.mask.digest for planned in strategy.personalise(model, devices, RoundContext(2, 2, 1, WORK)).values()
    }
    assert ended <= set(digests(3))


@BOTH
def test_the_same_submodels_are_the_most_probable_ones_in_all_rounds(granularity: str) -> None:
    """Also while all entries are equally probable."""
    strategy = made(granularity=granularity, capacities="0.3", drawing="top", mask_rounds=0)
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    masks = [
        strategy.plan(model, [limited(granularity, 0.3)], round_context(number, seed=number))["pi-4"].mask
        for number in range(3)
    ]
    assert len({mask.digest for mask in masks}) == 1
    smaller, *others = (strategy.extract(model, 0.2, seed) for seed in range(3))
    assert all(other.digest == smaller.digest for other in others)
    assert contains(masks[0], smaller)


# First probabilities


def test_ranks_become_probabilities_as_by_hand() -> None:
    belief = magnitude_belief({"a": np.array([[3.0, 0.5], [0.1, 3.0]]), "b": np.array([2.0])}, 3.0)
    p = probabilities(belief)
    assert np.allclose(p["a"], [[0.7, 0.3], [0.1, 0.9]])
    assert np.allclose(p["b"], [0.5])
    assert np.allclose(belief["alpha/a"] + belief["beta/a"], 6)
    assert {name: array.dtype for name, array in belief.items()} == dict.fromkeys(belief, np.dtype(np.float32))


def test_large_weights_are_probable_at_first_and_channels_within_their_group() -> None:
    weights = random_weights(GRAPH, 0)
    weights["b.weight"] *= np.float32(100)
    model = made(first_probabilities="magnitude").begin(GRAPH, weights)
    p = np.concatenate([array.reshape(-1) for array in probabilities(model.state).values()])
    sizes = np.concatenate([np.abs(weights[name]).reshape(-1) for name in probabilities(model.state)])
    assert (np.argsort(p) == np.argsort(sizes, kind="stable")).all()

    model = made(first_probabilities="magnitude", granularity="channel").begin(GRAPH, weights)
    for name, array in probabilities(model.state).items():
        squares = np.zeros(array.size)
        for span in GRAPH.group[name].spans:
            if weights[span.tensor].ndim > 1:
                others = tuple(axis for axis in range(2) if axis != span.axis)
                squares += np.square(weights[span.tensor], dtype=np.float64).sum(axis=others)
        assert np.allclose(array[np.argsort(squares)], (np.arange(array.size) + 0.5) / array.size)


@BOTH
def test_probabilities_follow_the_weights_until_the_first_rounds_are_over(granularity: str) -> None:
    strategy = made(
        granularity=granularity, first_weight_rounds=2, first_probabilities="magnitude", mask_rounds=1, weight_rounds=1
    )
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    for number in (0, 1, 3):
        new = random_weights(GRAPH, 10 + number)
        planned = strategy.plan(model, [device()], round_context(number))["pi-4"]
        codec = rule_of(planned.rule)
        assert isinstance(codec, Sgd)
        update = client_update(planned.mask, model.weights, new, codec=codec.codec)
        after = strategy.combine(model, [dataclasses.replace(update, rule=planned.rule)], round_context(number))
        expected = strategy.begin(GRAPH, after.weights).state if number < 2 else model.state
        assert all(np.array_equal(after.state[name], expected[name]) for name in expected)
        model = after


def test_a_mask_phase_counts_from_the_magnitude_that_weights_have_then() -> None:
    strategy = made(granularity="channel", first_weight_rounds=1, first_probabilities="magnitude", mask_rounds=2)
    model = believing(strategy)
    (planned,) = strategy.plan(model, [device()], round_context(1)).values()
    ones = sent(model, planned, counts({"a": np.ones(16), "b": np.ones(12)}))
    first = strategy.begin(GRAPH, model.weights).state
    for number, draws in ((1, 1), (2, 2), (8, 1)):  # five weight rounds between the phases
        model = strategy.combine(model, [ones], round_context(number))
        assert np.allclose(model.state["alpha/a"], first["alpha/a"] + draws)


# Submodels


def contains(outer: Mask, inner: Mask) -> bool:
    channels = all(np.isin(inner.kept[name], outer.kept[name]).all() for name in inner.kept)
    if not outer.held.keys() <= inner.held.keys():
        return False
    return channels and all((inner.held[name] <= where).all() for name, where in outer.held.items())


@BOTH
def test_a_size_that_was_never_trained_lies_between_its_neighbours(granularity: str) -> None:
    strategy = made(granularity=granularity)
    for model in (believing(strategy), strategy.begin(GRAPH, random_weights(GRAPH, 0))):  # and all equally probable
        sizes = [0.2, 0.25, 0.31, 0.5, 0.77, 1.0]
        found = [strategy.extract(model, size, 3) for size in sizes]
        for size, mask in zip(sizes, found, strict=True):
            assert 0.75 * size * GRAPH.parameters < mask.cost.parameters <= size * GRAPH.parameters
        for smaller, larger in itertools.pairwise(found):
            assert contains(larger, smaller)
    assert found[-1].digest == full_mask(GRAPH).digest


@BOTH
def test_a_sampled_submodel_is_small_enough_and_the_seed_decides(granularity: str) -> None:
    strategy = made(granularity=granularity, extraction="sample")
    model = believing(strategy)
    found = [strategy.extract(model, 0.4, seed) for seed in (1, 1, 2, 3, 4)]
    assert found[0].digest == found[1].digest
    assert len({mask.digest for mask in found}) > 2
    assert all(mask.cost.parameters <= 0.4 * GRAPH.parameters for mask in found)


@BOTH
def test_a_model_cannot_be_made_smaller_than_it_can_be(granularity: str) -> None:
    strategy = made(granularity=granularity)
    with pytest.raises(MaskError, match=r"norms and biases alone are|the smallest submodel has"):
        strategy.extract(believing(strategy), 0.01, 1)


@BOTH
def test_in_the_end_devices_tune_the_most_probable_submodel_of_their_capacity(granularity: str) -> None:
    strategy = made(granularity=granularity, fine_tune_epochs=2, capacities="1, 0.3")
    model = believing(strategy)
    last = RoundContext(100, 100, 1, WORK)
    planned_tasks = strategy.personalise(model, [limited(granularity, 0.3, "a"), limited(granularity, 0.3, "b")], last)
    assert {planned.rule.name for planned in planned_tasks.values()} == {"fine_tune"}
    assert planned_tasks["a"].mask.digest == planned_tasks["b"].mask.digest
    p = probabilities(model.state)
    mask = planned_tasks["a"].mask
    for name, array in p.items():
        inside = mask.held[name] if granularity == "weight" else np.isin(np.arange(array.size), mask.kept[name])
        others = np.concatenate([other.ravel() for other in p.values()])
        assert 0 < inside.sum() < inside.size
        assert array[inside].min() >= np.quantile(others, 0.4)
    assert 0.2 < share(mask, granularity) <= 0.3


# The weight phase


@BOTH
def test_weights_are_averaged_over_their_holders(granularity: str) -> None:
    strategy = made(granularity=granularity, capacities="1, 0.5, 0.25")
    model = believing(strategy)
    devices = [limited(granularity, limit, f"d{n}") for n, limit in enumerate((1.0, 0.5, 0.25, 0.25))]
    updates = []
    for number, (name, planned) in enumerate(strategy.plan(model, devices, round_context(5)).items()):
        new = {n: model.weights[n] + array for n, array in random_weights(GRAPH, 50 + number).items()}
        codec = strategy.uplink.rule.settings["codec"]
        update = client_update(planned.mask, model.weights, new, device=name, codec=Sgd(codec=codec).codec)  # type: ignore[arg-type]
        updates.append(dataclasses.replace(update, rule=planned.rule))
        strategy.check(updates[-1])
        assert strategy.movement(updates[-1]) > 0
    if granularity == "weight":
        assert isinstance(updates[-1].tensors["a.weight"], Sparse)
    exact, _ = slow_mean(model, updates)  # all have the same number of samples
    found = strategy.combine(model, updates, round_context(5))
    for name, array in exact.items():
        assert np.allclose(found.weights[name], array, atol=1e-5), name
    assert found.state is model.state
    half = made(granularity=granularity, server_rate=0.5).combine(model, updates, round_context(5))
    for name, array in exact.items():
        assert np.allclose(half.weights[name], (array + model.weights[name]) / 2, atol=1e-5), name


def test_devices_count_alike_whatever_they_say_of_their_samples() -> None:
    strategy, whole = made(), full_mask(GRAPH)
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    updates = [
        client_update(whole, model.weights, {n: a + step for n, a in model.weights.items()}, samples=samples)
        for step, samples in ((np.float32(1), 10), (np.float32(3), 990))
    ]
    found = strategy.combine(model, updates, round_context(5)).weights
    assert all(np.allclose(array, model.weights[name] + 2, atol=1e-5) for name, array in found.items())


# The whole way


def a_round(
    strategy: FedMAP, model: Model, devices: list[Participant], at: RoundContext, steps: int
) -> list[ClientUpdate]:
    found = []
    for name, planned in strategy.plan(model, devices, at).items():
        run, rule = Quadratic(GRAPH), rule_of(planned.rule)
        seed = at.seed + int(name)
        part = TrainingInput(
            planned.mask, gather(planned.mask, model.weights), seed, steps=steps, extras=planned.extras
        )
        state = rule.begin(part)
        for _ in range(steps):
            rule.step(part, state, nth_batch(0), run)
        update = rule.finish(part, state, nth_batch(0), run)
        found.append(ClientUpdate(name, planned.mask, planned.rule, seed, model.weights, RESULT, update.tensors))
        strategy.check(found[-1])
    return found


@BOTH
def test_masks_are_learned_that_lose_less_than_chance_would(granularity: str) -> None:
    """A weight is worth having where it is near the wave that the loss wants; the weights themselves stay."""
    strategy = made(granularity=granularity, mask_rate=20, mask_rounds=12, capacities="1, 0.5, 0.25")
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    before = model
    devices = [limited(granularity, (1.0, 0.5, 0.25)[n % 3], str(n)) for n in range(9)]
    for number in range(12):
        found = a_round(strategy, model, devices, round_context(number, 10 * number), 8)
        model = strategy.combine(model, found, round_context(number))
    assert model.weights is before.weights

    def loss(mask: Mask) -> float:
        whole = {t.name: np.zeros(t.shape, np.float32) for t in GRAPH.tensors}
        for name, array in gather(mask, model.weights).items():
            whole[name][mask.index(name)] = array
        return Quadratic(GRAPH)(whole, nth_batch(0)).loss

    kind = Granularity(granularity)
    half = probabilities(before.state)
    chance = [loss(extract(full_mask(GRAPH), half, 0.4, seed, granularity=kind)) for seed in range(20)]
    assert len(set(chance)) > 10
    assert loss(strategy.extract(model, 0.4, 0)) < min(chance)


@BOTH
def test_rounds_of_both_phases_bring_the_model_to_its_goal(granularity: str) -> None:
    strategy = made(
        granularity=granularity, mask_rounds=1, weight_rounds=2, capacities="1, 0.5, 0.25", learning_rate=0.3
    )
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    devices = [limited(granularity, (1.0, 0.5, 0.25)[n], str(n)) for n in range(3)]
    losses = [Quadratic(GRAPH)(model.weights, nth_batch(0)).loss]
    for number in range(9):
        found = a_round(strategy, model, devices, round_context(number, 10 * number), 2)
        model = strategy.combine(model, found, round_context(number))
        losses.append(Quadratic(GRAPH)(model.weights, nth_batch(0)).loss)
    assert [losses[n + 1] == losses[n] for n in range(9)] == [True, False, False] * 3
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.2 * losses[0]


def test_a_buffered_round_takes_counts_and_values() -> None:
    strategy = made(granularity="channel", mask_rounds=1, weight_rounds=1)
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    masking, training = (strategy.plan(model, [device()], round_context(number))["pi-4"] for number in (0, 1))
    old = sent(model, masking, counts({"a": np.ones(16), "b": np.ones(12)}), trust=0.5)
    new = client_update(training.mask, model.weights, {n: a + np.float32(2) for n, a in model.weights.items()})
    found = strategy.combine(model, [old, dataclasses.replace(new, rule=training.rule)], round_context(1))
    assert found.state["alpha/a"].tolist() == [2.5] * 16
    assert np.allclose(found.weights["a.weight"], model.weights["a.weight"] + 2, atol=1e-6)
    assert strategy.combine(model, [], round_context(0)) is model


# What strangers send


def refused(strategy: FedMAP, planned: PlannedTask, tensors: Mapping[str, Payload], words: str, **others: Any) -> None:
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    with pytest.raises(WireFormatError, match=words):
        strategy.check(sent(model, planned, tensors, **others))


def test_hostile_counts_are_refused() -> None:
    strategy = made(granularity="channel", max_draws=8)
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    planned = strategy.plan(model, [limited("channel", 0.3)], round_context(0))["pi-4"]
    one = {"a": np.ones(16, int), "b": np.ones(12, int)}
    for limit in (1, 9):
        good = sent(model, planned, counts(one, limit))
        strategy.check(good)
        assert strategy.movement(good) == 0
    refused(strategy, planned, counts(one, 10), "go up to 10, but there are at most 9 draws")
    refused(strategy, planned, counts({"a": np.ones(16)}) | counts({"b": 2 * np.ones(12)}), "go up to 1, 2")
    refused(strategy, planned, {}, "missing")
    refused(strategy, planned, counts({"a": np.ones(16)}), "missing")
    refused(strategy, planned, counts({**one, "c": np.ones(3)}), "not expected")
    refused(strategy, planned, counts({**one, "a": np.ones((16, 1))}), "shape")
    refused(strategy, planned, counts({**one, "a": np.ones(15)}), "shape")
    refused(strategy, planned, counts(one) | {"m/a": Dense(np.ones(16, np.float32))}, "codec|dense|comes as")
    refused(strategy, planned, {n: Dense(a) for n, a in model.weights.items()}, "not expected|missing")
    refused(strategy, planned, counts(one), "changes no mask", next_mask=leading_channels(GRAPH, 0.5))
    everything = strategy.plan(model, [device()], round_context(0))["pi-4"]
    strategy.check(sent(model, everything, counts(one)))
    refused(strategy, everything, counts(one, 2), "go up to 2, but there are at most 1 draws")


def test_counts_for_new_values_and_values_elsewhere_are_refused() -> None:
    strategy = made(granularity="weight", capacities="0.3")
    model = believing(strategy)
    planned = strategy.plan(model, [limited("weight", 0.3)], round_context(5))["pi-4"]
    shapes = {name: array.shape for name, array in probabilities(model.state).items()}
    refused(strategy, planned, counts({name: np.ones(shape) for name, shape in shapes.items()}), "expected|missing")
    good = client_update(planned.mask, model.weights, model.weights, codec=Sgd(codec="sparse").codec)  # type: ignore[arg-type]
    strategy.check(dataclasses.replace(good, rule=planned.rule))
    elsewhere = Sparse.where(model.weights["a.weight"], ~planned.mask.held["a.weight"])
    refused(strategy, planned, {**good.tensors, "a.weight": elsewhere}, "does not have exactly the entries")
    dense = Dense(model.weights["a.weight"])
    refused(strategy, planned, {**good.tensors, "a.weight": dense}, "a.weight")


def test_no_number_of_entries_makes_a_limit_out_of_nothing() -> None:
    with pytest.raises(WireFormatError, match="missing"):
        check_counts({}, {"m/a": Expected((3,), "counts")}, 5)
    check_counts(counts({"a": np.zeros(3)}, 1), {"m/a": Expected((3,), "counts")}, 5)
    belief = initial_belief({"a": (3,)}, 2.0)
    add_counts(belief, counts({"a": np.zeros(3)}, 1), 1.0)
    assert all((p == 0.5).all() for p in probabilities(belief).values())


# Settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sent": "eden"}, r"'settings.sent' is 'eden', but FedMAP's devices send counts in a mask phase"),
        ({"capacities": "1, 2"}, r"'settings.capacities' must be a list of fractions above 0"),
        ({"capacities": ""}, r"'settings.capacities' must be a list of fractions above 0"),
        ({"capacities": "1, half"}, r"'settings.capacities' must be a list of fractions above 0"),
        ({"capacities": "nan"}, r"'settings.capacities' must be a list of fractions above 0"),
        ({"prior": 1}, r"'settings.prior' must be a number above 1"),
        ({"first_weight_rounds": -1}, r"'settings.first_weight_rounds' must be a count"),
        ({"first_probabilities": "third"}, r"'settings.first_probabilities' must be one of 'half', 'magnitude'"),
        ({"mask_rounds": -1}, r"'settings.mask_rounds' must be a count"),
        ({"weight_rounds": 0}, r"'settings.weight_rounds' must be a count"),
        ({"max_draws": 0}, r"'settings.max_draws' must be a number of draws"),
        ({"granularity": "layer"}, r"'settings.granularity' must be one of 'weight', 'channel'"),
        ({"width": "full"}, r"'settings.width' is not a known field"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        strategy_of("fedmap", settings)


def test_a_model_without_channels_to_cut_is_refused() -> None:
    build = GraphBuilder("one", channels=3)
    build.linear("head", build.input, 4, head=True)
    graph = build.finish()
    with pytest.raises(MaskError, match="no entries for a mask of granularity 'channel'"):
        made(granularity="channel").begin(graph, random_weights(graph, 0))
    made(granularity="weight").begin(graph, random_weights(graph, 0))
