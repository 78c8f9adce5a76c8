"""Which channels: how wide each device's part is, and where its channels lie. The setting that strategies share."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from edgefl.masks import Mask
from edgefl.strategies.local_round import LocalRound
from edgefl.strategies.strategy import Moment
from edgefl.values import check_fields

__all__ = ["Width", "Widths"]


class Width(StrEnum):
    """How wide the part of a device is."""

    FIT = "fit"
    """As wide as it can train within its budget."""
    FULL = "full"
    """All of the model; a device that cannot train it is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """The channels that devices get."""

    width: Width = Width.FIT

    def __post_init__(self) -> None:
        check_fields(self)

    def masks(self, rounds: Mapping[str, LocalRound], moment: Moment) -> dict[str, Mask]:
        """Return the channels of each device, with every layer trained; a device that none fit is left out."""
        fit = self.width is Width.FIT
        found = {device: one.widest_mask() if fit else one.whole_mask() for device, one in rounds.items()}
        return {device: mask for device, mask in found.items() if mask is not None}
