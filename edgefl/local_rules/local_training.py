"""Rule `local_training`: the device trains its own model, alone, and continues with it in the next round.

The baseline that every federation has to beat. In its first round a device starts from the global model, after that
from its own (`TrainingInput.own`), and nothing is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from edgefl.local_rules.descent import DescentRule, start
from edgefl.local_rules.rule import Batch, State, TrainingInput, TrainStep, Update
from edgefl.masks import Mask
from edgefl.wire import Expected

__all__ = ["LocalTraining", "start_own"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTraining(DescentRule):
    """Gradient descent from round to round on one device."""

    name: ClassVar[str] = "local_training"

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send nothing."""
        return {}

    def begin(self, inputs: TrainingInput) -> State:
        """Continue with the device's own model."""
        return start_own(inputs)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Keep everything."""
        metrics = {"learning_rate": self.descent.last_rate(inputs, state)}
        return Update({}, state.weights, state.mask, metrics)


def start_own(inputs: TrainingInput) -> State:
    """Return the state before the first step of a device that continues with its own model, if it has one."""
    own = inputs.own()
    return start(inputs if own is None else replace(inputs, weights=own))
