"""Rules that only run the model forward: sums computed by hand, clipped, with noise; and a bias of a device's own."""

from typing import Any

import numpy as np
import pytest

from edgefl.errors import MaskError
from edgefl.local_rules import Batch, ClassPrior, FeatureSums, HeadGradients, StepResult, TrainingInput, head_of
from edgefl.local_rules.feature_sums import GRAM, PRODUCTS, SQUARES
from edgefl.local_rules.head_gradients import GRADIENT_SUM
from edgefl.masks import Array, Mask, Weights, full_mask
from edgefl.model_graph import GraphBuilder
from edgefl.values import FieldError, RuleSettings
from edgefl.wire import Dense, check_tensors


def perceptron(*, bias: bool = True) -> Mask:
    """Two features, three classes; what is before them does not matter here."""
    builder = GraphBuilder("perceptron", channels=4)
    hidden = builder.linear("hidden", builder.input, 2)
    builder.linear("head", hidden, 3, bias=bias, head=True)
    return full_mask(builder.finish())


def inputs(mask: Mask, weights: Weights | None = None, **changes: Any) -> TrainingInput:
    zeros = {name: np.zeros(shape, np.float32) for name, shape in mask.shapes.items()}
    return TrainingInput(mask, zeros | dict(weights or {}), seed=1, **changes)


class Features:
    """A graph that returns these features, whatever it is fed."""

    def __init__(self, *batches: list[list[float]]) -> None:
        self.batches = [np.array(batch, np.float32) for batch in batches]

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        return StepResult(0.0, np.zeros(0, np.bool_), {}, features=self.batches[int(batch.x[0])])


def sent(
    rule: FeatureSums | HeadGradients, part: TrainingInput, run: Features, labels: list[Array]
) -> dict[str, Array]:
    state = rule.begin(part)
    for number, y in enumerate(labels):
        rule.step(part, state, Batch(np.array([number]), y), run)
    update = rule.finish(part, state, Batch(np.array([0]), labels[0]), run)
    check_tensors(update.tensors, rule.sends(part.mask))
    assert update.mask is part.mask
    assert update.weights is part.weights
    return {name: payload.array for name, payload in update.tensors.items() if isinstance(payload, Dense)}


CLASSES = [np.array([0, 2]), np.array([2])]


def test_three_samples_by_hand() -> None:
    """h = (1, 2), (3, 4), (0, 5), each with the 1 of the bias; classes 0, 2, 2."""
    found = sent(FeatureSums(), inputs(perceptron()), Features([[1, 2], [3, 4]], [[0, 5]]), CLASSES)
    assert found[GRAM].tolist() == [1 + 9, 2 + 12, 1 + 3, 4 + 16 + 25, 2 + 4 + 5, 3]
    assert found[PRODUCTS].tolist() == [[1, 0, 3], [2, 0, 9], [1, 0, 2]]
    assert found[SQUARES].tolist() == [1, 0, 2]
    assert all(array.dtype == np.float64 for array in found.values())


def test_a_head_without_bias_has_features_alone() -> None:
    found = sent(FeatureSums(), inputs(perceptron(bias=False)), Features([[1, 2], [3, 4]], [[0, 5]]), CLASSES)
    assert found[GRAM].tolist() == [10, 14, 45]
    assert found[PRODUCTS].tolist() == [[1, 0, 3], [2, 0, 9]]


def test_targets_of_a_regression_are_summed_as_they_are() -> None:
    targets = [np.array([[1.0, 0, -1], [2, 0, 0]], np.float32), np.array([[0.0, 3, 0]], np.float32)]
    found = sent(FeatureSums(), inputs(perceptron()), Features([[1, 2], [3, 4]], [[0, 5]]), targets)
    assert found[PRODUCTS].tolist() == [[7, 0, -1], [10, 15, -2], [3, 3, -1]]
    assert found[SQUARES].tolist() == [5, 9, 1]


def test_sums_are_exact_however_samples_are_batched() -> None:
    draws = np.random.default_rng(3)
    rows = draws.normal(size=(40, 2)).astype(np.float32)
    labels = draws.integers(0, 3, 40)
    together = sent(FeatureSums(), inputs(perceptron()), Features(rows.tolist()), [labels])
    apart = Features(*(rows[start : start + 7].tolist() for start in range(0, 40, 7)))
    in_sevens = sent(FeatureSums(), inputs(perceptron()), apart, [labels[s : s + 7] for s in range(0, 40, 7)])
    assert all(np.array_equal(together[name], in_sevens[name]) for name in together)
    slow = [[0.0] * 3 for _ in range(3)]
    for row in rows.astype(np.float64):
        one = [*row.tolist(), 1.0]
        for i in range(3):
            for j in range(3):
                slow[i][j] += one[i] * one[j]
    assert together[GRAM].tolist() == [slow[i][j] for i in range(3) for j in range(i, 3)]


