"""The interface of strategies: what they get, what they plan for devices, and how they aggregate updates.

A strategy is a frozen dataclass of its settings. It holds no state and does no input or output: everything that changes
from round to round is in `Model`, which the coordinator stores. So any worker can call a strategy again after a crash,
and gets the same answer. `edgefl simulate` and the coordinator both run strategies through this interface.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from edgefl.masks import IndexArray, Mask, Weights
from edgefl.model_graph import Cost, ModelGraph, cost_in_turn, cost_of
from edgefl.planning import Rungs
from edgefl.values import (
    Budget,
    Capabilities,
    DeviceProfile,
    LocalResult,
    LocalWork,
    Prediction,
    ProgramSpec,
    RuleSettings,
)
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
    last_held: Mapping[str, IndexArray] = field(default_factory=dict)
    """By group, the round, counted from 1, in which a device last held each channel; 0 is never. The federation notes
    it after every round: strategies leave it alone."""


@dataclass(frozen=True, slots=True)
class RoundContext:
    """The position in a federation, and the work of a round."""

    round: int
    rounds: int
    seed: int
    """The seed of all randomness of this round, the same on every worker."""
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
    """The number of its training samples; None until it says so, at the latest with its first result."""
    mask: Mask | None = None
    """Its mask after its last result; None before the first."""
    capabilities: Capabilities | None = None
    """What its software can run; None means every rule and codec. A device that lacks what is planned for it is left
    out afterwards, so a strategy need not look at it."""
    rungs: Rungs | None = None
    """The submodels that its engine can train, if it runs compiled programs; None means any. Round estimates look at
    it, so a strategy that asks them need not."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedTask:
    """The task that a strategy plans for one device."""

    mask: Mask
    rule: RuleSettings
    work: LocalWork
    extras: Weights = field(default_factory=dict)
    """Further arrays that the rule reads."""
    predicted: Prediction | None = None
    step_mask: Mask | None = None
    """What its steps work on, if that is less than `mask`: a device that learns which entries are worth having gets
    them all, and tries submodels of its capacity."""
    program: ProgramSpec | None = None
    """The program that trains it, on a device whose engine runs programs. Strategies leave this and the next one alone:
    the federation sets them."""
    inference_program: ProgramSpec | None = None
    """The program that evaluates it on such a device; None if it cannot be evaluated there."""
    weights: Weights | None = None
    """The whole model whose submodel the device downloads, if that is not the global one. Tasks of one round that have
    equal masks have the same."""

    networks: tuple[Mask, ...] = ()
    """The networks in `mask` whose features a forward pass returns, side by side; empty if the mask is one network."""

    @property
    def forward_cost(self) -> Cost:
        """The cost of running the mask, or its networks one after the other, cut out of the arrays of the mask."""
        if not self.networks:
            return self.works_on.cost
        cost, around = cost_in_turn([one.cost for one in self.networks]), cost_of(self.mask.graph, self.mask.widths, ())
        return replace(cost, parameter_bytes=cost.parameter_bytes + around.parameter_bytes)

    @property
    def works_on(self) -> Mask:
        """What the device computes with, by which its submodel and its multiply-adds are counted."""
        return self.mask if self.step_mask is None else self.step_mask


@dataclass(frozen=True, slots=True, eq=False)
class ClientUpdate:
    """What one device sent. Its tensors come from a stranger: `Strategy.check` checks them first."""

    device_id: str
    mask: Mask
    """The mask of the plan."""
    rule: RuleSettings
    """The rule of the plan."""
    seed: int
    """The seed of the plan."""
    base: Weights
    """The whole model whose submodel it was given, every tensor of it."""
    result: LocalResult
    tensors: Mapping[str, Payload]
    next_mask: Mask | None = None
    """Its mask from now on, if the rule changed it."""
    trust: float = 1.0
    """A factor on its weight in an average, 0 to 1: less than 1 if it started from an old model."""
    rungs: Rungs | None = None
    """The submodels that the device's engine can train, if it runs compiled programs; None means any."""


class ClientUpdates(Protocol):
    """The updates of a round, always in the same order; a list will do.

    Each is loaded when it is needed, and may be dropped after it; its arrays live as long as something refers to them.
    They can be iterated several times: a median works through the model block by block.
    """

    def __len__(self) -> int:
        """Return the number of updates."""
        ...

    def __iter__(self) -> Iterator[ClientUpdate]:
        """Start again from the first one."""
        ...


class Strategy(Protocol):
    """A method of federated learning, as the coordinator runs it."""

    name: ClassVar[str]

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Return the model before the first round."""
        ...

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Return a task by device id; a device that is left out can do nothing useful."""
        ...

    def check(self, update: ClientUpdate) -> None:
        """Raise a `WireFormatError` unless the tensors are what the plan asked for: names, codecs, shapes, dtypes."""
        ...

    def movement(self, update: ClientUpdate) -> float:
        """Return the Euclidean norm of the change that the update makes to its submodel."""
        ...

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Return the next model."""
        ...

    def personalise(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Return what devices do with the last model for themselves alone; empty if there is nothing to do.

        Their results are not aggregated; `round_context.round` is then the number of rounds.
        """
        ...

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the best submodel of at most this fraction of the model's parameters."""
        ...
