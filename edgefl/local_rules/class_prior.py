"""Rule `class_prior`: a personal head without training. The device's own shares of the classes go into the bias.

    b_c  <-  b_c + log(p_c / q_c)        p: the device's shares, q: those of all devices, which the plan brings

A head that was fitted to all devices' data gives the posterior for samples of all of them. For a device whose classes
have other shares, Bayes' rule adds the logarithm of their ratio to the logits (Saerens et al., "Adjusting the Outputs
of a Classifier to New a Priori Probabilities", 2002). A share below `least_share` counts as that. It is one pass over
the labels; the model is not run, and nothing is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.feature_sums import ForwardRule, head_of
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.masks import Mask
from edgefl.values import Dimension, Quantity, check_fields
from edgefl.wire import Expected

__all__ = ["SHARES", "ClassPrior"]

SHARES = "shares"
"""The extra array of the plan: q."""
_COUNTS = "counts"

Share = Annotated[float, Quantity(Dimension.NUMBER, "a share from 1e-12 to 0.5", "1e-6", low=1e-12, high=0.5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPrior(ForwardRule):
    """A head that expects the classes of its device."""

    name: ClassVar[str] = "class_prior"
    least_share: Share = 1e-6

    def __post_init__(self) -> None:
        check_fields(self)

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send nothing."""
        return {}

    def begin(self, inputs: TrainingInput) -> State:
        """Start without counts; raise if there is no bias to change."""
        head = head_of(inputs.mask)
        if head.bias is None or SHARES not in inputs.extras or inputs.extras[SHARES].shape != (head.outputs,):
            raise MaskError("the head has no bias, or the plan no shares of classes", fix="Plan another rule.")
        return State(
            self.trains(inputs.mask),
            dict(inputs.weights),
            {_COUNTS: np.zeros(head.outputs)},
        )

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Count the labels of a batch."""
        if batch.y.dtype.kind == "f":
            raise MaskError("targets have no classes to count", fix="Plan another rule.")
        counts = state.memory[_COUNTS]
        counts += np.bincount(batch.y, minlength=len(counts))
        state.steps += 1
        return StepResult(0.0, np.zeros(0, np.bool_), {})

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Change the bias."""
        bias = str(head_of(inputs.mask).bias)
        own = np.maximum(state.memory[_COUNTS] / state.memory[_COUNTS].sum(), self.least_share)
        everyone = np.maximum(inputs.extras[SHARES].astype(np.float64), self.least_share)
        shifted = state.weights[bias] + np.log(own / everyone)
        return Update({}, {**state.weights, bias: shifted.astype(np.float32)}, inputs.mask)
