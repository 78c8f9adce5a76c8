"""FedPM's masks: draws, gradients, Adam, and random weights that both ends make."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import MaskError, WireFormatError
from edgefl.local_rules import Batch, Descent, SampledMasks, Sgd, StepResult, TrainingInput
from edgefl.local_rules.descent import weight_tensors
from edgefl.local_rules.mask_generation import sigmoid
from edgefl.local_rules.sampled_masks import draw_mask, random_weights
from edgefl.masks import Array, Mask, Weights, full_mask, gather
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.noise import bits, derive, unit
from edgefl.wire import Bits, Body, BodyKind, Dense, decode, encode
from tests.local_rules.quadratic import Quadratic, assert_frozen_stay, assert_resumes, nth_batch, part_of, train
from tests.random_models import masked_models

SEED = 2**64 - 3


def with_probabilities(part: TrainingInput, p: float | None = None) -> TrainingInput:
    """A part with the extras that the rule reads: one probability for all entries, or random ones."""
    generator = np.random.default_rng(5)
    extras: dict[str, Array] = {}
    for name in weight_tensors(part.mask):
        shape = part.mask.shapes[name]
        extras[f"p/{name}"] = (generator.random(shape) if p is None else np.full(shape, p)).astype(np.float32)
    return TrainingInput(part.mask, part.weights, part.seed, steps=part.steps, extras=extras)


def slow_weight(graph: ModelGraph, tensor: str, index: tuple[int, ...], seed: int, gain: float) -> float:
    """The weight of one coordinate of the whole model, from the words of the rule's docstring."""
    shape = graph.tensor[tensor].shape
    place = int(np.ravel_multi_index(index, shape))
    word = int(bits(derive(seed, "weights", tensor), place // 64, 1)[0])
    return (1 if word >> (place % 64) & 1 else -1) * gain / math.sqrt(math.prod(shape[1:]))


@given(masked_models(), st.integers(0, 2**53 - 1), st.floats(0.1, 9))
def test_a_part_has_its_coordinates_of_the_random_weights(
    model: tuple[ModelGraph, Mask], seed: int, gain: float
) -> None:
    graph, mask = model
    for name in weight_tensors(full_mask(graph)):
        shape = graph.tensor[name].shape
        whole = np.array([slow_weight(graph, name, i, seed, gain) for i in np.ndindex(shape)]).reshape(shape)
        found = random_weights(mask, name, seed, gain)
        assert found.dtype == np.float32
        assert np.allclose(found, gather(mask, {name: whole}, [name])[name], rtol=1e-6)


def test_weights_have_both_signs_and_the_size_of_their_fan_in(small: ModelGraph) -> None:
    part = with_probabilities(part_of(full_mask(small), 1))
    state = SampledMasks().begin(part)
    kernel = state.memory["weight:conv2.weight"]  # four kernels that read two channels of 3 x 3
    assert set(np.abs(kernel).ravel()) == {np.float32(math.e / math.sqrt(18))}
    assert 20 < (kernel > 0).sum() < 52
    assert not np.array_equal(kernel, SampledMasks(weight_seed=1).begin(part).memory["weight:conv2.weight"])


@pytest.mark.parametrize("p", [0.0, 0.2, 0.75, 1.0])
def test_an_entry_is_kept_with_its_probability(p: float) -> None:
    flags = draw_mask(np.full((300, 200), p, np.float32), 9)
    assert abs(flags.mean() - p) < 5 * math.sqrt(p * (1 - p) / flags.size) + 1e-12


def test_every_step_sees_another_draw_of_the_random_weights(small: ModelGraph) -> None:
    part = with_probabilities(part_of(full_mask(small), 1, steps=4), 0.5)
    rule, seen = SampledMasks(score_rate=1e-9), set()

    def run(weights: Weights, batch: Batch) -> StepResult:
        for name in weight_tensors(part.mask):
            w = random_weights(part.mask, name, 0, math.e)
            assert bool(np.all((weights[name] == w) | (weights[name] == 0)))
            seen.add((weights[name] != 0).tobytes())
        return Quadratic(small)(weights, batch)

    state = rule.begin(part)
    for number in range(4):
        rule.step(part, state, nth_batch(number), run)
    rule.finish(part, state, nth_batch(4), run)
    assert len(seen) == 4 * 3


def one_weight() -> ModelGraph:
    build = GraphBuilder("one", channels=1)
    build.linear("head", build.input, 1, head=True)
    return build.finish()


def test_scores_move_as_adam_says_by_hand() -> None:
    """One weight, given gradients: the formulas of the rule's docstring and of Adam, in plain numbers."""
    mask = full_mask(one_weight())
    part = TrainingInput(
        mask,
        {"head.weight": np.zeros((1, 1), np.float32), "head.bias": np.zeros(1, np.float32)},
        SEED,
        extras={"p/head.weight": np.full((1, 1), 0.7, np.float32)},
        steps=3,
    )
    rule = SampledMasks(score_rate=0.1, weight_gain=2.0, descent=Descent(learning_rate=0.5))
    state = rule.begin(part)
    w = slow_weight(mask.graph, "head.weight", (0, 0), 0, 2.0)
    s, first, second, bias = math.log(0.7 / 0.3), 0.0, 0.0, 0.0
    for step, gradient in enumerate((0.3, -2.0, 0.01), start=1):
        p = 1 / (1 + math.exp(-s))
        kept = float(unit(derive(SEED, "draw", step - 1, "head.weight"), 0, 1)[0]) < p
        seen: list[float] = []

        def run(weights: Weights, batch: Batch, gradient: float = gradient, seen: list[float] = seen) -> StepResult:
            seen.append(float(weights["head.weight"][0, 0]))
            given = {"head.weight": np.full((1, 1), gradient, np.float32), "head.bias": np.ones(1, np.float32)}
            return StepResult(0.0, np.ones(1, np.bool_), given)

        rule.step(part, state, nth_batch(step), run)
        assert seen == [pytest.approx(w if kept else 0.0)]
        slope = gradient * w * p * (1 - p)
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        s -= 0.1 * (first / (1 - 0.9**step)) / (math.sqrt(second / (1 - 0.999**step)) + 1e-8)
        bias -= 0.5
        assert float(state.memory["score:head.weight"][0, 0]) == pytest.approx(s, rel=1e-5)
    update = rule.finish(part, state, nth_batch(4), Quadratic(mask.graph))
    p = 1 / (1 + math.exp(-s))
    kept = float(unit(derive(SEED, "draw", 3, "head.weight"), 0, 1)[0]) < p
    payload = update.tensors["head.weight"]
    assert isinstance(payload, Bits)
    assert payload.to_bool().tolist() == [[kept]]
    assert update.weights["head.weight"][0, 0] == pytest.approx(w if kept else 0.0)
    assert update.weights["head.bias"][0] == pytest.approx(bias)
    assert update.metrics == {"ones": float(kept), "mean_probability": pytest.approx(p, rel=1e-5)}


@given(masked_models(), st.integers(0, 2**64 - 1))
def test_bits_are_the_devices_own_model_and_nothing_else_changes(model: tuple[ModelGraph, Mask], seed: int) -> None:
    graph, mask = model
    part = with_probabilities(TrainingInput(mask, part_of(mask, 1).weights, seed, steps=3))
    rule = SampledMasks(weight_seed=3, weight_gain=1.5)
    before = {name: array.copy() for name, array in part.weights.items()}
    _, update = train(rule, part, Quadratic(graph), 3)
    assert all(np.array_equal(part.weights[name], array) for name, array in before.items())
    assert_frozen_stay(part, update)
    arrived = decode(encode(Body(BodyKind.UPDATE, update.tensors, seed))).tensors
    assert set(arrived) == set(mask.trained_tensors)
    for name, payload in arrived.items():
        if name in weight_tensors(mask):
            assert isinstance(payload, Bits)
            w = random_weights(mask, name, 3, 1.5)
            assert np.array_equal(update.weights[name], np.where(payload.to_bool(), w, 0))
            assert not payload.to_bool()[~mask.held.get(name, np.ones(w.shape, np.bool_))].any()
        else:
            assert isinstance(payload, Dense)
            assert np.array_equal(payload.array, update.weights[name])


@given(masked_models(), st.integers(0, 3))
def test_a_round_goes_on_after_a_crash(model: tuple[ModelGraph, Mask], stop: int) -> None:
    part = with_probabilities(part_of(model[1], 2, steps=4))
    assert_resumes(SampledMasks(descent=Descent(momentum=0.9)), part, Quadratic(model[0]), steps=4, stop=stop)


def test_everything_else_is_trained_as_usual(small: ModelGraph) -> None:
    part = with_probabilities(part_of(full_mask(small), 3))
    plain = train(Sgd(), part, Quadratic(small), 3)[1]
    found = train(SampledMasks(), part, Quadratic(small), 3)[1]
    others = set(small.tensor) - set(weight_tensors(part.mask))
    assert others
    for name in others:  # this loss has no products, so the masks do not matter to them
        assert np.array_equal(found.weights[name], plain.weights[name])


def test_weights_that_help_become_probable() -> None:
    """Where the goal is the random weight itself, keeping it is right; where it is its opposite, leaving it out."""
    build = GraphBuilder("row", channels=64)
    build.linear("head", build.input, 1, bias=False, head=True)
    graph = build.finish()
    mask = full_mask(graph)
    w = random_weights(mask, "head.weight", 0, math.e)
    good = np.arange(64).reshape(1, 64) % 2 == 0
    part = with_probabilities(TrainingInput(mask, {"head.weight": np.zeros_like(w)}, 4, steps=60), 0.5)

    def run(weights: Weights, batch: Batch) -> StepResult:
        goal = np.where(good, w, -w)
        return StepResult(0.0, np.ones(1, np.bool_), {"head.weight": weights["head.weight"] - goal})

    rule = SampledMasks()
    state = rule.begin(part)
    for number in range(60):
        rule.step(part, state, nth_batch(number), run)
    p = sigmoid(state.memory["score:head.weight"])
    assert p[good].min() > 0.8
    assert p[~good].max() < 0.2


def test_training_that_diverged_is_not_sent_as_bits(small: ModelGraph) -> None:
    rule, part = SampledMasks(), with_probabilities(part_of(full_mask(small), 1))
    state = rule.begin(part)
    state.memory["score:conv1.weight"][0] = np.nan
    with pytest.raises(WireFormatError, match=r"conv1\.weight"):
        rule.finish(part, state, nth_batch(0), Quadratic(small))


def test_wrong_probabilities_are_refused(small: ModelGraph) -> None:
    part = with_probabilities(part_of(full_mask(small), 1))
    fewer = {key: array for key, array in part.extras.items() if "conv1" not in key}
    wrong = {**part.extras, "p/conv1.weight": np.full((2, 1, 3, 3), 1.5, np.float32)}
    for extras, message in ((fewer, "was sent probabilities of conv2.weight"), (wrong, "not all from 0 to 1")):
        with pytest.raises(MaskError, match=message):
            SampledMasks().begin(TrainingInput(part.mask, part.weights, 1, extras=extras))
