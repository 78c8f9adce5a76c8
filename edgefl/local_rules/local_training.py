"""Rule `local_training`: the device trains its own model, alone, and goes on with it in the next round.

What every federation has to beat. The global model is where a device starts in its first round; after that its own
model is (`Part.own`), and nothing is sent.
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

    def begin(self, part: TrainingInput) -> State:
        """Go on with the device's own model."""
        return start_own(part)

    def step(self, part: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Move every trained tensor down its gradient."""
        return train(self.descent, part, state, batch, run)

    def finish(self, part: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Keep everything."""
        metrics = {"learning_rate": self.descent.rate(part, max(state.steps - 1, 0))}
        return Update({}, state.weights, state.mask, metrics)


def start_own(part: TrainingInput) -> State:
    """Return the state before the first step of a device that goes on with its own model, where it has one."""
    own = part.own()
    return start(part if own is None else replace(part, weights=own))
