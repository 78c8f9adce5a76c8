"""Which layers each device trains: the setting that strategies share.

    none      everything
    head      everything but the head, which is the same for all until devices fine-tune it: FedBABU (Oh et al. 2022)
    planned   freezes the head and as many whole blocks as needed to fit the budget: PerFedMask (Setayesh et al. 2023).
              The blocks are chosen for all devices of a round together, to minimise the bias of their average; see
              `edgefl.planning.freezing`

Freezing comes on top of channels. With `width = "full"` every device has the whole model, as in PerFedMask. With
another width a device gets the widest submodel of which it can train the last blocks, `least_trained` of its
parameters, and freezes what is too much. The planner counts in the whole model's blocks: a device with fewer channels
takes part as one whose budget of parameters is that of the blocks that it can train, counted from the head. So does a
device with several of Split-Mix's networks. So does a device whose engine runs compiled programs: a program trains all
layers from a block on, whichever of them are wanted, and of a planned choice that costs too much for that reason, the
device trains the part that fits.

Whatever the planner says, no device gets a submodel beyond its budget. If the devices of a round cannot train all
blocks between them, those that could train an untrained block take turns with it, from round to round. A block that no
device trains keeps its values.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

import numpy as np

from edgefl.errors import MaskError
from edgefl.masks import Mask
from edgefl.model_graph import Cost, ModelGraph, TensorRole, cost_of
from edgefl.planning.freezing import Block, FreezingDevice, FreezingPlan, PlanningMethod, freezing_blocks, freezing_plan
from edgefl.planning.freezing.bias import bias_of
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.sample_counts import MOST_TIMES_MEDIAN, sample_cap
from edgefl.strategies.strategy import RoundContext
from edgefl.strategies.widths import Width, Widths
from edgefl.values import Budget, FieldError, Fraction, check_fields

__all__ = ["ChannelChoice", "Freezing", "FrozenLayers", "DeviceMasks", "body_of"]

_Chosen = tuple[int, ...]
"""Indices of blocks, from the input on."""
_FitsAt = Callable[[RoundEstimate, Mapping[str, int], Collection[str]], bool]
"""Whether a device can train some layers at some widths within its budget."""


class FrozenLayers(StrEnum):
    """What devices do not train during the federation."""

    NONE = "none"
    HEAD = "head"
    PLANNED = "planned"
    """The head, and whatever else is beyond a device's budget."""


class ChannelChoice(Protocol):
    """Which channels devices get: `Widths`, or a strategy's own choice."""

    def masks(
        self,
        estimates: Mapping[str, RoundEstimate],
        round_context: RoundContext,
        trained: Collection[str] | None = None,
    ) -> Mapping[str, Mask]:
        """Return the channels of each device that can train these layers, or all of them, within its budget."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DeviceMasks:
    """A mask for each device, and figures about them."""

    masks: Mapping[str, Mask]
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freezing:
    """The layers that devices train."""

    frozen: FrozenLayers = FrozenLayers.NONE
    planner: PlanningMethod = PlanningMethod.AUTO
    """How blocks are chosen; all but the default are for comparisons."""
    unused_tolerance: Fraction = 0.05
    """The share of its budget that a device may leave unused for the benefit of the others."""
    least_trained: Fraction = 0.5
    """The share of its submodel that a device must be able to train, or it gets fewer channels, if `width` allows."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.unused_tolerance >= 1:
            raise FieldError(
                "must be below 1, or devices need not train at all",
                fix="Write for example 0.05",
                path=("unused_tolerance",),
            )

    def submodels(
        self,
        channels: ChannelChoice,
        estimates: Mapping[str, RoundEstimate],
        round_context: RoundContext,
        fits_at: _FitsAt | None = None,
    ) -> DeviceMasks:
        """Return the submodel of each device; a device that can train none is left out.

        `fits_at` is for strategies whose submodels take something else than one run of their widths.
        """
        if self.frozen is FrozenLayers.NONE or not estimates:
            return DeviceMasks(channels.masks(estimates, round_context))
        graph = next(iter(estimates.values())).graph
        if self.frozen is FrozenLayers.HEAD:
            return DeviceMasks(channels.masks(estimates, round_context, trained=body_of(graph)))
        blocks = freezing_blocks(graph)
        whole = isinstance(channels, Widths) and channels.width is Width.FULL
        least = [] if whole else _last_layers(blocks, self.least_trained)
        # Sorted by name: a plan does not depend on the order of devices.
        masks = dict(sorted(channels.masks(estimates, round_context, trained=least).items()))
        most = sample_cap([estimate.samples for estimate in estimates.values()], MOST_TIMES_MEDIAN)
        return _Fleet(graph, blocks, estimates, masks, {}, most, fits_at).submodels(self, round_context)


