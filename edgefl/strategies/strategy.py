"""The seam of a federation's method: what it is given, what it asks of devices, what it makes of their answers.

A strategy is a frozen dataclass of its settings. It holds no state and does no input or output: everything that changes
from round to round is in `Model`, which the coordinator stores. So a strategy can be asked again after a crash, by any
worker, and gives the same answer. `edgefl simulate` and the coordinator both run strategies through this file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from edgefl.masks import Mask, Weights
from edgefl.model_graph import ModelGraph
from edgefl.values import Budget, DeviceProfile, LocalResult, LocalWork, Prediction, RuleSettings
from edgefl.wire import Payload

__all__ = ["ClientUpdate", "ClientUpdates", "Model", "RoundContext", "PlannedTask", "Participant", "Strategy"]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The global model between two rounds."""

    graph: ModelGraph
    weights: Weights
    """Every tensor of the model."""
    state: Weights = field(default_factory=dict)
    """Further arrays that the strategy keeps from round to round, such as FedMAP's probabilities."""


@dataclass(frozen=True, slots=True)
class RoundContext:
    """Where in a federation we are."""

    round: int
    rounds: int
    seed: int
    """The source of all chance of this round, the same on every worker."""
    work: LocalWork = field(default_factory=LocalWork)
    """How much the federation lets a device train in a round."""


@dataclass(frozen=True, slots=True, eq=False)
class Participant:
    """One device that takes part in a round."""

    device_id: str
    profile: DeviceProfile
    budget: Budget
    """What the operator lets it spend on a round: its seconds follow from the deadline."""
    samples: int | None = None
    """How many training samples it has; None until its first result."""
    mask: Mask | None = None
    """Its mask after its last result; None before the first."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedTask:
    """What one device shall do."""

    mask: Mask
    rule: RuleSettings
    work: LocalWork
    extras: Weights = field(default_factory=dict)
    """Further arrays that the rule reads."""
    predicted: Prediction | None = None
    part: Mask | None = None
    """What its steps work on, where that is less than `mask`: a device that learns which entries are worth having is
    given them all, and tries submodels of its capacity."""

    @property
    def works_on(self) -> Mask:
        """What the device computes with: what its part and its multiply-adds are counted by."""
        return self.mask if self.part is None else self.part


@dataclass(frozen=True, slots=True, eq=False)
class ClientUpdate:
    """What one device sent back. Its tensors came from a stranger: `Strategy.check` looks at them first."""

    device_id: str
    mask: Mask
    """The mask that it was given."""
    rule: RuleSettings
    """The rule that it was given."""
    seed: int
    """The seed that it was given."""
    base: Weights
    """The whole model whose part it was given, every tensor of it."""
    result: LocalResult
    tensors: Mapping[str, Payload]
    next_mask: Mask | None = None
    """Its mask from now on, if the rule changed it."""
    trust: float = 1.0
    """A factor of its weight in an average, 0 to 1: less than 1 where it started from an old model."""


class ClientUpdates(Protocol):
    """The contributions of a round, in an order that is always the same; a list is one.

    Each is loaded when its turn comes, and may be forgotten after it; its arrays live as long as somebody has them.
    They can be gone through several times: a median works through the model block by block.
    """

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def __iter__(self) -> Iterator[ClientUpdate]:
        """Begin with the first one again."""
        ...


class Strategy(Protocol):
    """What a paper or a baseline is, seen from the coordinator."""

    name: ClassVar[str]

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Return the model before the first round."""
        ...

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Return an order by device id; a device that is left out can do nothing useful."""
        ...

    def check(self, update: ClientUpdate) -> None:
        """Raise a `WireFormatError` unless the tensors are what the order asked for: names, codecs, shapes, dtypes."""
        ...

    def movement(self, update: ClientUpdate) -> float:
        """Return the Euclidean norm of the change that the contribution makes to the part it was given."""
        ...

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Return the next model."""
        ...

    def personalise(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Return what devices do with the last model for themselves alone; nothing where there is nothing to do.

        Nothing that comes back is combined: `moment.round` is then the number of rounds.
        """
        ...

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the part of a model that is the best one of at most this fraction of its parameters."""
        ...
