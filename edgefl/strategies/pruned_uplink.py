"""What devices send that lose channels before they train: Hermes.

The rule prunes first, so what comes back is as wide as the mask that comes with it, and that mask is the part that was
trained. Once it is clear that the mask could be an honest one, the rest is an ordinary upload of a smaller part: what
travels, values or bits, is the business of the uplink within this one.
"""

from dataclasses import dataclass, replace

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.local_rules import ChannelPruning, PrunedNoise
from edgefl.local_rules.channel_removal import step_of
from edgefl.local_rules.submodel_channels import without
from edgefl.masks import Mask
from edgefl.model_graph import cost_of
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.uplink import Uplink, settings_for
from edgefl.values import RuleSettings

__all__ = ["PrunedUplink", "check_shrunk", "trained_part"]


@dataclass(frozen=True, slots=True)
class PrunedUplink:
    """Devices prune channels, train what is left, and send that."""

    pruning: ChannelPruning | PrunedNoise
    inner: Uplink
    """What is sent of what is left."""

    @property
    def rule(self) -> RuleSettings:
        """The rule that prunes."""
        return settings_for(self.pruning)

    def check(self, update: ClientUpdate) -> None:
        """Refuse a mask that pruning cannot have made, and tensors that are not those of its widths."""
        check_shrunk(update, self.pruning.target, self.pruning.multiple)
        self.inner.check(trained_part(update))

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Return the new values of the channels that are left."""
        return self.inner.values(trained_part(update))


def trained_part(update: ClientUpdate) -> ClientUpdate:
    """Return a contribution whose mask is the part that was trained, as if it had been given so."""
    left = update.next_mask
    return update if left is None else replace(update, mask=left, next_mask=None)


def check_shrunk(update: ClientUpdate, target: float, multiple: int = 1) -> None:
    """Refuse a new mask unless it is the given one without some channels, and pruning had reason to go so far."""
    given, found = update.mask, update.next_mask
    if found is None:
        return
    for name, kept in found.kept.items():
        if not np.isin(kept, given.kept[name]).all():
            raise WireFormatError(
                f"the new mask keeps channels of group {name!r} that the mask of the plan does not",
                fix="Masks only lose channels: send the given mask without those that were pruned.",
            )
    if without(given, found.kept).digest != found.digest:
        raise WireFormatError(
            "the new mask trains other layers or holds other weights than the mask of the plan",
            fix="Change nothing of the given mask but its channels.",
        )
    if not _had_reason(given, found, target, multiple):
        raise WireFormatError(
            f"the new mask keeps {found.cost.parameters:,} of {found.graph.parameters:,} parameters, and pruning ends "
            f"at a share of {target:g}",
            fix="Prune no further than to the channel that reaches the target.",
        )


def _had_reason(given: Mask, found: Mask, target: float, multiple: int) -> bool:
    """Return whether the last channels that went, whichever they were, went from a submodel above the target."""
    groups = [group for group in found.graph.groups if found.widths[group.name] < given.widths[group.name]]
    before = ({**found.widths, group.name: found.widths[group.name] + step_of(group, multiple)} for group in groups)
    bound = target * found.graph.parameters
    return not groups or any(cost_of(found.graph, widths).parameters > bound for widths in before)
