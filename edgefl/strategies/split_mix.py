"""Strategy `split_mix`: small networks side by side, of which every device trains as many as it can afford.

Hong et al., "Efficient Split-Mix Federated Learning for On-Demand and In-Situ Customization", ICLR 2022. The
model is split into k base networks of 1/k of its width that share no weights (`base_networks` says how); in every round
a device trains as many of them as fit its budget, each with its own loss, and each is averaged over the devices that
trained it. A prediction is the mean of the logits of several networks, so a device predicts with as many
as it can afford: `extract` gives as many as fit a size, and the global model is judged by the mean of all k.

The authors' code has 8 networks. Rate, momentum, decay and schedule are those of PerFedMask's code, which compares
with it: 0.1, 0.9, 5e-4, times 0.1 at half and at three quarters of the rounds.

What the paper leaves open, or does otherwise, and what is done here:
- Which networks a device trains: the authors' code goes round all of them for each device's first one, and draws the
  others. Here they are dealt like cards, in a random order, to the devices of a round in a random order. So every
  network is trained by the same number of devices, or by one more.
- The authors scale the outputs of layers and the first weights by the width. A norm takes such factors out again
  (`heterofl.py` says why), and the first weights of a model here are as it was exported.
- The bias of the head has no channels, and is shared by all networks: it is averaged over all devices.
- The graph of a model runs all its channels together. That adds the logits of its networks up, and a norm over all
  channels couples them. So wherever accuracy is measured, the networks run one by one.
- At the end devices may fine-tune their networks, each with its own loss, as PerFedMask's comparison does.

With `frozen = "planned"` it is PerFedMask's combination with Split-Mix (its Tables 2 and 8): all networks of a device
freeze the same layers. The paper does not say which ones, and its code does not have the combination. Here a device
gets as many networks as it can train the last layers of, and the planner then chooses layers for all devices.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules import BaseNetworks, Descent, FineTune, arrays_cost, rule_of
from edgefl.local_rules.base_networks import base_networks, joined_networks, network_widths, only_networks
from edgefl.local_rules.descent import Schedule
from edgefl.masks import Mask, Weights
from edgefl.model_graph import Cost, ModelGraph, cost_of
from edgefl.noise import bits, derive
from edgefl.planning import TrainingLoad
from edgefl.strategies.averaging_strategy import FineTunedStrategy
from edgefl.strategies.freezing import DeviceMasks, Freezing, FrozenLayers, body_of
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import ClientUpdate, Model, Participant, PlannedTask, RoundContext
from edgefl.strategies.update_checks import check_mask_kept, check_values, values_at
from edgefl.strategies.uplink import rule_settings
from edgefl.values import Budget, PositiveCount, Prediction, RuleSettings
from edgefl.wire import Dense

__all__ = ["SplitMix"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitMix(FineTunedStrategy):
    """Federated averaging of base networks."""

    name: ClassVar[str] = "split_mix"
    descent: Descent = field(
        default_factory=lambda: Descent(
            learning_rate=0.1, momentum=0.9, weight_decay=5e-4, schedule=Schedule.STEP_DECAY
        )
    )
    base_networks: PositiveCount = 8
    """How many networks the model is split into."""
    freezing: Freezing = field(default_factory=Freezing)

    @property
    def uplink(self) -> "NetworksUplink":
        """The new values of the networks that a device trains."""
        return NetworksUplink(BaseNetworks(descent=self.descent, networks=self.base_networks))

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are, if the model has enough channels for its networks and a body to train."""
        if all(group.fixed is not None for group in graph.groups):
            raise MaskError(
                f"model {graph.name!r} has no channels that could be divided among {self.base_networks} networks",
                fix="Use a model with a hidden layer, or choose the strategy 'fedavg'.",
            )
        self._joined(graph, [0])
        if self.freezing.frozen is not FrozenLayers.NONE:
            body_of(graph)
        return FineTunedStrategy.begin(self, graph, weights)

    def networks(self, mask: Mask) -> tuple[Mask, ...]:
        """Return the networks of a submodel, whose logits are averaged."""
        return base_networks(mask, self.base_networks)

    def judged(self, mask: Mask) -> Mask:
        """Return what the networks of a submodel have: nobody trains the entries between them."""
        return only_networks(mask, self.base_networks)

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Deal every device as many networks as it can train; a device that can train none is left out.

        So is one whose engine runs compiled programs: a step of the whole mask is steps of its networks.
        """
        return self._parts(model, estimates, round_context).masks

    def explain(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, float]:
        """Return the figures of the freezing planner; empty if nothing is planned."""
        return self._parts(model, self._estimates(model, participants, round_context), round_context).figures

    def _parts(self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext) -> DeviceMasks:
        dealt = _DealtNetworks(model.graph, self.base_networks)
        return self.freezing.submodels(dealt, estimates, round_context, dealt.fits_at)

    def predicted(self, estimate: RoundEstimate, mask: Mask) -> Prediction:
        """Return what a round takes with the networks of a mask, one after the other."""
        networks = self.networks(mask)
        use = _use(estimate, networks[0].cost, len(networks), arrays_cost(mask))
        return Prediction(seconds=use.round_seconds, peak_bytes=use.peak_bytes, joules=use.joules)

    def personalise(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Let every device fine-tune its networks, each with its own loss as before."""
        planned_tasks = FineTunedStrategy.personalise(self, model, participants, round_context)
        return {device: self._tuned(planned) for device, planned in planned_tasks.items()}

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the first networks, as many as there are within this share of the parameters."""
        most = fraction * model.graph.parameters
        found = (self._joined(model.graph, range(count)) for count in range(self.base_networks, 0, -1))
        fitting = next((mask for mask in found if mask.cost.parameters <= most), None)
        if fitting is None:
            raise MaskError(
                f"not even one of the {self.base_networks} base networks has at most {most:,.0f} parameters",
                fix="Request a larger fraction, or split the model into more networks.",
            )
        return fitting

    def _tuned(self, planned: PlannedTask) -> PlannedTask:
        local = rule_of(planned.rule)
        descent = local.descent if isinstance(local, FineTune) else self.descent
        rule = BaseNetworks(descent=descent, networks=self.base_networks, sent=False)
        return replace(planned, mask=local.trains(planned.mask), rule=rule_settings(rule))

    def _joined(self, graph: ModelGraph, numbers: Sequence[int]) -> Mask:
        return joined_networks(graph, numbers, self.base_networks)


@dataclass(frozen=True, slots=True)
class NetworksUplink:
    """Devices send the new values of their networks, without the zeros between them."""

    local: BaseNetworks

    @property
    def rule(self) -> RuleSettings:
        """The rule `base_networks`."""
        return rule_settings(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but the new values of the planned networks."""
        check_mask_kept(update)
        check_values(self.local, update.mask, update.tensors)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Put the values of each network to their places."""
        tensors = {name: Dense(values_at(update.mask, name, payload)) for name, payload in update.tensors.items()}
        return replace(update, tensors=tensors)


@dataclass(frozen=True, slots=True, eq=False)
class _DealtNetworks:
    """The channels of devices: as many networks as each can train."""

    graph: ModelGraph
    of: int
    """How many networks the whole model is split into."""
    costs: dict[object, Cost] = field(default_factory=dict)
    """Costs by the number of networks and the layers that are trained."""

    def masks(
        self,
        estimates: Mapping[str, RoundEstimate],
        round_context: RoundContext,
        trained: Collection[str] | None = None,
    ) -> dict[str, Mask]:
        """Return the networks of each device, with these layers trained, or all; devices that none fit are left out."""
        layers = frozenset(self.graph.trainable_layers if trained is None else trained)
        counts = {device: self._affordable(estimate, layers) for device, estimate in estimates.items()}
        dealt = _dealt({device: count for device, count in counts.items() if count}, self.of, round_context)
        joined = {chosen: joined_networks(self.graph, chosen, self.of) for chosen in set(dealt.values())}
        masks = {chosen: Mask(self.graph, layers, mask.kept, mask.held) for chosen, mask in joined.items()}
        return {device: masks[chosen] for device, chosen in dealt.items()}

    def fits_at(self, estimate: RoundEstimate, widths: Mapping[str, int], trained: Collection[str]) -> bool:
        """Return whether a device can train these layers of the networks that have these widths together."""
        count = min(widths[name] // width for name, width in network_widths(self.graph, self.of).items())
        return self._fits(estimate, count, frozenset(trained))

    def _affordable(self, estimate: RoundEstimate, trained: frozenset[str]) -> int:
        """Return how many networks a device can train; none if its engine runs compiled programs."""
        if estimate.on_rungs:
            return 0
        return next((count for count in range(self.of, 0, -1) if self._fits(estimate, count, trained)), 0)

    def _fits(self, estimate: RoundEstimate, count: int, trained: frozenset[str]) -> bool:
        use = _use(estimate, self._cost(1, trained), count, self._cost(count, trained))
        return not estimate.participant.budget.exceeded_by(use)

    def _cost(self, count: int, trained: frozenset[str]) -> Cost:
        """Return the cost of the arrays of some networks."""
        key = count, trained
        if key not in self.costs:
            widths = {name: count * width for name, width in network_widths(self.graph, self.of).items()}
            self.costs[key] = cost_of(self.graph, widths, trained)
        return self.costs[key]


def _use(estimate: RoundEstimate, one: Cost, count: int, around: Cost) -> Budget:
    """Return what a round takes with some networks like this one: every limit counts all of them.

    They run one after the other, each cut out of the arrays of all.
    """
    use = replace(estimate, load=TrainingLoad(runs=count)).use(one, around=around if count > 1 else None)
    share, trained = use.kept_fraction, use.trainable_parameters
    return replace(
        use,
        kept_fraction=None if share is None else min(share * count, 1.0),
        trainable_parameters=None if trained is None else trained * count,
    )


def _dealt(counts: Mapping[str, int], of: int, round_context: RoundContext) -> dict[str, tuple[int, ...]]:
    """Return which networks each device trains, in ascending order.

    They are dealt in turn, so that each is trained about as often.
    """
    order = np.argsort(bits(derive(round_context.seed, "networks"), 0, of), kind="stable").tolist()
    devices = sorted(counts, key=lambda device: (derive(round_context.seed, "turn", device), device))
    dealt, first = {}, 0
    for device in devices:
        dealt[device] = tuple(sorted(order[place % of] for place in range(first, first + counts[device])))
        first += counts[device]
    return {device: dealt[device] for device in counts}
