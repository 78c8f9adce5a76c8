"""Rule `ditto`: the device trains the global model and, beside it, a model of its own that stays on the device.

Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021, Algorithm 1:

    v <- v - rate * (gradient at v + lambda * (v - w_global))           the device's own model, from round to round
    w <- w - rate * gradient at w                                       from w_global; what is sent

w_global is the model as it was sent. As in the authors' code, both take a step on the same batch, v first, so a step
here runs the engine twice and takes twice the time. v is kept in `State.memory`, and is the device's model at the end.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from edgefl.local_rules.descent import (
    Descent,
    DescentRule,
    NotNegative,
    Positive,
    adopt_statistics,
    descend,
    start,
    train,
)
from edgefl.local_rules.local_training import start_own
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update, trained_parameters
from edgefl.masks import Array
from edgefl.wire import Dense

__all__ = ["DittoRule"]

_WEIGHT, _MEMORY = "own:", "own_memory:"


@dataclass(frozen=True, slots=True, kw_only=True)
class DittoRule(DescentRule):
    """The settings of Ditto on a device."""

    name: ClassVar[str] = "ditto"
    descent: Descent = field(default_factory=Descent)
    """For both models; a proximal term applies only to the global one."""
    pull: NotNegative = 1.0
    """lambda: how strongly the device's own model is pulled to the global one; the authors try 0.1, 1 and 2."""
    own_rate: Positive | None = field(default=None, metadata={"absent": "that of the global model"})
    """The learning rate of the device's own model."""

    def begin(self, inputs: TrainingInput) -> State:
        """Start from the global model as it was sent, and from the device's own model."""
        state = start(inputs)
        _keep(state, start_own(inputs))
        return state

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Take a step with each model; return the result of the global one."""
        own = _own(state)
        result = run(own.weights, batch)
        moved = {name: own.weights[name] for name in trained_parameters(own.mask)}
        descent = self._own_descent()
        descend(descent, descent.rate(inputs, state.steps), moved, result.gradients, own, anchors=inputs.weights)
        adopt_statistics(own, result)
        _keep(state, own)
        return train(self.descent, inputs, state, batch, run)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Send the global model; keep the device's own."""
        tensors = {name: Dense(state.weights[name]) for name in state.mask.trained_tensors}
        metrics = {"learning_rate": self.descent.last_rate(inputs, state), "pull": self.pull}
        return Update(tensors, _own(state).weights, state.mask, metrics)

    def _own_descent(self) -> Descent:
        rate = self.own_rate or self.descent.learning_rate
        return replace(self.descent, learning_rate=rate, proximal=self.pull)


def _own(state: State) -> State:
    """Return the state of the device's own model; its arrays are those in `memory`."""
    return State(state.mask, _under(_WEIGHT, state), _under(_MEMORY, state), state.steps)


def _keep(state: State, own: State) -> None:
    state.memory |= {_WEIGHT + name: array for name, array in own.weights.items()}
    state.memory |= {_MEMORY + name: array for name, array in own.memory.items()}


def _under(prefix: str, state: State) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in state.memory.items() if name.startswith(prefix)}
