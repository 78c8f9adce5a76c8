"""FedMAP's mask phase on a device: what is learnt, what is sent, and submodels from probabilities."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import MaskError, WireFormatError
from edgefl.local_rules import Batch, StepResult, TrainingInput
from edgefl.local_rules.erk import maskable_tensors
from edgefl.local_rules.mask_generation import Gradient, generate, logit, sigmoid, slopes
from edgefl.local_rules.maskable_channels import MaskableChannels
from edgefl.local_rules.maskable_weights import MaskableWeights
from edgefl.local_rules.probabilistic_masks import Extraction, Granularity, ProbabilisticMasks, extract
from edgefl.local_rules.submodel_channels import prunable_groups
from edgefl.masks import Mask, Weights, freeze, full_mask, gather
from edgefl.model_graph import GraphBuilder, ModelGraph, TensorRole
from edgefl.noise import derive
from edgefl.wire import Body, BodyKind, Counts, decode, encode
from tests.local_rules.quadratic import (
    Quadratic,
    assert_resumes,
    memory_of_a_round,
    nth_batch,
    part_of,
    random_weights,
    train,
    wide_model,
)
from tests.random_models import masked_models


def three_layers() -> ModelGraph:
    build = GraphBuilder("three", channels=3)
    build.linear("head", build.linear("b", build.linear("a", build.input, 6), 4), 2, head=True)
    return build.finish()


def names_of(mask: Mask, granularity: Granularity) -> dict[str, tuple[int, ...]]:
    if granularity is Granularity.WEIGHT:
        return {name: mask.shapes[name] for name in maskable_tensors(mask)}
    return {group.name: (mask.widths[group.name],) for group in prunable_groups(mask)}


def part_with(mask: Mask, granularity: Granularity, seed: int, p: float | None = None, **others: Any) -> TrainingInput:
    generator = np.random.default_rng(seed)
    extras = {
        f"p/{name}": (generator.random(shape) if p is None else np.full(shape, p)).astype(np.float32)
        for name, shape in names_of(mask, granularity).items()
    }
    return part_of(mask, seed, extras=extras, **others)


def test_a_step_moves_s_down_its_gradient() -> None:
    part = part_with(full_mask(three_layers()), Granularity.WEIGHT, 3)
    rule = ProbabilisticMasks(learning_rate=0.5, capacity=0.4)
    run = Quadratic(part.mask.graph)
    state = rule.begin(part)
    before = {name: array.copy() for name, array in state.memory.items()}
    rule.step(part, state, nth_batch(0), run)
    entries = MaskableWeights(part.mask, maskable_tensors(part.mask), 0.4)
    p = {name: sigmoid(logit(part.extras[f"p/{name}"], 1e-4)) for name in maskable_tensors(part.mask)}
    drawn = generate(entries, p, derive(part.seed, "mask", 0), max_draws=64, shrink=True)
    masked = {name: part.weights[name] * drawn.flags[name] for name in p}
    gradients = run({**part.weights, **masked}, nth_batch(0)).gradients
    for name, slope in slopes(drawn, p, Gradient.PAPER).items():
        expected = before[f"s:{name}"] - 0.5 * gradients[name] * part.weights[name] * slope
        assert np.allclose(state.memory[f"s:{name}"], expected, rtol=1e-5, atol=1e-6)
        assert not np.array_equal(state.memory[f"s:{name}"], before[f"s:{name}"])


def test_counts_are_sent_and_read_back() -> None:
    part = part_with(full_mask(three_layers()), Granularity.WEIGHT, 3)
    _, update = train(ProbabilisticMasks(capacity=0.3), part, Quadratic(part.mask.graph), 2)
    body = decode(encode(Body(BodyKind.UPDATE, update.tensors)))
    numbers = {name: payload.to_array() for name, payload in body.tensors.items() if isinstance(payload, Counts)}
    assert set(numbers) == {"m/a.weight", "m/b.weight", "m/head.weight"}
    top = max(int(array.max()) for array in numbers.values())
    assert top == update.metrics["draws"] > 1
    kept = sum(int((array == top).sum()) for array in numbers.values())
    assert 0 < kept <= 0.3 * (18 + 24 + 8)
    assert update.mask is part.mask
    assert all(np.array_equal(update.weights[name], array) for name, array in part.weights.items())
    assert {"learning_rate", "capacity", "kept_fraction", "fallbacks", "mean_probability"} <= set(update.metrics)


@pytest.mark.parametrize("granularity", list(Granularity))
def test_a_device_of_capacity_one_sends_all_ones_and_still_learns(granularity: Granularity) -> None:
    part = part_with(full_mask(three_layers()), granularity, 3, p=0.5)
    state, update = train(ProbabilisticMasks(granularity=granularity), part, Quadratic(part.mask.graph), 2)
    for payload in update.tensors.values():
        assert isinstance(payload, Counts)
        assert payload.to_array().all()
        assert payload.limit == 1
    assert all(array.any() for name, array in state.memory.items() if name.startswith("s:"))


def test_frozen_tensors_are_drawn_but_never_learnt() -> None:
    mask = freeze(full_mask(three_layers()), ["b"])
    part = part_with(mask, Granularity.WEIGHT, 3, p=0.5)
    run = Quadratic(mask.graph, trained=("a.weight", "a.bias", "head.weight", "head.bias"))
    state, update = train(ProbabilisticMasks(capacity=0.5), part, run, 3)
    assert not state.memory["s:b.weight"].any()
    assert state.memory["s:a.weight"].any()
    assert "m/b.weight" in update.tensors


def test_the_engine_sees_cut_models_when_channels_are_masked() -> None:
    part = part_with(full_mask(three_layers()), Granularity.CHANNEL, 3, p=0.5)
    run = Quadratic(part.mask.graph)
    train(ProbabilisticMasks(granularity=Granularity.CHANNEL, capacity=0.5), part, run, 6)
    limit = 0.5 * part.mask.graph.parameters
    assert len(run.shapes_seen) == 6
    for shapes in run.shapes_seen:
        assert sum(int(np.prod(shape)) for shape in shapes.values()) <= limit
        assert shapes["b.weight"][1] == shapes["a.weight"][0]


def feasible_capacity(mask: Mask) -> float:
    """A capacity that the smallest submodel fits, with some room."""
    if mask.held:
        return 1.0
    smallest = {g.name: mask.kept[g.name][: g.multiple_of] for g in prunable_groups(mask)}
    least = Mask(mask.graph, mask.trained, {**mask.kept, **smallest}, {}).cost.parameters
    return min(1.0, least / mask.cost.parameters + 0.2)


class Product:
    """A loss that is no sum over single weights: half the square of the sum of sines of all of them."""

    def __init__(self, graph: ModelGraph) -> None:
        self.names = [tensor.name for tensor in graph.tensors if tensor.role is not TensorRole.STATISTIC]

    def loss(self, weights: Weights) -> float:
        return 0.5 * sum(float(np.sin(weights[name].astype(np.float64)).sum()) for name in self.names) ** 2

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        total = sum(float(np.sin(weights[name].astype(np.float64)).sum()) for name in self.names)
        gradients = {name: (total * np.cos(weights[name])).astype(np.float32) for name in self.names}
        return StepResult(self.loss(weights), np.ones(1, np.bool_), gradients)


@given(masked_models(held=False), st.integers(0, 99))
def test_the_gradient_of_a_channel_is_the_derivative_by_its_switch(found: tuple[ModelGraph, Mask], seed: int) -> None:
    graph, mask = found
    part = part_with(mask, Granularity.CHANNEL, seed, p=0.7)
    names = tuple(group.name for group in prunable_groups(mask))
    entries = MaskableChannels(mask, names, feasible_capacity(mask))
    p = {name: part.extras[f"p/{name}"] for name in names}
    drawn = generate(entries, p, seed, max_draws=8, shrink=True)
    run = Product(graph)
    _, found_gradients = entries.probe(part.weights, drawn, nth_batch(0), run)
    cut = entries.mask(drawn.candidates)
    switches = {name: drawn.flags[name][where].astype(np.float64) for name, where in drawn.candidates.items()}
    weights = gather(cut, random_weights(graph, seed))
    for name in names:
        assert not found_gradients[name][~drawn.candidates[name]].any()
        for number, place in enumerate(np.flatnonzero(drawn.candidates[name])):
            ends = []
            for change in (1e-4, -1e-4):
                moved = {**switches, name: switches[name] + change * (np.arange(switches[name].size) == number)}
                ends.append(run.loss(switched(cut, weights, moved)))
            assert found_gradients[name][place] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=2e-2, abs=2e-2)


def switched(mask: Mask, weights: Weights, switches: dict[str, Any]) -> dict[str, Any]:
    """Every entry times the switches of all channels that it belongs to, one by one."""
    result = {name: array.astype(np.float64) for name, array in weights.items()}
    for group in mask.graph.groups:
        for span in group.spans if group.name in switches else ():
            if mask.graph.tensor[span.tensor].role is TensorRole.STATISTIC:
                continue
            selected = np.arange(mask.graph.tensor[span.tensor].shape[span.axis])
            selected = selected[mask.selectors[span.tensor][span.axis]].tolist()
            array = np.moveaxis(result[span.tensor], span.axis, 0)
            for channel, switch in zip(mask.kept[group.name], switches[group.name], strict=True):
                for stack in range(span.stacks):
                    for j in range(span.repeat):
                        index = span.offset + stack * span.stride + int(channel) * span.repeat + j
                        array[selected.index(index)] *= switch
    return result


@settings(max_examples=40)
@given(
    masked_models(),
    st.integers(0, 99),
    st.integers(0, 2),
    st.sampled_from(list(Granularity)),
    st.sampled_from(list(Gradient)),
)
def test_a_resumed_round_ends_like_an_uninterrupted_one(
    found: tuple[ModelGraph, Mask], seed: int, stop: int, granularity: Granularity, gradient: Gradient
) -> None:
    graph, mask = found
    part = part_with(mask, granularity, seed)
    capacity = feasible_capacity(mask) if granularity is Granularity.CHANNEL else 0.6
    rule = ProbabilisticMasks(capacity=capacity, granularity=granularity, gradient=gradient, learning_rate=0.3)
    assert_resumes(rule, part, Quadratic(graph), steps=3, stop=stop)


def test_each_step_draws_anew_and_the_seed_decides() -> None:
    part = part_with(full_mask(three_layers()), Granularity.WEIGHT, 3, p=0.5)
    seen: list[bytes] = []

    def run(weights: Weights, batch: Batch) -> StepResult:
        seen.append(weights["a.weight"].tobytes())
        return Quadratic(part.mask.graph)(weights, batch)

    rule = ProbabilisticMasks(capacity=0.5, learning_rate=1e-9)
    for seed in (1, 1, 2):
        state = rule.begin(part)
        again = TrainingInput(part.mask, part.weights, seed, extras=part.extras)
        for number in range(3):
            rule.step(again, state, nth_batch(number), run)
    assert seen[:3] == seen[3:6]
    assert len(set(seen)) == 6


@pytest.mark.parametrize("granularity", list(Granularity))
def test_the_top_entries_use_the_capacity_and_the_best_probabilities(granularity: Granularity) -> None:
    mask = full_mask(three_layers())
    part = part_with(mask, granularity, 9)
    p = {name.removeprefix("p/"): array for name, array in part.extras.items()}
    small = extract(mask, p, 0.5, seed=1, granularity=granularity)
    if granularity is Granularity.WEIGHT:
        inside = np.concatenate([p[name][small.held[name]] for name in p])
        outside = np.concatenate([p[name][~small.held[name]] for name in p])
        assert inside.size == 25
    else:
        kept = {name: np.isin(mask.kept[name], small.kept[name]) for name in p}
        inside = np.concatenate([p[name][kept[name]] for name in p])
        outside = np.concatenate([p[name][~kept[name]] for name in p])
        assert small.cost.parameters <= 0.5 * mask.cost.parameters
    assert inside.min() > outside.max()
    assert extract(mask, p, 1.0, seed=1, granularity=granularity).digest == mask.digest


@pytest.mark.parametrize("granularity", list(Granularity))
def test_a_sampled_submodel_fits_and_depends_on_the_seed(granularity: Granularity) -> None:
    mask = full_mask(three_layers())
    p = {name: np.full(shape, 0.6, np.float32) for name, shape in names_of(mask, granularity).items()}
    made = [
        extract(mask, p, 0.5, seed, granularity=granularity, method=Extraction.SAMPLE) for seed in (1, 1, 2, 3, 4, 5)
    ]
    assert made[0].digest == made[1].digest
    assert len({each.digest for each in made}) > 2
    share = 0.5 * mask.graph.parameters if granularity is Granularity.CHANNEL else 25 + 6 + 4 + 2
    assert all(each.cost.parameters <= share for each in made)


def test_probabilities_that_do_not_belong_to_the_model_are_refused() -> None:
    mask = full_mask(three_layers())
    rule = ProbabilisticMasks()
    for extras, words in (
        ({}, "probabilities of nothing"),
        ({"p/a.bias": np.ones(6, np.float32)}, "a.bias"),
        ({"p/a.weight": np.ones((3, 6), np.float32)}, r"shape \(3, 6\)"),
        ({"p/a.weight": np.full((6, 3), 1.5, np.float32)}, "not all from 0 to 1"),
        ({"p/a.weight": np.full((6, 3), np.nan, np.float32)}, "not all from 0 to 1"),
    ):
        with pytest.raises(MaskError, match=words):
            rule.begin(part_of(mask, 0, extras=extras))


def test_training_that_diverged_is_not_hidden_behind_counts() -> None:
    part = part_with(full_mask(three_layers()), Granularity.WEIGHT, 3)
    rule = ProbabilisticMasks()
    state = rule.begin(part)
    state.memory["s:a.weight"][0, 0] = np.nan
    with pytest.raises(WireFormatError, match="not finite"):
        rule.finish(part, state, nth_batch(0), Quadratic(part.mask.graph))


@pytest.mark.parametrize("granularity", list(Granularity))
@pytest.mark.parametrize(("capacity", "p"), [(0.5, 0.9), (0.5, 1.0), (1.0, 0.9)])
def test_the_memory_that_a_planner_is_told_is_enough_and_not_far_too_much(
    granularity: Granularity, capacity: float, p: float
) -> None:
    mask = full_mask(wide_model())
    rule = ProbabilisticMasks(granularity=granularity, capacity=capacity, max_draws=9)
    part = part_with(mask, granularity, 0, p=p)
    peak = memory_of_a_round(rule, part) + sum(array.nbytes for array in part.extras.values())
    assert 0.45 * rule.extra_bytes(mask) < peak < 1.05 * rule.extra_bytes(mask)
