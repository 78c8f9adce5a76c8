"""Which channels: how wide each device's part is, and where its channels lie. The setting that strategies share.

A width follows from the device's budget and nothing else, so it stays as long as the budget does. Where its channels
lie may change from round to round:

    leading   0, 1, ..., w - 1             HeteroFL (Diao et al. 2021), FjORD (Horvath et al. 2021)
    rolling   i, i + 1, ..., i + w - 1     FedRolex (Alam et al. 2022), Algorithm 1: i = round mod K, and channel K is
                                           channel 0 again, so in K rounds every channel is trained w times
    random    w of the K channels          Federated Dropout (Caldas et al. 2018), drawn for each device and round

K is a group's width in the whole model, w that of the part: `kept_width`, which rounds to what norms allow. The papers
round fractions down or up; theirs are powers of two, and nothing is rounded.
"""

from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.ordered_dropout import levels_of
from edgefl.masks import IndexArray, Mask, kept_width
from edgefl.model_graph import ChannelGroup, Cost, ModelGraph
from edgefl.noise import bits, derive
from edgefl.planning import widest
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import RoundContext
from edgefl.values import check_fields

__all__ = ["Placement", "Width", "Widths"]


class Width(StrEnum):
    """How wide the part of a device is."""

    FIT = "fit"
    """As wide as it can train within its budget."""
    FULL = "full"
    """All of the model; a device that cannot train it is left out."""
    LEVELS = "levels"
    """The widest of `levels` that it can train within its budget."""


class Placement(StrEnum):
    """Which channels a part of some width has."""

    LEADING = "leading"
    """The first ones."""
    ROLLING = "rolling"
    """A window that moves on by one channel a round, the same for all devices of a width."""
    RANDOM = "random"
    """Others for every device in every round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """The channels that devices get."""

    width: Width = Width.FIT
    levels: str = "1, 0.5, 0.25, 0.125, 0.0625"
    """Fractions of the model's width that `width = "levels"` chooses from. These are HeteroFL's."""
    placement: Placement = Placement.LEADING

    def __post_init__(self) -> None:
        check_fields(self)
        levels_of(self.levels)

    def masks(
        self, rounds: Mapping[str, RoundEstimate], round_context: RoundContext, trained: Collection[str] | None = None
    ) -> dict[str, Mask]:
        """Return the channels of each device; a device that none fit is left out.

        `trained` are the layers that the masks train and that must fit the budget; None is every layer.
        """
        sizes = _Sizes(self, trained, {}, {})
        found = {device: sizes.of(one) for device, one in rounds.items()}
        return {device: self._placed(mask, device, round_context) for device, mask in found.items() if mask is not None}

    def _placed(self, mask: Mask, device: str, round_context: RoundContext) -> Mask:
        """Return the mask with channels elsewhere; a mask of the leading ones comes in."""
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
    """The widths of devices. What was counted for one device is not counted again for the next."""

    widths: Widths
    trained: Collection[str] | None
    costs: MutableMapping[int, Cost]
    leading: MutableMapping[float, Mask]

    def of(self, one: RoundEstimate) -> Mask | None:
        """Return the widest mask of leading channels that fits."""
        if self.widths.width is Width.FIT:
            try:
                return widest(one.graph, one.fits, trained=self.trained, known=self.costs)
            except MaskError:
                return None
        levels = (1.0,) if self.widths.width is Width.FULL else levels_of(self.widths.levels)
        masks = (self._mask(one.graph, level) for level in levels)
        return next((mask for mask in masks if one.fits(mask.cost)), None)

    def _mask(self, graph: ModelGraph, level: float) -> Mask:
        if level not in self.leading:
            kept = {group.name: range(kept_width(group, level)) for group in graph.groups}
            self.leading[level] = Mask.of(graph, trained=self.trained, kept=kept)
        return self.leading[level]


def _cut(mask: Mask) -> list[ChannelGroup]:
    return [group for group in mask.graph.groups if mask.widths[group.name] < group.width]
