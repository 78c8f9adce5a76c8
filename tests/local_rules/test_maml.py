"""Per-FedAvg on a device, against a slow transcription of its Algorithm 1, and by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.local_rules import Batch, Descent, Maml, StepResult, TrainingInput, rule_of, trained_parameters
from edgefl.local_rules.maml import MetaGradient
from edgefl.masks import Mask, Weights, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph, TensorRole
from edgefl.values import RuleSettings
from edgefl.wire import Dense
from tests.local_rules.quadratic import Quadratic, assert_resumes, nth_batch, part_of, saved, train
from tests.random_models import masked_models

FO, HF = MetaGradient.FIRST_ORDER, MetaGradient.HESSIAN_FREE
W = "head.weight"


def line() -> ModelGraph:
    build = GraphBuilder("line", channels=1)
    build.linear("head", build.input, 1, bias=False, head=True)
    return build.finish()


def towards(weights: Weights, batch: Batch) -> StepResult:
    """The loss (w - x)^2: gradient 2 (w - x), Hessian 2."""
    gradient = 2 * (weights[W] - batch.x[0])
    return StepResult(float(((weights[W] - batch.x[0]) ** 2).sum()), np.ones(1, np.bool_), {W: gradient})


def quartic(weights: Weights, batch: Batch) -> StepResult:
    """The loss x w^4 / 4: gradient x w^3, Hessian 3 x w^2."""
    return StepResult(0.0, np.ones(1, np.bool_), {W: batch.x[0] * weights[W] ** 3})


def after(rule: Maml, run: Any, steps: int, w: float = 4.0) -> float:
    part = TrainingInput(full_mask(line()), {W: np.array([[w]], np.float32)}, seed=0, steps=steps)
    _, update = train(rule, part, run, steps)
    payload = update.tensors[W]
    assert isinstance(payload, Dense)
    assert np.array_equal(payload.array, update.weights[W])
    return float(payload.array[0, 0])


def test_first_order_by_hand() -> None:
    """alpha 0.25, beta 0.5, D = 1, D' = 2: w' = 4 - 0.25 * 6 = 2.5, g = 2 * 0.5 = 1, w = 4 - 0.5 * 1."""
    rule = Maml(descent=Descent(learning_rate=0.5), variant=FO, inner_rate=0.25)
    assert after(rule, towards, 2) == pytest.approx(3.5)


def test_hessian_free_by_hand() -> None:
    """The same, and (I - alpha H) g = (1 - 0.25 * 2) * 1 = 0.5: w = 4 - 0.5 * 0.5."""
    rule = Maml(descent=Descent(learning_rate=0.5), variant=HF, inner_rate=0.25, difference=0.01)
    assert after(rule, towards, 3) == pytest.approx(3.75, rel=1e-5)


def test_the_hessian_is_that_of_the_third_batch_at_w() -> None:
    """x = 1, 2, 3 and w = 1: w' = 1 - 0.1 = 0.9, g = 2 * 0.729, H = 9: w = 1 - 0.1 * (1 - 0.9) * 1.458."""
    rule = Maml(descent=Descent(learning_rate=0.1), variant=HF, inner_rate=0.1, difference=0.003)
    assert after(rule, quartic, 3, 1.0) == pytest.approx(1 - 0.1 * 0.1 * 1.458, abs=1e-5)