@lru_cache(maxsize=16)
def _cached_plan(
    graph: ModelGraph, devices: tuple[FreezingDevice, ...], method: PlanningMethod, tolerance: float, seed: int
) -> FreezingPlan:
    """Plan once for equal devices: a plan may take seconds, and every round of a steady fleet needs the same one."""
    return freezing_plan(graph, devices, method=method, tolerance=tolerance, seed=seed, beyond_budget=True)


def body_of(graph: ModelGraph) -> frozenset[str]:
    """Return the layers that can be trained and are not the head."""
    heads = {graph.layer_of[tensor.name] for tensor in graph.tensors if tensor.role is TensorRole.HEAD}
    body = frozenset(graph.trainable_layers) - heads
    if not body:
        raise MaskError(f"model {graph.name!r} is all head", fix="Train all of it, with frozen = 'none'.")
    return body


def _last_layers(blocks: Sequence[Block], share: float) -> list[str]:
    """Return the layers of the last blocks that have this share of all parameters: the cheapest ones to train."""
    layers: list[str] = []
    wanted, found = share * sum(block.size for block in blocks), 0
    for block in reversed(blocks):
        if not layers or found < wanted:
            layers += block.layers
            found += block.size
    return layers


@dataclass(frozen=True, slots=True, eq=False)
class _Fleet:
    """The devices of a round and their channels."""

    graph: ModelGraph
    blocks: tuple[Block, ...]
    estimates: Mapping[str, RoundEstimate]
    channels: Mapping[str, Mask]
    costs: dict[object, Cost]
    """A cache of costs: devices of the same width have equal costs."""
    most_samples: float
    """The most samples that a device counts for."""
    fits_at: _FitsAt | None
    """What decides whether layers fit, if it is not the cost of one run."""

    def submodels(self, settings: Freezing, round_context: RoundContext) -> DeviceMasks:
        """Let the planner choose, and make sure that everything fits."""
        plan = self._plan(settings, round_context)
        if plan is None:
            return DeviceMasks({})
        chosen = {device: self._fitting(device, plan) for device in self.channels}
        chosen |= self._taking_turns(chosen, round_context)
        chosen = {device: blocks for device, blocks in chosen.items() if blocks}
        masks = {device: self._mask(device, blocks) for device, blocks in chosen.items()}
        return DeviceMasks(masks, self._figures(chosen, plan) if chosen else {})

    def _plan(self, settings: Freezing, round_context: RoundContext) -> FreezingPlan | None:
        """Return the planner's plan; None if no device can train anything."""
        devices = tuple(self._device(device) for device in self.channels)
        # Equal devices have equal plans in every round, unless a random plan is requested.
        seed = round_context.seed if settings.planner is PlanningMethod.RANDOM else 0
        method, tolerance = settings.planner, settings.unused_tolerance
        try:
            # What is beyond budgets is removed below; otherwise the planner would refuse.
            return _cached_plan(self.graph, devices, method, tolerance, seed)
        except MaskError:
            return None

    def _device(self, device: str) -> FreezingDevice:
        """Return a device as the planner sees it: with all channels, or as one that can train the same blocks."""
        estimate, budget = self.estimates[device], self.estimates[device].participant.budget
        samples, weight = max(estimate.samples, 1), self._counted(device)
        own = self.channels[device]
        partial = own.held or any(width < self.graph.group[name].width for name, width in own.widths.items())
        if partial or estimate.on_rungs:
            able = sum(self.blocks[number].size for number in self._filled(device, self._from_head))
            return FreezingDevice(device_id=device, samples=weight, budget=Budget(trainable_parameters=able))
        return FreezingDevice(
            device_id=device,
            samples=weight,
            budget=budget,
            profile=estimate.participant.profile,
            batch=min(estimate.work.batch_size, samples),
            steps=max(estimate.load.engine_runs(estimate.steps), 1),
        )

    def _counted(self, device: str) -> int:
        """Return the samples that a device counts for in the average: a claim is bounded there too."""
        return int(max(min(self.estimates[device].samples, self.most_samples), 1))

    @property
    def _from_head(self) -> _Chosen:
        return tuple(reversed(range(len(self.blocks))))

    def _fitting(self, device: str, plan: FreezingPlan) -> _Chosen:
        """Return what a device trains: its planned blocks or, if they are too much, what fits from the head on."""
        chosen = self._wanted(device, plan)
        if not chosen or self._fits(device, chosen):
            return chosen
        return self._filled(device, sorted(self._from_head, key=lambda block: block not in chosen))

    def _wanted(self, device: str, plan: FreezingPlan) -> _Chosen:
        planned = set(plan.assignments[device].blocks)
        return tuple(number for number, block in enumerate(self.blocks) if block.name in planned)

    def _taking_turns(self, chosen: Mapping[str, _Chosen], round_context: RoundContext) -> dict[str, _Chosen]:
        """Return which devices train something else in this round, because the plan leaves blocks untrained."""
        left: dict[str, list[int]] = {}
        for place, block in enumerate(sorted(set(range(len(self.blocks))).difference(*chosen.values()))):
            able = [device for device in chosen if self._fits(device, (block,))]
            if able:
                left.setdefault(able[(round_context.round // 2 + place) % len(able)], []).append(block)
        found = {}
        for device, blocks in left.items():
            turn = round_context.round % (len(blocks) + 1)
            if turn:  # otherwise it is the turn of the planned blocks
                found[device] = self._filled(device, (blocks[turn - 1], *chosen[device][::-1]))
        return found

    def _filled(self, device: str, order: Sequence[int]) -> _Chosen:
        """Return the blocks that fit, taken in this order."""
        chosen: _Chosen = ()
        for block in order:
            larger = tuple(sorted((*chosen, block)))
            if self._fits(device, larger):
                chosen = larger
        return chosen

    def _fits(self, device: str, chosen: _Chosen) -> bool:
        estimate, widths = self.estimates[device], self.channels[device].widths
        if self.fits_at is not None:
            return self.fits_at(estimate, widths, self._layers(chosen))
        if estimate.on_rungs:
            return estimate.fits_at(widths, self._layers(chosen))
        return estimate.fits(self._cost(device, chosen))

    def _cost(self, device: str, chosen: _Chosen) -> Cost:
        widths = self.channels[device].widths
        key = tuple(widths.values()), chosen
        if key not in self.costs:
            self.costs[key] = cost_of(self.graph, widths, self._layers(chosen))
        return self.costs[key]

    def _mask(self, device: str, chosen: _Chosen) -> Mask:
        own = self.channels[device]
        return Mask(self.graph, frozenset(self._layers(chosen)), own.kept, own.held)

    def _layers(self, chosen: _Chosen) -> list[str]:
        return [layer for number in chosen for layer in self.blocks[number].layers]

    def _figures(self, chosen: Mapping[str, _Chosen], plan: FreezingPlan) -> dict[str, float]:
        """Return figures about the submodels. Bias, bound and unused are in parameters.

        The bound is the planner's, and is given only if every device trains exactly what was planned.
        """
        trained = np.zeros((len(chosen), len(self.blocks)), np.bool_)
        for row, blocks in zip(trained, chosen.values(), strict=True):
            row[list(blocks)] = True
        samples = np.array([self._counted(device) for device in chosen], np.float64)
        sizes, covered = np.array([block.size for block in self.blocks]), trained.any(axis=0)
        allowed = [plan.assignments[device].parameters + plan.assignments[device].unused for device in chosen]
        figures = {
            "bias": bias_of(trained[:, covered], samples / samples.sum()) * float(sizes[covered].sum()),
            "unused_parameters": float(np.maximum(0, allowed - trained @ sizes).sum()),
            "untrained_parameters": float(sizes[~covered].sum()),
            "freezing_devices": float(np.count_nonzero(~trained.all(axis=1))),
        }
        if all(self._wanted(device, plan) == chosen.get(device, ()) for device in self.channels):
            figures["bias_bound"] = plan.lower_bound
        return figures
