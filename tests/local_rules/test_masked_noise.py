"""FedMRN's masks: their chances, their bits on the wire, and the noise that both ends make."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import WireFormatError
from edgefl.local_rules import Batch, Descent, MaskedNoise, State, StepResult, TrainingInput, noise_of, rebuild
from edgefl.local_rules.descent import BLOCK, weight_tensors
from edgefl.local_rules.masked_noise import FloatArray, Masking, MaskKind, NoiseDistribution
from edgefl.masks import Mask, Weights, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.noise import derive, normal, symmetric
from edgefl.wire import Bits, Body, BodyKind, Dense, decode, encode, measure
from tests.local_rules.quadratic import Quadratic, assert_frozen_stay, assert_resumes, nth_batch, part_of, train
from tests.random_models import masked_models

ENTRIES = 3 * BLOCK + 5
KINDS = list(MaskKind)
DISTRIBUTIONS = list(NoiseDistribution)


def wide() -> ModelGraph:
    build = GraphBuilder("wide", channels=ENTRIES)
    build.linear("head", build.input, 1, bias=False, head=True)
    return build.finish()


class Watched:
    """A quadratic step that keeps the weights that the forward pass saw."""

    def __init__(self, graph: ModelGraph) -> None:
        self.run, self.seen = Quadratic(graph), [np.zeros(0)]

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        self.seen.append(weights["head.weight"].copy())
        return self.run(weights, batch)


def state_with_ratio(rule: MaskedNoise, part: TrainingInput, ratio: float) -> State:
    """A state in which every update is so many times its noise."""
    state = rule.begin(part)
    state.memory["update:head.weight"][...] = np.float32(ratio) * state.memory["noise:head.weight"]
    return state


def forward(rule: MaskedNoise, ratio: float, *, step: int, steps: int) -> FloatArray:
    """What multiplies the noise in the forward pass of one step."""
    graph = wide()
    zero = {"head.weight": np.zeros((1, ENTRIES), np.float32)}
    part = TrainingInput(full_mask(graph), zero, seed=7, steps=steps)
    state = state_with_ratio(rule, part, ratio)
    state.steps = step - 1
    run = Watched(graph)
    noise = state.memory["noise:head.weight"]
    rule.step(part, state, nth_batch(0), run)
    return np.asarray(run.seen[-1] / noise, np.float32).reshape(-1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_expectation_of_a_mask_is_the_update(kind: MaskKind, ratio: float, distribution: NoiseDistribution) -> None:
    for signed_ratio in {ratio, -ratio} if kind is MaskKind.SIGNED else {ratio}:
        factor = forward(MaskedNoise(masks=kind, distribution=distribution), signed_ratio, step=5, steps=5)
        values = {0.0, 1.0} if kind is MaskKind.BINARY else {-1.0, 1.0}
        assert set(np.unique(factor)) <= values
        # Five standard deviations of a mean of so many draws, at most 1/2 or 1 each.
        assert abs(factor.mean() - signed_ratio) < 5 / ENTRIES**0.5


@pytest.mark.parametrize(("kind", "ratio", "value"), [("binary", 3.0, 1), ("binary", -2.0, 0), ("signed", -4.0, -1)])
def test_an_update_beyond_the_noise_is_masked_for_certain(kind: str, ratio: float, value: int) -> None:
    assert set(forward(MaskedNoise(masks=MaskKind(kind)), ratio, step=2, steps=2)) == {value}


@pytest.mark.parametrize("kind", KINDS)
def test_the_share_of_masked_weights_grows_with_the_steps(kind: MaskKind) -> None:
    rule = MaskedNoise(masks=kind)
    for step in (1, 4, 9):
        factor = forward(rule, 0.25, step=step, steps=10)
        left = np.isclose(factor, 0.25, rtol=1e-6)
        assert abs(left.mean() - (1 - step / 10)) < 2.5 / ENTRIES**0.5
        masked = factor[~left]
        assert set(np.unique(masked)) == ({0.0, 1.0} if kind is MaskKind.BINARY else {-1.0, 1.0})
        assert abs(masked.mean() - 0.25) < 5 / masked.size**0.5


def test_an_update_is_clipped_in_the_forward_pass_alone() -> None:
    part = TrainingInput(full_mask(wide()), {"head.weight": np.zeros((1, ENTRIES), np.float32)}, seed=1, steps=1000)
    rule, run = MaskedNoise(descent=Descent(learning_rate=1e-6)), Watched(wide())
    state = state_with_ratio(rule, part, 30.0)
    before = state.memory["update:head.weight"].copy()
    rule.step(part, state, nth_batch(0), run)
    noise = np.abs(state.memory["noise:head.weight"])
    assert (np.abs(run.seen[-1]) <= noise).all()
    assert np.allclose(state.memory["update:head.weight"], before, atol=1e-5)


def test_the_ablations_leave_out_what_they_name() -> None:
    early = {"step": 1, "steps": 1000}
    assert set(forward(MaskedNoise(masking=Masking.STOCHASTIC), 0.5, **early)) == {0.0, 1.0}
    assert set(forward(MaskedNoise(masking=Masking.DETERMINISTIC), 0.01, **early)) == {1.0}
    assert set(forward(MaskedNoise(masking=Masking.DETERMINISTIC), -0.01, **early)) == {0.0}
    signed = MaskedNoise(masking=Masking.DETERMINISTIC, masks=MaskKind.SIGNED)
    assert set(forward(signed, -0.01, **early)) == {-1.0}
    half = forward(MaskedNoise(masking=Masking.PROGRESSIVE), 0.25, step=1, steps=2)
    assert abs((half == 1).mean() - 0.5) < 2.5 / ENTRIES**0.5
    assert np.allclose(half[half != 1], 0.25)


@given(masked_models(), st.sampled_from(KINDS), st.sampled_from(DISTRIBUTIONS), st.integers(0, 2**64 - 1))
def test_the_coordinator_rebuilds_the_update_bit_for_bit(
    model: tuple[ModelGraph, Mask], kind: MaskKind, distribution: NoiseDistribution, seed: int
) -> None:
    graph, mask = model
    part = TrainingInput(mask, part_of(mask, 1).weights, seed, steps=3)
    before = {name: array.copy() for name, array in part.weights.items()}
    state, update = train(MaskedNoise(masks=kind, distribution=distribution), part, Quadratic(graph), 3)
    assert all(np.array_equal(part.weights[name], array) for name, array in before.items())
    assert_frozen_stay(part, update)
    arrived = decode(encode(Body(BodyKind.UPDATE, update.tensors, seed))).tensors
    assert set(arrived) == set(mask.trained_tensors)
    for name, payload in arrived.items():
        if name in weight_tensors(mask):
            assert isinstance(payload, Bits)
            held = mask.held.get(name)
            noise = rebuild(payload, seed, name, masks=kind, distribution=distribution, held=held)
            assert np.array_equal(before[name] + noise, update.weights[name])
        else:
            assert isinstance(payload, Dense)
            assert np.array_equal(payload.array, update.weights[name])
    for name, held in mask.held.items():
        assert not update.weights[name][~held].any()
        assert not state.memory.get(f"update:{name}", np.zeros(held.shape))[~held].any()


@given(masked_models(), st.sampled_from(KINDS), st.integers(0, 4))
def test_a_round_goes_on_after_a_crash_with_the_same_draws(
    model: tuple[ModelGraph, Mask], kind: MaskKind, stop: int
) -> None:
    rule = MaskedNoise(masks=kind, descent=Descent(momentum=0.9))
    assert_resumes(rule, part_of(model[1], 2, steps=5), Quadratic(model[0]), steps=5, stop=stop)


def test_every_step_and_every_tensor_has_draws_of_its_own(small: ModelGraph) -> None:
    part = part_of(full_mask(small), 5, steps=4)
    rule = MaskedNoise(masks=MaskKind.SIGNED, masking=Masking.STOCHASTIC, descent=Descent(learning_rate=1e-12))
    state, seen = rule.begin(part), set()
    for number in range(4):
        rule.step(part, state, nth_batch(number), Quadratic(small))
        for name in weight_tensors(part.mask):
            signs = (state.weights[name] > part.weights[name]) == (state.memory[f"noise:{name}"] > 0)
            seen.add(signs.reshape(-1)[:18].tobytes())
    assert len(seen) == 4 * 3


def test_noise_is_uniform_within_its_bound_and_never_nearer_to_zero_than_allowed() -> None:
    noise = noise_of(3, "a", (100_000,), 0.01)
    assert noise.dtype == np.float32
    assert noise.min() >= -0.01
    assert noise.max() < 0.01
    counts, _ = np.histogram(noise, bins=10, range=(-0.01, 0.01))
    assert abs(counts - 10_000).max() < 500
    tiny = noise_of(3, "a", (100_000,), 2e-8)
    assert np.abs(tiny).min() == np.float32(1e-8)
    assert (tiny == np.float32(1e-8)).mean() > 0.4
    assert not np.array_equal(noise, noise_of(4, "a", (100_000,), 0.01))
    assert not np.array_equal(noise, noise_of(3, "b", (100_000,), 0.01))


def test_the_other_distributions_are_those_of_the_paper() -> None:
    gaussian = noise_of(3, "a", (100, 1000), 0.01, NoiseDistribution.GAUSSIAN)
    assert gaussian.shape == (100, 1000)
    assert gaussian.dtype == np.float32
    assert gaussian.std() == pytest.approx(0.01, rel=0.01)  # a is the standard deviation, not the variance
    assert np.array_equal(gaussian[0], normal(derive(3, "noise", "a"), 0, 1000, 0.01))
    bernoulli = noise_of(3, "a", (100_000,), 0.01, NoiseDistribution.BERNOULLI)
    assert set(bernoulli.tolist()) == {np.float32(0.01), -np.float32(0.01)}
    assert np.array_equal(bernoulli > 0, symmetric(derive(3, "noise", "a"), 0, 100_000, 0.01) >= 0)


def test_noise_of_any_distribution_is_never_nearer_to_zero_than_allowed() -> None:
    tiny = noise_of(3, "a", (100_000,), 2e-8, NoiseDistribution.GAUSSIAN)
    assert np.abs(tiny).min() == np.float32(1e-8)
    assert (tiny == np.float32(1e-8)).mean() == pytest.approx(0.383, abs=0.01)  # within half a deviation of zero
    assert (noise_of(3, "a", (9,), 5e-9, NoiseDistribution.BERNOULLI) == np.float32(1e-8)).all()


def test_bounds_are_the_papers_unless_they_are_given() -> None:
    assert MaskedNoise().noise_bound == 0.01
    assert MaskedNoise(masks=MaskKind.SIGNED).noise_bound == 0.005
    assert MaskedNoise(bound=0.002).noise_bound == 0.002


def test_a_weight_is_one_bit_on_the_wire() -> None:
    part = TrainingInput(full_mask(wide()), {"head.weight": np.zeros((1, ENTRIES), np.float32)}, seed=1)
    _, update = train(MaskedNoise(), part, Quadratic(part.mask.graph), 1)
    size = measure(encode(Body(BodyKind.UPDATE, update.tensors, part.seed)))
    assert size.tensor_bytes == {"head.weight": -(-ENTRIES // 8)}
    bits = update.tensors["head.weight"]
    assert isinstance(bits, Bits)
    assert update.metrics == {"ones": pytest.approx(bits.ones() / ENTRIES)}


def test_training_that_diverged_is_not_sent_as_bits(small: ModelGraph) -> None:
    rule, part = MaskedNoise(), part_of(full_mask(small), 1)
    state = rule.begin(part)
    state.memory["update:conv1.weight"][0] = np.nan
    with pytest.raises(WireFormatError, match=r"conv1\.weight"):
        rule.finish(part, state, nth_batch(0), Quadratic(small))


def test_the_proximal_term_pulls_updates_to_zero(small: ModelGraph) -> None:
    part = part_of(full_mask(small), 1, steps=1)
    rates = {}
    for proximal in (0.0, 0.5):
        rule = MaskedNoise(descent=Descent(learning_rate=1.0, proximal=proximal))
        state = rule.begin(part)
        state.memory["update:conv1.weight"][...] = 4
        rule.step(part, state, nth_batch(0), Quadratic(small))
        rates[proximal] = state.memory["update:conv1.weight"]
    assert np.allclose(rates[0.0] - rates[0.5], 2, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_that_is_not_held_is_zero_in_every_forward_pass_and_has_no_bit(
    small: ModelGraph, kind: MaskKind
) -> None:
    held = np.arange(72).reshape(4, 2, 3, 3) % 3 == 0
    part = part_of(Mask.of(small, held={"conv2.weight": held}), 1, steps=3)
    rule, run = MaskedNoise(masks=kind), Quadratic(small)
    state = rule.begin(part)
    for number in range(3):
        rule.step(part, state, nth_batch(number), run)
        assert not state.weights["conv2.weight"][~held].any()
        assert (state.weights["conv2.weight"] != part.weights["conv2.weight"])[held].any() or number == 0
    update = rule.finish(part, state, nth_batch(3), run)
    payload = update.tensors["conv2.weight"]
    assert isinstance(payload, Bits)
    assert not payload.to_bool()[~held].any()
    assert payload.to_bool()[held].any()
    assert not update.weights["conv2.weight"][~held].any()
