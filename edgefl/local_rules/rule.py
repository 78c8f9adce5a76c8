"""The seam of on-device training: what a rule is given, what it keeps, what it returns.

A rule is a frozen dataclass of its settings with three methods: `begin`, `step` for every batch, `finish`. The device's
trainer calls them and knows nothing of the papers; a rule knows nothing of engines, files or networks. Everything that
changes during a round is in `State`, named arrays and a count, so that any rule can be checkpointed by the same few
lines and go on after a crash as if nothing had happened: chance comes from `Part.seed` and `State.steps` alone.

Arrays are at the size of the submodel. `Part.weights` are never changed; a rule makes new arrays or changes its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from edgefl.masks import Array, BoolArray, Mask, Weights
from edgefl.model_graph import TensorRole
from edgefl.wire import Payload

__all__ = ["Batch", "LocalRule", "TrainingInput", "State", "StepResult", "TrainStep", "Update", "trained_parameters"]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Samples and their labels."""

    x: Array
    y: Array
    seed: int = 0
    """The source of chance within the network, such as dropout."""


@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """What a forward and backward pass gives. Its arrays are the engine's, and good until the next step."""

    loss: float
    """The mean loss of the batch."""
    correct: BoolArray
    """Whether each sample was right."""
    gradients: Weights
    """The gradient of the mean loss for every trained parameter."""
    statistics: Weights = field(default_factory=dict)
    """New running statistics of norms."""


class TrainStep(Protocol):
    """The one thing that an engine must do."""

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        """Run forward and backward; change nothing."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class TrainingInput:
    """What a device was given for a round."""

    mask: Mask
    weights: Weights
    """The submodel as the coordinator sent it, every tensor of the mask."""
    seed: int
    """The source of all chance in this round on this device."""
    round: int = 0
    rounds: int = 1
    """How many rounds the federation is to have: schedules need it."""
    steps: int = 1
    """How many steps this round is to have on this device."""
    extras: Weights = field(default_factory=dict)
    """Further arrays that a strategy sends, such as FedMAP's probabilities."""
    accuracy: Callable[[Weights], float] | None = None
    """Returns the share of right answers on the device's own validation data, where it has some."""
    own: Callable[[], Weights | None] = lambda: None
    """Returns the device's own model from before this round, every tensor at the widths of `mask`; None where it has
    none yet. It may lie on a disk: rules that go on with it ask once, in `begin`."""


@dataclass(slots=True, eq=False)
class State:
    """Everything that changes during a round: what a checkpoint saves."""

    mask: Mask
    """The mask as it is now: a rule may prune before it trains, and what it trains is then smaller."""
    weights: dict[str, Array]
    """The submodel's tensors as they are now, every tensor at the widths of `mask`."""
    memory: dict[str, Array] = field(default_factory=dict)
    """What the rule remembers between steps, such as momenta."""
    steps: int = 0
    """Steps done so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """What a rule ends with."""

    tensors: Mapping[str, Payload]
    """What goes to the coordinator."""
    weights: Weights
    """The device's own model after the round, at the widths of `mask`: what it predicts with."""
    mask: Mask
    """The device's mask after the round; another one than before where the rule prunes or regrows."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Numbers for people and plots."""


class LocalRule(Protocol):
    """What happens around a `TrainStep` on one device in one round."""

    name: ClassVar[str]

    def begin(self, part: TrainingInput) -> State:
        """Return the state before the first step."""
        ...

    def step(self, part: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Train on one batch: advance the state, and return what the engine said."""
        ...

    def finish(self, part: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """End the round. `batch` is one more batch of training data, for rules that look at a last gradient."""
        ...


def trained_parameters(mask: Mask) -> tuple[str, ...]:
    """Return the names of the tensors that get a gradient: those of trained layers, statistics not among them."""
    return tuple(name for name in mask.trained_tensors if mask.graph.tensor[name].role is not TensorRole.STATISTIC)
