"""The uplink of Hermes where the coordinator prunes: an ordinary update, and a report of sensitivities beside it.

The report says how much the device's loss depends on each channel (`edgefl.local_rules.sensitivity`). It decides what
the device's next submodel loses, and never reaches an average: whatever a device reports, only its own mask depends on
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from edgefl.local_rules.channel_pruning import ChannelPruning, magnitudes, prune_by_scores
from edgefl.local_rules.sensitivity import channel_sensitivities, check_reported, is_report
from edgefl.masks import Mask, gather
from edgefl.model_graph import cost_of
from edgefl.planning import Rungs
from edgefl.strategies.largest_channels import narrowed
from edgefl.strategies.new_mask_uplinks import trained_submodel
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.uplink import Uplink
from edgefl.values import RuleSettings

__all__ = ["SensitivityUplink", "pruned_by_report"]


@dataclass(frozen=True, slots=True)
class SensitivityUplink:
    """Devices train the submodel that they were given, and report sensitivities with their update."""

    inner: Uplink
    """How new values are sent; its rule has `sensitivity` switched on."""

    @property
    def rule(self) -> RuleSettings:
        """The rule of the inner uplink."""
        return self.inner.rule

    def check(self, update: ClientUpdate) -> None:
        """Refuse a new mask, tensors that the rule does not send, and a report that is not one of sums of squares."""
        self.inner.check(update)
        check_reported(update.mask, update.tensors)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Return the new values without the report.

        A round that was open while the coordinator was upgraded may hold updates of devices that pruned themselves:
        they have the widths of the mask that came with them.
        """
        tensors = {name: payload for name, payload in update.tensors.items() if not is_report(update.mask, name)}
        return self.inner.values(trained_submodel(replace(update, tensors=tensors)))


def pruned_by_report(pruning: ChannelPruning, update: ClientUpdate) -> Mask | None:
    """Return a device's mask without its least sensitive channels; None if it keeps the mask of the plan.

    It keeps it below the accuracy, at the target size, and if its report is all zeros, which says nothing. On rungs the
    same scores take it to a rung (`_next_rung`); if there is none, it keeps it too.
    """
    mask, accuracy = update.mask, update.result.accuracy
    if accuracy is None or accuracy <= pruning.accuracy_threshold:
        return None
    scores = channel_sensitivities(mask, update.tensors)
    if not any(found.any() for found in scores.values()):
        return None
    how = {"rate": pruning.rate, "target": pruning.target}
    left = prune_by_scores(mask, lambda: scores, **how, scope=pruning.scope, multiple=pruning.multiple)
    if left.widths == mask.widths:
        return None
    if update.rungs is None:
        return left
    widths = _next_rung(update.rungs, mask, left, pruning.target)
    if widths is None:
        return None
    # A group without a report has no trained tensor. A rung cuts it with the others, by magnitude.
    return narrowed(mask, magnitudes(mask, gather(mask, update.base)) | dict(scores), widths)


def _next_rung(rungs: Rungs, mask: Mask, left: Mask, target: float) -> Mapping[str, int] | None:
    """Return the widths of the largest rung within `mask` that is no larger than `left`; None to keep the mask.

    A rung may lie below the target. The mask is kept if its own size is nearer to the target than the rung's, as a
    ratio: rungs are coarse, and a device that should keep 40 % would otherwise go from 56 % to 25 %.
    """
    for widths in rungs.below(mask.widths, 1):
        size = cost_of(mask.graph, widths).parameters
        if size <= left.cost.parameters and rungs.cover(widths, mask.trained, 1) is not None:
            wanted = target * mask.graph.parameters
            is_nearer = mask.cost.parameters * size >= wanted * wanted
            return widths if is_nearer and widths != mask.widths else None
    return None
