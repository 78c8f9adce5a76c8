"""Rule `feature_sums`: one pass over the device's samples through the model as it is, and sums of what its head reads.

    A = sum over samples of h h^T,    B = sum of h y^T,    S = sum of y^2 (for each output)

h are the features, the inputs of the model's last layer, with a 1 behind them if that layer has a bias; y is the label
as a vector of zeros and a one, or the targets of a regression. The sums of all devices are what one device that had all
samples would send, so a head that is solved from them is the exact one, however the samples are divided: Fed3R (Fani et
al., "Accelerating Heterogeneous Federated Learning with Closed-form Classifiers", ICML 2024) for the ridge regression.

Nothing is trained, and nothing is differentiated: the graph of the plan returns the features. Products of two float32
are exact in double precision, and samples are added one after the other, so that every client has the same bits for the
same features. A is symmetric; its upper triangle is sent, row by row.

With `clip`, features of a larger norm are scaled down to it. With `noise` as well, the sums begin with Gaussian noise
whose standard deviation is `noise` times the norm of the most that one sample can add, drawn from the device's own
randomness, which no coordinator knows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.errors import MaskError
from edgefl.local_rules.descent import Positive
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.local_rules.summation import sum_of_squares
from edgefl.masks import Array, Mask, Weights, freeze
from edgefl.model_graph import Dtype, LinearHead, linear_head
from edgefl.values import FieldError, Ratio, check_fields
from edgefl.wire import Dense, Expected

__all__ = [
    "GRAM",
    "MOST_FEATURES",
    "PRODUCTS",
    "SQUARES",
    "FeatureSums",
    "ForwardRule",
    "SummingRule",
    "head_of",
    "head_scores",
    "head_size",
]

GRAM, PRODUCTS, SQUARES = "sums/gram", "sums/products", "sums/squares"
"""The payloads: the upper triangle of A, B, and S."""

MOST_FEATURES = 4096
"""Numbers that a head may read: their products take 134 MB."""

Doubles = npt.NDArray[np.float64]


def head_of(mask: Mask) -> LinearHead:
    """Return the head of a mask's model; raise if it is not linear."""
    head = linear_head(mask.graph)
    if head is None:
        raise MaskError(
            f"the last layer of model {mask.graph.name!r} is not one linear layer",
            fix="Use exact_head = 'none' with this model.",
        )
    return head


def head_size(mask: Mask) -> int:
    """Return how many numbers a sample has for the head: its features, and the 1 of the bias."""
    head = head_of(mask)
    return mask.shapes[head.weight][1] + (head.bias is not None)


