"""Learning rates and the parts of a step, against values worked out by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from edgefl.errors import SchemaError
from edgefl.local_rules import Batch, Descent, Sgd, StepResult, TrainingInput
from edgefl.local_rules.descent import BLOCK, Schedule, ScheduleUnit, weight_tensors
from edgefl.masks import Mask, Weights, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from tests.local_rules.quadratic import nth_batch, part_of

Floats = Sequence[float]


def line(entries: int) -> ModelGraph:
    """One linear layer with a weight of one row."""
    build = GraphBuilder("line", channels=entries)
    build.linear("head", build.input, 1, bias=False, head=True)
    return build.finish()


class Given:
    """Gradients that are given, one after the other."""

    def __init__(self, *gradients: Weights) -> None:
        self.left = list(gradients)

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        return StepResult(0.0, np.ones(1, np.bool_), self.left.pop(0))


def moved(
    descent: Descent, start: Sequence[float], *gradients: Sequence[float], mask: Mask | None = None
) -> list[float]:
    """The weights of a line after some steps."""
    mask = mask or full_mask(line(len(start)))
    part = TrainingInput(mask, {"head.weight": np.array([start], np.float32)}, seed=0)
    rule = Sgd(descent=descent)
    state = rule.begin(part)
    run = Given(*({"head.weight": np.array([gradient], np.float32)} for gradient in gradients))
    for number in range(len(gradients)):
        rule.step(part, state, nth_batch(number), run)
    found: list[float] = state.weights["head.weight"][0].tolist()
    return found


def rates(descent: Descent, rounds: int, steps: int = 1) -> list[float]:
    part = part_of(full_mask(line(1)), 0, rounds=rounds, steps=steps)
    each = [TrainingInput(part.mask, part.weights, 0, round=r, rounds=rounds, steps=steps) for r in range(rounds)]
    return [descent.rate(one, step) for one in each for step in range(steps)]


def test_step_decay_drops_at_half_and_three_quarters() -> None:
    descent = Descent(learning_rate=1.0, schedule=Schedule.STEP_DECAY)
    assert rates(descent, 8) == pytest.approx([1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01])


def test_drops_may_be_anywhere() -> None:
    descent = Descent(learning_rate=1.0, schedule=Schedule.STEP_DECAY, decay_at="0.1,0.3, 0.7", decay_factor=0.5)
    assert rates(descent, 10) == pytest.approx([1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125])


def test_a_schedule_by_step_counts_the_steps_of_all_rounds() -> None:
    descent = Descent(learning_rate=1.0, schedule=Schedule.STEP_DECAY, schedule_by=ScheduleUnit.STEP)
    assert rates(descent, 2, steps=4) == pytest.approx([1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01])
    assert rates(descent, 1, steps=4) == pytest.approx([1, 1, 0.1, 0.01])


def test_a_schedule_by_round_is_constant_within_a_round() -> None:
    descent = Descent(learning_rate=1.0, schedule=Schedule.EXPONENTIAL, decay_factor=0.998)
    assert rates(descent, 3, steps=2) == pytest.approx([1, 1, 0.998, 0.998, 0.998**2, 0.998**2])


def test_a_cosine_ends_near_its_final_rate() -> None:
    descent = Descent(learning_rate=1.0, schedule=Schedule.COSINE, final_rate=0.2)
    half = 0.5**0.5
    assert rates(descent, 4) == pytest.approx([1, 0.6 + 0.4 * half, 0.6, 0.6 - 0.4 * half])


def test_a_plain_step_follows_the_gradient() -> None:
    assert moved(Descent(learning_rate=0.5), [1, 2], [2, -4], [0, 2]) == [0, 3]


def test_momentum_adds_up_and_nesterov_looks_ahead() -> None:
    # v: 1, then 0.5 * 1 + 1 = 1.5
    assert moved(Descent(learning_rate=1.0, momentum=0.5), [0], [1], [1]) == [-2.5]
    # steps: 1 + 0.5 * 1, then 1 + 0.5 * 1.5
    assert moved(Descent(learning_rate=1.0, momentum=0.5, nesterov=True), [0], [1], [1]) == [-3.25]


def test_decay_shrinks_weights_and_the_proximal_term_pulls_to_the_start() -> None:
    assert moved(Descent(learning_rate=0.5, weight_decay=0.25), [8], [0]) == [7]
    # From 8 to 6 by the gradient; then 2 below the start, a quarter of that is pulled back.
    assert moved(Descent(learning_rate=1.0, proximal=0.25), [8], [2], [0]) == [6.5]


def test_clipping_holds_the_norm_of_all_gradients() -> None:
    found = moved(Descent(learning_rate=1.0, clip_norm=1.0), [0, 0], [3, 4], [0.3, 0.4])
    assert found == pytest.approx([-0.9, -1.2], rel=1e-6)


def test_weights_that_are_not_held_neither_move_nor_count_for_the_norm() -> None:
    mask = Mask.of(line(3), held={"head.weight": np.array([[True, True, False]])})
    descent = Descent(learning_rate=1.0, clip_norm=1.0, momentum=0.5, weight_decay=0.125, proximal=1.0)
    found = moved(descent, [0, 0, 0], [3, 4, 1000], mask=mask)
    assert found == pytest.approx([-0.6, -0.8, 0], rel=1e-6)
    assert found[2] == 0


def test_more_entries_than_a_block_are_all_moved() -> None:
    count = 2 * BLOCK + 7
    start, gradient = np.arange(count), np.arange(count) % 13
    descent = Descent(learning_rate=0.5, momentum=0.5, weight_decay=0.5)
    found = moved(descent, start.tolist(), gradient.tolist())
    assert np.array_equal(found, start - 0.5 * (gradient + 0.5 * start))


def test_weights_and_gradients_may_come_in_any_order_of_memory() -> None:
    build = GraphBuilder("square", channels=3)
    build.linear("head", build.input, 3, bias=False, head=True)
    start, gradient = (np.arange(9, dtype=np.float32).reshape(3, 3).T * factor for factor in (1, 2))
    part = TrainingInput(full_mask(build.finish()), {"head.weight": start}, seed=0)
    rule = Sgd(descent=Descent(learning_rate=0.5))
    state = rule.begin(part)
    rule.step(part, state, nth_batch(0), Given({"head.weight": gradient}))
    assert not state.weights["head.weight"].any()
    state.weights["head.weight"] = np.asfortranarray(start)
    with pytest.raises(ValueError, match="row-major"):
        rule.step(part, state, nth_batch(1), Given({"head.weight": gradient}))


def test_gradients_are_read_and_not_changed() -> None:
    mask = full_mask(line(2))
    gradient = np.array([[30, 40]], np.float32)
    part = TrainingInput(mask, {"head.weight": np.ones((1, 2), np.float32)}, seed=0)
    rule = Sgd(descent=Descent(clip_norm=1.0, momentum=0.9, weight_decay=0.1, proximal=0.1, nesterov=True))
    result = rule.step(part, rule.begin(part), nth_batch(0), Given({"head.weight": gradient}))
    assert result.gradients["head.weight"] is gradient
    assert gradient.tolist() == [[30, 40]]


def test_a_tensor_without_a_gradient_stays() -> None:
    part = TrainingInput(full_mask(line(1)), {"head.weight": np.ones((1, 1), np.float32)}, seed=0)
    rule = Sgd(descent=Descent(weight_decay=0.5))
    state = rule.begin(part)
    rule.step(part, state, nth_batch(0), Given({}))
    assert state.weights["head.weight"] == 1


def test_weight_tensors_are_the_trained_matrices_and_kernels() -> None:
    build = GraphBuilder("mixed", channels=1, positions=4)
    x = build.norm("norm", build.conv("conv", build.input, 2, kernel=3, positions=4, bias=True), statistics=True)
    x = build.linear("hidden", build.flatten(x), 3)
    build.linear("head", x, 2, head=True)
    graph = build.finish()
    assert weight_tensors(full_mask(graph)) == ("conv.weight", "hidden.weight", "head.weight")
    assert weight_tensors(Mask.of(graph, trained=["norm", "head"])) == ("head.weight",)


@pytest.mark.parametrize("text", ["", "half", "0.5 0.75", "0.5, 1.5", "-0.1"])
def test_drops_that_are_no_fractions_are_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="decay_at"):
        Descent(decay_at=text)
