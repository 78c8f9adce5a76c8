"""Rule `sgd`: gradient descent on what the mask trains. FedAvg, PerFedMask and FedSpa use it.

    w <- w - rate * mask * gradient             PerFedMask, Eq. 1 (frozen layers); FedSpa, Eq. 3 (held weights)

With a proximal term it is FedProx. The upload holds the new values of every trained tensor, including running
statistics, which are averaged like weights. With `sensitivity` it also holds how much the loss depends on each channel,
by which Hermes prunes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from edgefl.local_rules.descent import DescentRule
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.local_rules.sensitivity import observed, report_forms, reported
from edgefl.local_rules.sent_tensors import new_values
from edgefl.masks import Mask
from edgefl.wire import Dense, Expected, Payload, Sparse

__all__ = ["Codec", "Sgd"]


class Codec(StrEnum):
    """How tensors are sent."""

    DENSE = "dense"
    SPARSE = "sparse"
    """Only the held weights of a tensor that the mask does not hold whole; whole tensors otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sgd(DescentRule):
    """Masked stochastic gradient descent."""

    name: ClassVar[str] = "sgd"
    codec: Codec = Codec.DENSE
    sensitivity: bool = field(default=False, metadata={"added": True})
    """Whether the update also reports sensitivities."""

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the new values of everything that is trained, and the report if it is asked for."""
        values = new_values(mask, sparse=self.codec is Codec.SPARSE)
        return values | report_forms(mask) if self.sensitivity else values

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Move every trained tensor down its gradient."""
        return DescentRule.step(self, inputs, state, batch, observed(run, state) if self.sensitivity else run)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Send the new values."""
        tensors = {name: self._payload(state, name) for name in state.mask.trained_tensors}
        if self.sensitivity:
            tensors |= reported(state)
        metrics = {"learning_rate": self.descent.last_rate(inputs, state)}
        return Update(tensors, state.weights, state.mask, metrics)

    def _payload(self, state: State, name: str) -> Payload:
        if self.codec is Codec.SPARSE and name in state.mask.held:
            return Sparse.where(state.weights[name], state.mask.held[name])
        return Dense(state.weights[name])