def head_scores(head: LinearHead, weights: Weights, rows: Doubles) -> Doubles:
    """Return what the head makes of samples, in double precision: a row of outputs for each."""
    matrix = weights[head.weight].astype(np.float64).T
    if head.bias is None:
        return np.asarray(rows @ matrix, np.float64)
    return np.asarray(rows[:, :-1] @ matrix + rows[:, -1:] * weights[head.bias].astype(np.float64), np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardRule:
    """Base class of rules that only run the model forward: their graph returns features, and they train nothing."""

    def trains(self, mask: Mask) -> Mask:
        """Train nothing."""
        return freeze(mask, mask.trained)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummingRule(ForwardRule):
    """Base class of rules that send sums over the device's samples."""

    clip: Positive | None = field(default=None, metadata={"absent": "not clipped"})
    """The largest norm of a sample's features."""
    noise: Ratio = 0.0
    """The standard deviation of the noise on the sums, over the most that a sample can add."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.noise and self.clip is None:
            raise FieldError("needs features of bounded norm", fix="Give a clip too", path=("noise",))

    def largest_sum(self, samples: int) -> float:
        """Return the largest number that a sum of so many samples can be, with ten deviations of its noise."""
        square = (self.clip or 0.0) ** 2 + 1.0
        return samples * 2.0 * square + 10.0 * self.noise * 3.0 * square

    def _rows(self, features: Array, mask: Mask) -> Doubles:
        """Return the features of samples in double precision, clipped, with the 1 of the bias."""
        bias = head_of(mask).bias is not None
        if features.shape[1] + bias != head_size(mask):
            raise MaskError(
                f"the graph returns {features.shape[1]} features, but the head reads {head_size(mask) - bias}",
                fix="Give the feature graph of this submodel.",
            )
        rows = np.ones((len(features), features.shape[1] + bias))
        rows[:, : features.shape[1]] = features
        if self.clip is not None:
            for row in rows:
                norm = math.sqrt(sum_of_squares(row[: features.shape[1]]))
                if norm > self.clip:
                    row[: features.shape[1]] *= self.clip / norm
        return rows

    def _judged(self, scores: Doubles, labels: Array) -> StepResult:
        """Return how good the present head is; nothing if the sums are to hide the samples."""
        return StepResult(0.0, np.zeros(0, np.bool_), {}) if self.noise else judged(scores, labels)

    def _begun(self, inputs: TrainingInput, shapes: Mapping[str, tuple[int, ...]], most: float) -> State:
        """Return sums of nothing: zeros, or noise for sums to which a sample adds at `most` this norm."""
        state = State(self.trains(inputs.mask), dict(inputs.weights))
        draws = np.random.default_rng(inputs.secret()) if self.noise else None
        for name, shape in shapes.items():
            state.memory[name] = (
                np.zeros(shape) if draws is None else np.asarray(draws.normal(0.0, self.noise * most, shape))
            )
        return state


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSums(SummingRule):
    """Sums of a device's features and labels."""

    name: ClassVar[str] = "feature_sums"

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the three sums."""
        size, outputs = head_size(mask), head_of(mask).outputs
        shapes = {GRAM: (size * (size + 1) // 2,), PRODUCTS: (size, outputs), SQUARES: (outputs,)}
        return {name: Expected(shape, Dense.codec, Dtype.FLOAT64.value) for name, shape in shapes.items()}

    def begin(self, inputs: TrainingInput) -> State:
        """Start from sums of nothing."""
        size, outputs = head_size(inputs.mask), head_of(inputs.mask).outputs
        if size > MOST_FEATURES:
            raise MaskError(
                f"the head reads {size:,} numbers, too many to sum their products", fix="Plan another rule."
            )
        shapes = {GRAM: (size, size), PRODUCTS: (size, outputs), SQUARES: (outputs,)}
        return self._begun(inputs, shapes, 0.0 if self.clip is None else _most_added(self.clip))

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Add the batch to the sums."""
        head = head_of(inputs.mask)
        result = run(state.weights, batch)
        rows = self._rows(result.features, inputs.mask)
        targets = _targets(batch.y, head.outputs)
        gram, products, squares = (state.memory[name] for name in (GRAM, PRODUCTS, SQUARES))
        product = np.empty_like(gram)
        for row, target in zip(rows, targets, strict=True):
            gram += np.multiply.outer(row, row, out=product)
            products += np.multiply.outer(row, target)
            squares += target * target
        state.steps += 1
        return self._judged(head_scores(head, state.weights, rows), batch.y)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Send the sums."""
        gram = state.memory[GRAM]
        arrays = {
            GRAM: gram[np.triu_indices(len(gram))],
            PRODUCTS: state.memory[PRODUCTS],
            SQUARES: state.memory[SQUARES],
        }
        return Update({name: Dense(array) for name, array in arrays.items()}, inputs.weights, inputs.mask)


def judged(scores: Doubles, labels: Array) -> StepResult:
    """Return how good the present head is on a batch: cross-entropy, or the mean squared error of a regression."""
    if labels.dtype.kind == "f":
        errors = scores - labels.reshape(scores.shape)
        return StepResult(float(np.mean(errors * errors)), np.zeros(0, np.bool_), {})
    shifted = scores - scores.max(axis=1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]
    return StepResult(float(losses.mean()), scores.argmax(axis=1) == labels, {})


def _targets(labels: Array, outputs: int) -> Doubles:
    """Return the targets of samples, a row each: of a class, zeros and a one."""
    if labels.dtype.kind == "f":
        if labels.size != len(labels) * outputs:
            raise MaskError(f"targets of shape {labels.shape} are not {outputs} a sample", fix="Check the data.")
        return labels.reshape(len(labels), outputs).astype(np.float64)
    return np.asarray(np.eye(outputs)[labels], np.float64)


def _most_added(clip: float) -> float:
    """Return the norm of the most that a classified sample adds to the three sums together.

    Of a symmetric matrix the upper triangle is sent, whose norm is no larger than that of the matrix.
    """
    square = clip * clip + 1.0  # with the 1 of a bias
    return math.sqrt(square * square + square + 1.0)
