"""Rule `sgd`: gradient descent on what the mask trains. FedAvg, PerFedMask and FedSpa use it.

    w <- w - rate * mask * gradient             PerFedMask, Eq. 1 (frozen layers); FedSpa, Eq. 3 (held weights)

With a proximal term it is FedProx. The upload holds the new values of every trained tensor, including running
statistics, which are averaged like weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from edgefl.local_rules.descent import DescentRule
from edgefl.local_rules.rule import Batch, State, TrainingInput, TrainStep, Update
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

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the new values of everything that is trained."""
        return new_values(mask, sparse=self.codec is Codec.SPARSE)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Send the new values."""
        tensors = {name: self._payload(state, name) for name in state.mask.trained_tensors}
        metrics = {"learning_rate": self.descent.last_rate(inputs, state)}
        return Update(tensors, state.weights, state.mask, metrics)

    def _payload(self, state: State, name: str) -> Payload:
        if self.codec is Codec.SPARSE and name in state.mask.held:
            return Sparse.where(state.weights[name], state.mask.held[name])
        return Dense(state.weights[name])
