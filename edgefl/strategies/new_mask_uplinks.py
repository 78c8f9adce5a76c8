"""The uplinks of Hermes, FedSpa and Sub-FedAvg: a new mask arrives with the update.

Hermes prunes before it trains. The tensors have the widths of the new mask, which is the submodel that was trained.
Once the mask is checked, the rest is an ordinary upload of a smaller submodel: the inner uplink decides what travels,
values or bits.

FedSpa exchanges weights or channels after it trains. Algorithm 1, line 17: U = w_start - w_end at the mask of the plan;
the mask of the next round goes with it (line 19). The given weights minus U are new values again, which every average
understands.

Sub-FedAvg prunes weights after it trains. What is left comes as rows of values in the order of the new mask.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.local_rules import ChannelPruning, ChannelRegrow, LocalRule, PrunedNoise, PruneRegrow, WeightPruning
from edgefl.local_rules.channel_removal import step_of
from edgefl.local_rules.prune_regrow import RegrowMethod
from edgefl.local_rules.submodel_channels import without_channels
from edgefl.masks import Mask, gather
from edgefl.model_graph import cost_of
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.update_checks import check_mask_kept, check_values, values_at
from edgefl.strategies.uplink import Uplink, rule_settings
from edgefl.values import RuleSettings
from edgefl.wire import Dense, Sparse

__all__ = ["DifferenceUplink", "PrunedUplink", "PrunedWeightsUplink", "check_pruned", "trained_submodel"]


@dataclass(frozen=True, slots=True)
class PrunedUplink:
    """Devices prune channels, train what is left, and send that: Hermes."""

    local: ChannelPruning | PrunedNoise
    inner: Uplink
    """How the remaining channels are sent."""

    @property
    def rule(self) -> RuleSettings:
        """The rule that prunes."""
        return rule_settings(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse a mask that pruning cannot have made, and tensors that do not have its widths."""
        check_pruned(update, self.local.target, self.local.multiple)
        self.inner.check(trained_submodel(update))

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Return the new values of the remaining channels."""
        return self.inner.values(trained_submodel(update))


@dataclass(frozen=True, slots=True)
class DifferenceUplink:
    """Devices send the decrease of their weights and the mask of their next round: FedSpa."""

    local: PruneRegrow | ChannelRegrow

    @property
    def rule(self) -> RuleSettings:
        """The rule that exchanges weights or channels."""
        return rule_settings(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse a mask of another size than the planned one, and tensors that do not have the planned shapes."""
        if self.local.method is RegrowMethod.STATIC:
            check_mask_kept(update)
        elif update.next_mask is not None:
            _check_layers(update.mask, update.next_mask, fix="Exchange weights; leave the layers as they are.")
            check_exchange = _check_widths if isinstance(self.local, ChannelRegrow) else _check_counts
            check_exchange(update.mask, update.next_mask)
        check_values(self._as_sent(update), update.mask, update.tensors)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Subtract U from what the device was given."""
        mask, lost = update.mask, update.tensors
        given = gather(mask, update.base, lost)
        new = {name: Dense(given[name] - values_at(mask, name, payload)) for name, payload in lost.items()}
        return replace(update, tensors=new, next_mask=None)

    def _as_sent(self, update: ClientUpdate) -> LocalRule:
        """Return the rule in the form of an update: clients that do not know `values_only` send positions too."""
        if not isinstance(self.local, PruneRegrow):
            return self.local
        return replace(self.local, values_only=not any(isinstance(one, Sparse) for one in update.tensors.values()))


@dataclass(frozen=True, slots=True)
class PrunedWeightsUplink:
    """Devices prune weights, and send the values of those that are left: Sub-FedAvg."""

    local: WeightPruning

    @property
    def rule(self) -> RuleSettings:
        """The rule that prunes."""
        return rule_settings(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse a mask that pruning cannot have made, and tensors that do not have its weights."""
        given, found = update.mask, update.next_mask
        if found is not None:
            _check_layers(given, found, fix="Prune weights; leave the layers as they are.")
            _check_channels(given, found)
            _check_lost(given, found, self.local.lost(given))
        check_values(self.local, trained_submodel(update).mask, update.tensors)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Return the new values of the remaining weights."""
        left = trained_submodel(update)
        dense = {name: Dense(values_at(left.mask, name, payload)) for name, payload in left.tensors.items()}
        return replace(left, tensors=dense)


def trained_submodel(update: ClientUpdate) -> ClientUpdate:
    """Return an update whose mask is the submodel that was trained, as if the plan had asked for it."""
    left = update.next_mask
    return update if left is None else replace(update, mask=left, next_mask=None)


def check_pruned(update: ClientUpdate, target: float, multiple: int = 1) -> None:
    """Refuse a new mask unless it is the planned one without some channels, and pruning could go that far."""
    given, found = update.mask, update.next_mask
    if found is None:
        return
    for name, kept in found.kept.items():
        if not np.isin(kept, given.kept[name]).all():
            raise WireFormatError(
                f"the new mask keeps channels of group {name!r} that the mask of the plan does not",
                fix="Masks only lose channels: send the given mask without the pruned ones.",
            )
    fix = "Change only the channels of the given mask."
    _check_layers(given, found, fix=fix)
    if without_channels(given, found.kept).digest != found.digest:
        raise WireFormatError("the new mask holds other weights than the mask of the plan", fix=fix)
    if not _could_prune(given, found, target, multiple):
        raise WireFormatError(
            f"the new mask keeps {found.cost.parameters:,} of {found.graph.parameters:,} parameters, but pruning stops "
            f"at a share of {target:g}",
            fix="Stop pruning at the channel that reaches the target.",
        )


def _check_layers(given: Mask, found: Mask, *, fix: str) -> None:
    if found.trained != given.trained:
        raise WireFormatError("the new mask trains other layers than the mask of the plan", fix=fix)


def _could_prune(given: Mask, found: Mask, target: float, multiple: int) -> bool:
    """Return whether the last channels to go, whichever they were, went from a submodel above the target."""
    groups = [group for group in found.graph.groups if found.widths[group.name] < given.widths[group.name]]
    before = ({**found.widths, group.name: found.widths[group.name] + step_of(group, multiple)} for group in groups)
    bound = target * found.graph.parameters
    return not groups or any(cost_of(found.graph, widths).parameters > bound for widths in before)


def _check_widths(given: Mask, found: Mask) -> None:
    """Refuse other widths than before, and single weights that are left out."""
    for name, width in given.widths.items():
        if found.widths[name] != width:
            raise WireFormatError(
                f"the new mask keeps {found.widths[name]} channels of group {name!r}, but had {width}",
                fix="Take up as many channels of each group as were given up.",
            )
    if found.held:
        raise WireFormatError(
            f"the new mask does not hold every weight of {min(found.held)!r}", fix="Exchange whole channels."
        )


def _check_channels(given: Mask, found: Mask) -> None:
    for group, kept in given.kept.items():
        if not np.array_equal(found.kept[group], kept):
            raise WireFormatError(
                f"the new mask keeps other channels of group {group!r} than the mask of the plan",
                fix="Change single weights within the given channels.",
            )


def _check_lost(given: Mask, found: Mask, lost: Mapping[str, int]) -> None:
    """Refuse weights that the planned mask does not hold, and another number of lost ones."""
    for name in sorted({*given.held, *found.held}):
        before, after = (m.held.get(name, np.ones(m.shapes[name], np.bool_)) for m in (given, found))
        if np.any(after & ~before):
            raise WireFormatError(
                f"the new mask holds weights of {name!r} that the mask of the plan does not",
                fix="Masks only lose weights: send the given mask without the pruned ones.",
            )
        gone, due = int(np.count_nonzero(before & ~after)), lost.get(name, 0)
        if gone != due:
            raise WireFormatError(
                f"the new mask lost {gone} weights of {name!r}, but pruning takes {due}",
                fix="Prune as many weights of each tensor as the rule says, or none of any.",
            )


def _check_counts(given: Mask, found: Mask) -> None:
    """Refuse other channels than before, another number of weights in a tensor, and exchanges in frozen layers."""
    _check_channels(given, found)
    for name in sorted({*given.held, *found.held}):
        before, after = (m.held.get(name, np.ones(m.shapes[name], np.bool_)) for m in (given, found))
        counts = int(np.count_nonzero(before)), int(np.count_nonzero(after))
        if counts[0] != counts[1]:
            raise WireFormatError(
                f"the new mask holds {counts[1]} weights of {name!r}, but held {counts[0]}",
                fix="Take up as many weights of each tensor as were given up.",
            )
        if name not in given.trained_tensors and not np.array_equal(before, after):
            raise WireFormatError(
                f"the new mask holds other weights of {name!r}, which is frozen",
                fix="Exchange only weights of trained layers.",
            )
