"""Base classes of strategies whose devices each train a submodel, and whose new values are averaged.

Such a strategy defines which submodel each device gets (`submodels`), and what it sends (`uplink`). The rest is here:
planned tasks with their predictions, checks, aggregation, fine-tuning at the end, and a submodel of any size.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.masks import Mask, Weights, check_weights
from edgefl.model_graph import ModelGraph
from edgefl.planning import TrainingLoad, widest
from edgefl.strategies.aggregation import AggregationSettings, aggregate
from edgefl.strategies.personalisation import Personalisation, fine_tuning_tasks
from edgefl.strategies.round_estimate import RoundEstimate, round_estimates
from edgefl.strategies.sample_counts import claims_of
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates, Model, Participant, PlannedTask, RoundContext
from edgefl.strategies.update_checks import movement
from edgefl.strategies.uplink import Uplink
from edgefl.values import PositiveCount, Prediction, check_fields

__all__ = ["AveragingStrategy", "FineTunedStrategy", "MappedUpdates", "share_equal_masks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingStrategy(ABC):
    """A strategy that averages submodels. Its settings are its fields; a subclass changes defaults and adds fields.

    Call an inherited method by its class, `AveragingStrategy.combine(self, ...)`: `slots=True` creates the class a
    second time, and `super()` without arguments would still refer to the first.
    """

    name: ClassVar[str]
    descent: Descent = field(default_factory=Descent)
    """How devices train."""
    averaging: AggregationSettings = field(default_factory=AggregationSettings)
    assumed_samples: PositiveCount = 1000
    """The number of training samples to plan a device with that did not say how many it has when it joined."""

    def __post_init__(self) -> None:
        check_fields(self)
        self.check_settings()

    def check_settings(self) -> None:  # noqa: B027 - most strategies have nothing to add
        """Raise a `FieldError` if settings contradict each other. Each was checked on its own before."""

    @property
    def load(self) -> TrainingLoad:
        """What the rule of a round takes beyond plain gradient descent."""
        return TrainingLoad()

    @property
    @abstractmethod
    def uplink(self) -> Uplink:
        """What devices train by, and what they send."""

    @abstractmethod
    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Return the submodel of each device, by its id; a device that can do nothing useful is left out."""

    def predicted(self, estimate: RoundEstimate, mask: Mask) -> Prediction:
        """Return what a round takes with a submodel."""
        return estimate.prediction(mask)

    def extras(self, model: Model, mask: Mask, round_context: RoundContext) -> Weights:
        """Return further arrays that the rule reads with a submodel; equal submodels share them."""
        return {}

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are."""
        check_weights(graph, weights)
        return Model(graph, weights)

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Plan a task for every device that gets a submodel."""
        rule, estimates = self.uplink.rule, self._estimates(model, participants, round_context)
        planned_tasks = {}
        extras: dict[int, Weights] = {}
        for device, mask in share_equal_masks(self.submodels(model, estimates, round_context)).items():
            predicted = self.predicted(estimates[device], mask)
            if id(mask) not in extras:
                extras[id(mask)] = self.extras(model, mask, round_context)
            planned_tasks[device] = PlannedTask(mask, rule, estimates[device].work, extras[id(mask)], predicted)
        return planned_tasks

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but what the rule sends for the planned submodel."""
        self.uplink.check(update)

    def movement(self, update: ClientUpdate) -> float:
        """Return how far the update moves its submodel."""
        return movement(self.uplink.values(update))

    def next_mask(self, update: ClientUpdate) -> Mask | None:
        """Return a device's mask after a checked update: the one that it brought; None if it keeps the plan's."""
        return update.next_mask

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Aggregate the new values."""
        return replace(model, weights=aggregate(self.averaging, model, MappedUpdates(self.uplink.values, updates)))

    def explain(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, float]:
        """Return figures of a plan for people and reports, by name; a strategy that only plans by budgets has none."""
        return {}

    def personalise(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Return no tasks: devices do nothing with the last model."""
        return {}

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the leading channels."""
        return widest(model.graph, lambda cost: cost.parameters <= fraction * model.graph.parameters, multiple=1)

    def _estimates(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> dict[str, RoundEstimate]:
        return round_estimates(model.graph, participants, round_context, self.assumed_samples, self.load)


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTunedStrategy(AveragingStrategy):
    """A strategy that averages submodels and whose devices may fine-tune theirs at the end."""

    personal: Personalisation = field(default_factory=Personalisation)

    def personalise(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Let every device fine-tune its submodel."""
        estimates = self._estimates(model, participants, round_context)
        return fine_tuning_tasks(
            self.personal,
            self.descent,
            estimates,
            share_equal_masks(self.submodels(model, estimates, round_context)),
            round_context,
            self.predicted,
        )


def share_equal_masks(masks: Mapping[str, Mask]) -> dict[str, Mask]:
    """Return the masks with equal masks as one object, so that its digest and selectors are computed once."""
    known: dict[object, Mask] = {}
    return {device: known.setdefault(_key(mask), mask) for device, mask in masks.items()}


def _key(mask: Mask) -> object:
    kept = tuple(indices.tobytes() for indices in mask.kept.values())
    return mask.trained, kept, tuple((name, where.tobytes()) for name, where in sorted(mask.held.items()))


@dataclass(frozen=True, slots=True)
class MappedUpdates:
    """Updates that are transformed one by one when they are loaded, such as from the wire to new values."""

    changed: Callable[[ClientUpdate], ClientUpdate]
    client_updates: ClientUpdates

    def __len__(self) -> int:
        return len(self.client_updates)

    def __iter__(self) -> Iterator[ClientUpdate]:
        for update in self.client_updates:
            yield self.changed(update)
            del update  # or it would be in memory together with the next one

    def claimed_samples(self) -> Sequence[int]:
        """Return the claims of the updates as they came: no transformation changes them."""
        return claims_of(self.client_updates)
