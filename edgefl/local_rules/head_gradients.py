"""Rule `head_gradients`: one pass over the device's samples, and the gradient of the loss by the head alone.

    G = sum over samples of h (p - y)^T,    p = softmax(W h + b)

h and y are those of `feature_sums`. W and b come beside the model, as extra arrays with the names of their tensors: the
model itself is the one that the device has downloaded for its sums. The sum over all devices is the gradient of
logistic regression on all samples together, at the head that they were sent: no device takes a step of its own, so
nothing drifts. The coordinator takes the step (`edgefl.strategies.head_fit`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.feature_sums import SummingRule, head_of, head_scores, head_size
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.masks import Mask
from edgefl.model_graph import Dtype, LinearHead
from edgefl.wire import Dense, Expected

__all__ = ["GRADIENT_SUM", "HeadGradients"]

GRADIENT_SUM = "sums/gradient"
"""The payload: G."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadGradients(SummingRule):
    """The sum of a device's gradients of logistic regression on features that stay as they are."""

    name: ClassVar[str] = "head_gradients"

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the sum."""
        shape = (head_size(mask), head_of(mask).outputs)
        return {GRADIENT_SUM: Expected(shape, Dense.codec, Dtype.FLOAT64.value)}

    def begin(self, inputs: TrainingInput) -> State:
        """Start from a sum of nothing."""
        shapes = {GRADIENT_SUM: (head_size(inputs.mask), head_of(inputs.mask).outputs)}
        most = 0.0 if self.clip is None else math.sqrt(2.0 * (self.clip * self.clip + 1.0))  # |p - y|^2 is at most 2
        state = self._begun(inputs, shapes, most)
        for name in _tensors(head_of(inputs.mask)):
            given = inputs.extras.get(name, inputs.weights[name])
            if given.shape != inputs.mask.shapes[name]:
                raise MaskError(f"the plan's {name!r} has shape {given.shape}", fix="Give the head at its own widths.")
            state.weights[name] = given
        return state

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Add the batch to the sum."""
        if batch.y.dtype.kind == "f":
            raise MaskError("logistic regression needs classes, not targets", fix="Use exact_head = 'ridge'.")
        head = head_of(inputs.mask)
        rows = self._rows(run(state.weights, batch).features, inputs.mask)
        scores = head_scores(head, state.weights, rows)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        errors = odds / odds.sum(axis=1, keepdims=True)
        errors[np.arange(len(errors)), batch.y] -= 1.0
        total = state.memory[GRADIENT_SUM]
        for row, error in zip(rows, errors, strict=True):
            total += np.multiply.outer(row, error)
        state.steps += 1
        return self._judged(scores, batch.y)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Send the sum."""
        return Update({GRADIENT_SUM: Dense(state.memory[GRADIENT_SUM])}, inputs.weights, inputs.mask)


def _tensors(head: LinearHead) -> tuple[str, ...]:
    return (head.weight,) if head.bias is None else (head.weight, head.bias)