def test_long_features_are_scaled_down_to_the_clip() -> None:
    found = sent(FeatureSums(clip=5.0), inputs(perceptron()), Features([[3, 4], [30, 40]]), [np.array([0, 1])])
    assert found[GRAM] == pytest.approx([18, 24, 6, 32, 8, 2])


def test_noise_is_the_devices_own_and_as_large_as_asked() -> None:
    rule, mask = FeatureSums(clip=1.0, noise=2.0), perceptron()
    nothing = Features([[0, 0]])

    def noisy(secret: int) -> dict[str, Array]:
        return sent(rule, inputs(mask, secret=lambda: secret), nothing, [np.array([0])])

    first, again, other = noisy(1), noisy(1), noisy(2)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert all(not np.array_equal(first[name], other[name]) for name in first)
    several = np.concatenate([noisy(seed)[GRAM][:3] for seed in range(300)])
    most = np.sqrt(2.0**2 + 2.0 + 1.0)  # |h|^2 = 1 + 1; |h h^T|, |h y^T| and |y^2|
    assert several.std() == pytest.approx(2.0 * most, rel=0.1)
    part = inputs(mask)
    assert rule.step(part, rule.begin(part), Batch(np.array([0]), np.array([0])), nothing).loss == 0.0
    with pytest.raises(FieldError, match="bounded norm"):
        FeatureSums(noise=1.0)


def test_the_loss_is_that_of_the_present_head() -> None:
    mask = perceptron()
    head = {"head.bias": np.array([0, np.log(2), 0], np.float32)}
    part = inputs(mask, head)
    rule = FeatureSums()
    state = rule.begin(part)
    result = rule.step(part, state, Batch(np.array([0]), np.array([0, 1])), Features([[1, 2], [3, 4]]))
    assert result.loss == pytest.approx((np.log(4) + np.log(2)) / 2)
    assert result.correct.tolist() == [False, True]


def test_gradients_by_hand() -> None:
    """All scores are equal, so p = 1/3 of each class: h (1/3 - y)."""
    found = sent(HeadGradients(), inputs(perceptron()), Features([[3, 6]]), [np.array([1])])
    assert found[GRADIENT_SUM] == pytest.approx(np.array([[1, -2, 1], [2, -4, 2], [1 / 3, -2 / 3, 1 / 3]]))


def test_gradients_are_taken_at_the_head_that_the_plan_brings() -> None:
    draws, mask = np.random.default_rng(4), perceptron()
    matrix, bias = draws.normal(size=(3, 2)).astype(np.float32), draws.normal(size=3).astype(np.float32)
    rows, labels = draws.normal(size=(9, 2)).astype(np.float32), draws.integers(0, 3, 9)
    part = inputs(mask, extras={"head.weight": matrix, "head.bias": bias})
    found = sent(HeadGradients(), part, Features(rows.tolist()), [labels])[GRADIENT_SUM]

    def loss(flat: Array) -> float:
        head = flat.reshape(3, 3)
        scores = np.hstack([rows, np.ones((9, 1))]) @ head
        return float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(9), labels]).sum())

    at = np.vstack([matrix.T, bias]).astype(np.float64).ravel()
    steps = 1e-6 * np.eye(9)
    slopes = [(loss(at + step) - loss(at - step)) / 2e-6 for step in steps]
    assert found.ravel() == pytest.approx(slopes, abs=1e-6)


def test_gradients_need_classes() -> None:
    part = inputs(perceptron())
    state = HeadGradients().begin(part)
    with pytest.raises(MaskError, match="needs classes"):
        HeadGradients().step(part, state, Batch(np.array([0]), np.zeros((1, 3), np.float32)), Features([[1, 2]]))


def test_the_bias_takes_the_devices_own_shares() -> None:
    """Half of the samples of class 0, half of class 2, none of class 1; of all devices a quarter, a half, a quarter."""
    part = inputs(perceptron(), extras={"shares": np.array([0.25, 0.5, 0.25], np.float32)})
    rule = ClassPrior(least_share=1e-3)
    state = rule.begin(part)
    for labels in ([0, 2, 2], [0]):
        rule.step(part, state, Batch(np.zeros(1), np.array(labels)), Features())
    update = rule.finish(part, state, Batch(np.zeros(1), np.array([0])), Features())
    assert update.tensors == {}
    assert update.weights["head.bias"] == pytest.approx(np.log([2, 1e-3 / 0.5, 2]), rel=1e-6)
    assert update.weights["head.weight"] is part.weights["head.weight"]


def test_shares_need_a_bias() -> None:
    part = inputs(perceptron(bias=False), extras={"shares": np.full(3, 1 / 3, np.float32)})
    with pytest.raises(MaskError, match="no bias"):
        ClassPrior().begin(part)


def test_nothing_is_trained() -> None:
    mask = perceptron()
    for rule in (FeatureSums(), HeadGradients(), ClassPrior()):
        assert not rule.trains(mask).trained
    assert RuleSettings(name="feature_sums")
    assert head_of(mask).layer == "head"
