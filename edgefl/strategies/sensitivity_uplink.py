"""The uplink of Hermes where the coordinator prunes: an ordinary update, and a report of sensitivities beside it.

The report says how much the device's loss depends on each channel (`edgefl.local_rules.sensitivity`). It decides what
the device's next submodel loses, and never reaches an average: whatever a device reports, only its own mask depends on
it.
"""

from dataclasses import dataclass, replace

from edgefl.local_rules.channel_pruning import ChannelPruning, magnitudes, prune_by_scores
from edgefl.local_rules.channel_removal import Scores
from edgefl.local_rules.sensitivity import channel_sensitivities, check_reported, is_report
from edgefl.masks import Mask, gather
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
    same scores take it to the largest rung within what would have been left; if there is none, it keeps it too.
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
    return left if update.rungs is None else _on_rung(update, update.rungs, left, scores)


def _on_rung(update: ClientUpdate, rungs: Rungs, left: Mask, scores: Scores) -> Mask | None:
    """Return the mask of the plan at the largest rung that is within `left` in every group; None if there is none."""
    mask = update.mask
    trainable = (widths for widths in rungs.below(left.widths, 1) if rungs.cover(widths, mask.trained, 1) is not None)
    widths = next(trainable, None)
    if widths is None:
        return None
    # A group without a report has no trained tensor. A rung cuts it with the others, by magnitude.
    return narrowed(mask, magnitudes(mask, gather(mask, update.base)) | dict(scores), widths)