@pytest.mark.parametrize("variant", MetaGradient)
@pytest.mark.parametrize("steps", range(1, 7))
def test_a_round_that_ends_within_an_update_completes_it_with_the_extra_batch(
    variant: MetaGradient, steps: int
) -> None:
    """`train` gives the batch after the last as the extra one; it stands in for all that are missing."""
    rule = Maml(descent=Descent(learning_rate=0.05), variant=variant, inner_rate=0.1)
    size = variant.batches
    numbers = [min(number, steps) for number in range(-(-steps // size) * size)]
    w = 4.0
    for one in range(0, len(numbers), size):
        x = [float(nth_batch(number).x[0]) for number in numbers[one : one + size]]
        g = 2 * (w - 0.1 * 2 * (w - x[0]) - x[1])
        w -= 0.05 * (g if variant is FO else (1 - 0.1 * 2) * g)
    assert after(rule, towards, steps) == pytest.approx(w, rel=1e-4)


def slow(rule: Maml, part: TrainingInput, updates: int) -> dict[str, Any]:
    """Algorithm 1 on the quadratic, whose Hessian is one, entry by entry in double precision."""
    graph, mask = part.mask.graph, part.mask
    w = {name: array.astype(np.float64) for name, array in part.weights.items()}
    alpha, beta, size = rule.inner_rate, rule.descent.learning_rate, rule.variant.batches
    names = trained_parameters(mask)
    for number in range(updates):
        d, ahead = nth_batch(size * number), nth_batch(size * number + 1)
        first = Quadratic(graph)({name: array.astype(np.float32) for name, array in w.items()}, d)
        held = {name: mask.held.get(name, np.ones(w[name].shape, np.bool_)) for name in names}
        adapted = dict(w)
        for name in names:
            adapted[name] = np.where(held[name], w[name] - alpha * first.gradients[name], w[name])
        second = Quadratic(graph)({name: array.astype(np.float32) for name, array in adapted.items()}, ahead)
        for name in names:
            factor = 1.0 if rule.variant is FO else 1 - alpha
            w[name] = np.where(held[name], w[name] - beta * factor * second.gradients[name], w[name])
        for name in mask.trained_tensors:
            if graph.tensor[name].role is TensorRole.STATISTIC:
                w[name] = np.where(mask.held.get(name, np.True_), first.statistics[name], w[name])
    return w


@settings(max_examples=30, deadline=None)
@given(masked_models(), st.sampled_from(MetaGradient))
def test_updates_are_those_of_algorithm_1(model: tuple[ModelGraph, Mask], variant: MetaGradient) -> None:
    graph, mask = model
    rule = Maml(descent=Descent(learning_rate=0.1), variant=variant, inner_rate=0.2, difference=0.05)
    part = part_of(mask, 1, steps=2 * variant.batches)
    _, update = train(rule, part, Quadratic(graph), 2 * variant.batches)
    for name, array in slow(rule, part, 2).items():
        assert np.allclose(update.weights[name], array, rtol=1e-3, atol=1e-4), name
    assert set(update.tensors) == set(mask.trained_tensors)


@pytest.mark.parametrize(("variant", "runs"), [(FO, [1, 1, 1, 1, 1, 1]), (HF, [1, 1, 2, 1, 1, 2])])
def test_a_step_runs_the_engine_once_and_the_third_of_hf_twice(variant: MetaGradient, runs: list[int]) -> None:
    made: list[int] = []
    part = TrainingInput(full_mask(line()), {W: np.ones((1, 1), np.float32)}, seed=0, steps=6)
    rule = Maml(variant=variant)
    state = rule.begin(part)
    for number in range(6):
        engine = Quadratic(line())
        rule.step(part, state, nth_batch(number), engine)
        made.append(len(engine.shapes_seen))
    assert made == runs
    assert not [name for name in state.memory if name.startswith(("adapted:", "outer:"))]


def test_arrays_of_the_engine_are_copied_before_it_runs_again() -> None:
    buffer = {W: np.zeros((1, 1), np.float32)}

    def run(weights: Weights, batch: Batch) -> StepResult:
        result = towards(weights, batch)
        buffer[W][...] = result.gradients[W]
        return StepResult(result.loss, result.correct, buffer)

    rule = Maml(descent=Descent(learning_rate=0.5), variant=HF, inner_rate=0.25, difference=0.01)
    assert after(rule, run, 3) == pytest.approx(3.75, rel=1e-5)


def test_ending_a_round_twice_gives_the_same(small: ModelGraph) -> None:
    part = part_of(full_mask(small), 1, steps=4)
    rule = Maml(descent=Descent(learning_rate=0.1, momentum=0.9))
    state = rule.begin(part)
    for number in range(4):
        rule.step(part, state, nth_batch(number), Quadratic(small))
    before = saved(state)
    one, other = (rule.finish(part, state, nth_batch(4), Quadratic(small)) for _ in range(2))
    assert all(np.array_equal(array, other.weights[name]) for name, array in one.weights.items())
    assert state.steps == before.steps == 4
    assert all(np.array_equal(array, state.memory[name]) for name, array in before.memory.items())


@settings(max_examples=30, deadline=None)
@given(masked_models(), st.integers(0, 3), st.sampled_from(MetaGradient), st.sampled_from([0.0, 0.9]))
def test_a_round_goes_on_after_a_crash(
    model: tuple[ModelGraph, Mask], stop: int, variant: MetaGradient, momentum: float
) -> None:
    rule = Maml(descent=Descent(momentum=momentum), variant=variant)
    assert_resumes(rule, part_of(model[1], 2, steps=4), Quadratic(model[0]), steps=4, stop=stop)


def test_settings_make_the_rule() -> None:
    said: dict[str, Any] = {"variant": "first_order", "inner_rate": 0.1, "difference": 0.5, "learning_rate": 0.3}
    made = rule_of(RuleSettings(name="maml", settings=said))
    assert made == Maml(descent=Descent(learning_rate=0.3), variant=FO, inner_rate=0.1, difference=0.5)
