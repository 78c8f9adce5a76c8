"""Rule `local_training`: the device trains its own model, alone, and continues with it in the next round.

The baseline that every federation has to beat. In its first round a device starts from the global model, after that
from its own (`TrainingInput.own`), and nothing is sent.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from edgefl.local_rules.descent import Descent, start, train
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.values import check_fields

__all__ = ["LocalTraining", "start_own"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTraining:
    """Gradient descent from round to round on one device."""

    name: ClassVar[str] = "local_training"
    descent: Descent = field(default_factory=Descent)

    def __post_init__(self) -> None:
        check_fields(self)

    def begin(self, inputs: TrainingInput) -> State:
        """Continue with the device's own model."""
        return start_own(inputs)

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Move every trained tensor down its gradient."""
        return train(self.descent, inputs, state, batch, run)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Keep everything."""
        metrics = {"learning_rate": self.descent.rate(inputs, max(state.steps - 1, 0))}
        return Update({}, state.weights, state.mask, metrics)


def start_own(inputs: TrainingInput) -> State:
    """Return the state before the first step of a device that continues with its own model, if it has one."""
    own = inputs.own()
    return start(inputs if own is None else replace(inputs, weights=own))
