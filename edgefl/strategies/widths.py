"""Which channels each device trains, by width and placement: the setting that strategies share.

A width follows only from the device's budget, so it changes only with the budget. Where its channels lie may change
from round to round:

    leading   0, 1, ..., w - 1             HeteroFL (Diao et al. 2021), FjORD (Horvath et al. 2021)
    rolling   i, i + 1, ..., i + w - 1     FedRolex (Alam et al. 2022), Algorithm 1: i = round mod K, and channel K is
                                           channel 0 again, so in K rounds every channel is trained w times
    random    w of the K channels          Federated Dropout (Caldas et al. 2018), drawn for each device and round

K is a group's width in the whole model, w that of the submodel: `kept_width`, which rounds to what norms allow. The
papers round fractions down or up; theirs are powers of two, and nothing is rounded.

A device whose engine runs compiled programs gets widths of its rungs (`round_estimate.py`): with `fit` the widest that
it can train, with `full` the whole model or nothing, and a level that is no rung goes down to the next one.
"""

from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from edgefl.local_rules.ordered_dropout import parse_levels
from edgefl.masks import IndexArray, Mask, kept_width
from edgefl.model_graph import ChannelGroup, ModelGraph
from edgefl.noise import bits, derive
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import RoundContext
from edgefl.values import check_fields

__all__ = ["Placement", "Width", "Widths"]


class Width(StrEnum):
    """How wide the submodel of a device is."""

    FIT = "fit"
    """As wide as it can train within its budget."""
    FULL = "full"
    """The whole model; a device that cannot train it is left out."""
    LEVELS = "levels"
    """The widest of `levels` that it can train within its budget."""


class Placement(StrEnum):
    """Which channels a submodel of some width has."""

    LEADING = "leading"
    """The first ones."""
    ROLLING = "rolling"
    """A window that moves on by one channel per round, the same for all devices of a width."""
    RANDOM = "random"
    """Random ones, for every device in every round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """The channels that devices get."""

    width: Width = Width.FIT
    levels: str = "1, 0.5, 0.25, 0.125, 0.0625"
    """Fractions of the model's width that `width = "levels"` chooses from. These are HeteroFL's."""
    placement: Placement = Placement.LEADING

    def __post_init__(self) -> None:
        check_fields(self)
        parse_levels(self.levels)

    def masks(
        self,
        estimates: Mapping[str, RoundEstimate],
        round_context: RoundContext,
        trained: Collection[str] | None = None,
    ) -> dict[str, Mask]:
        """Return the channels of each device; a device that none fit is left out.

        `trained` are the layers that the masks train and that must fit the budget; None is every layer.
        """
        sizes = _Sizes(self, trained, {})
        found = {device: sizes.of(estimate) for device, estimate in estimates.items()}
        return {device: self._placed(mask, device, round_context) for device, mask in found.items() if mask is not None}

    def _placed(self, mask: Mask, device: str, round_context: RoundContext) -> Mask:
        """Return the mask with its channels placed elsewhere; `mask` has the leading ones."""
        if self.placement is Placement.LEADING:
            return mask
        kept = {
            group.name: self._channels(group, mask.widths[group.name], device, round_context) for group in _cut(mask)
        }
        return Mask(mask.graph, mask.trained, {**mask.kept, **kept}, {})

    def _channels(self, group: ChannelGroup, width: int, device: str, round_context: RoundContext) -> IndexArray:
        if self.placement is Placement.ROLLING:
            return (round_context.round + np.arange(width)) % group.width
        draws = bits(derive(round_context.seed, "channels", device, group.name), 0, group.width)
        return np.argsort(draws, kind="stable")[:width]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The widths of devices, with caches that the devices share."""

    widths: Widths
    trained: Collection[str] | None
    leading: MutableMapping[float, Mask]

    def of(self, estimate: RoundEstimate) -> Mask | None:
        """Return the widest mask of leading channels that fits."""
        if self.widths.width is Width.FIT:
            return estimate.widest(self.trained)
        if self.widths.width is Width.FULL:
            whole = self._mask(estimate.graph, 1.0)
            return whole if estimate.can_train(whole) else None
        levels = (self._mask(estimate.graph, level) for level in parse_levels(self.widths.levels))
        fitting = (estimate.widest_within(mask) for mask in levels)
        return next((mask for mask in fitting if mask is not None), None)

    def _mask(self, graph: ModelGraph, level: float) -> Mask:
        if level not in self.leading:
            kept = {group.name: range(kept_width(group, level)) for group in graph.groups}
            self.leading[level] = Mask.of(graph, trained=self.trained, kept=kept)
        return self.leading[level]


def _cut(mask: Mask) -> list[ChannelGroup]:
    return [group for group in mask.graph.groups if mask.widths[group.name] < group.width]
