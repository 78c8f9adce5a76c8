"""The interface of local rules: their inputs, their state, their update.

A rule is a frozen dataclass of its settings with three methods: `begin`, `step` for every batch, `finish`. The device's
trainer calls them and knows nothing of the papers; a rule knows nothing of engines, files or networks. Everything that
changes during a round is in `State`, named arrays and a count, so that any rule can be checkpointed by the same few
lines and continue after a crash as if nothing had happened: all randomness comes from `TrainingInput.seed` and
`State.steps`.

Arrays have the size of the submodel. `TrainingInput.weights` are never changed; a rule makes new arrays or changes its
own.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from edgefl.masks import Array, BoolArray, Mask, Weights
from edgefl.model_graph import TensorRole
from edgefl.wire import Expected, Payload

__all__ = ["Batch", "LocalRule", "TrainingInput", "State", "StepResult", "TrainStep", "Update", "trained_parameters"]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Samples and their labels."""

    x: Array
    y: Array
    seed: int = 0
    """The seed of randomness within the network, such as dropout."""


_NO_FEATURES: Array = np.zeros((0, 0), np.float32)
_NO_FEATURES.flags.writeable = False


@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """The result of a forward and backward pass. Its arrays belong to the engine, and are valid until the next step."""

    loss: float
    """The mean loss of the batch."""
    correct: BoolArray
    """Whether each sample was classified correctly."""
    gradients: Weights
    """The gradient of the mean loss for every trained parameter."""
    statistics: Weights = field(default_factory=dict)
    """New running statistics of norms."""
    features: Array = field(default_factory=lambda: _NO_FEATURES)
    """What the head reads of every sample, if the graph of the plan returns that."""


class TrainStep(Protocol):
    """The one thing that an engine must do."""

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        """Run forward and backward; change nothing."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class TrainingInput:
    """What a device gets for a round."""

    mask: Mask
    weights: Weights
    """The submodel as the coordinator sent it, every tensor of the mask."""
    seed: int
    """The seed of all randomness in this round on this device."""
    round: int = 0
    rounds: int = 1
    """The number of rounds of the federation: schedules need it."""
    steps: int = 1
    """The number of steps of this round on this device."""
    extras: Weights = field(default_factory=dict)
    """Further arrays that a strategy sends, such as FedMAP's probabilities."""
    accuracy: Callable[[Weights], float] | None = None
    """Returns the accuracy on the device's own validation data; None if it has none."""
    own: Callable[[], Weights | None] = lambda: None
    """Returns the device's own model from before this round, every tensor at the widths of `mask`; None if it has none
    yet. It may be on disk: rules that continue with it call this once, in `begin`."""
    epoch_steps: int = 1
    """The number of steps of one pass over the device's data, if the round is that long."""
    secret: Callable[[], int] = lambda: secrets.randbits(128)
    """Returns a seed that only the device knows: noise that hides something from the coordinator is drawn from it."""


@dataclass(slots=True, eq=False)
class State:
    """Everything that changes during a round: what a checkpoint saves."""

    mask: Mask
    """The current mask: a rule may prune before it trains, and then trains a smaller submodel."""
    weights: dict[str, Array]
    """The current tensors of the submodel, every tensor at the widths of `mask`."""
    memory: dict[str, Array] = field(default_factory=dict)
    """What the rule remembers between steps, such as momenta."""
    steps: int = 0
    """The number of steps so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """The result of a rule."""

    tensors: Mapping[str, Payload]
    """What is sent to the coordinator."""
    weights: Weights
    """The device's own model after the round, at the widths of `mask`: what it predicts with."""
    mask: Mask
    """The device's mask after the round; a new one if the rule prunes or regrows."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Numbers for people and plots."""


class LocalRule(Protocol):
    """What happens around a `TrainStep` on one device in one round."""

    name: ClassVar[str]

    def trains(self, mask: Mask) -> Mask:
        """Return the planned mask with the layers that this rule trains: those of the mask, or some of them."""
        ...

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Return the payloads of the update, by name, for a device that trains the submodel of `mask`.

        That is the planned mask, or what is left of it if the rule prunes before it trains.
        """
        ...

    def begin(self, inputs: TrainingInput) -> State:
        """Return the state before the first step."""
        ...

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Train on one batch: advance the state, and return the engine's result.

        A step that is interrupted before `run` has first returned is taken again from the state that it left: before
        that, change only what taking it again writes again.
        """
        ...

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """End the round. `batch` is one more batch of training data, for rules that need a last gradient.

        If this is interrupted, the round is ended again from the state that it left: change only what ending it again
        writes again.
        """
        ...


def trained_parameters(mask: Mask) -> tuple[str, ...]:
    """Return the names of the tensors that get a gradient: those of trained layers, statistics not among them."""
    return tuple(name for name in mask.trained_tensors if mask.graph.tensor[name].role is not TensorRole.STATISTIC)
