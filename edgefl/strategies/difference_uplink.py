"""What devices send that exchange weights or channels after they train: FedSpa.

Algorithm 1, line 17: U = w_start - w_end, at the mask that the device was given; the mask that it has found for the
next round goes with it (line 19). Taken off what was given, U is new values again, which every average understands.
"""

from dataclasses import dataclass, replace

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.local_rules import ChannelRegrow, PruneRegrow
from edgefl.local_rules.prune_regrow import RegrowMethod
from edgefl.local_rules.sgd import Codec
from edgefl.masks import Mask, gather
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.update_checks import check_mask_kept, check_values, values_of
from edgefl.strategies.uplink import settings_for
from edgefl.values import RuleSettings
from edgefl.wire import Dense

__all__ = ["Differences"]


@dataclass(frozen=True, slots=True)
class Differences:
    """Devices send what their weights lost, and the mask that they have next."""

    exchange: PruneRegrow | ChannelRegrow

    @property
    def rule(self) -> RuleSettings:
        """The rule that exchanges."""
        return settings_for(self.exchange)

    def check(self, update: ClientUpdate) -> None:
        """Refuse a mask that is larger or smaller than the given one, and tensors that are not those of the given."""
        if self.exchange.method is RegrowMethod.STATIC:
            check_mask_kept(update)
        elif update.next_mask is not None:
            self._check_exchange(update.mask, update.next_mask)
        check_values(update.mask, update.tensors, Codec.SPARSE)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Take what was lost off what was given."""
        mask, lost = update.mask, update.tensors
        given = gather(mask, update.base, lost)
        new = {name: Dense(given[name] - values_of(payload)) for name, payload in lost.items()}
        return replace(update, tensors=new, next_mask=None)

    def _check_exchange(self, given: Mask, found: Mask) -> None:
        if found.trained != given.trained:
            raise WireFormatError(
                "the new mask trains other layers than the mask of the plan",
                fix="Exchange weights; leave the layers as they are.",
            )
        if isinstance(self.exchange, ChannelRegrow):
            _check_widths(given, found)
        else:
            _check_counts(given, found)


def _check_widths(given: Mask, found: Mask) -> None:
    """Refuse other widths than before, and single weights that are left out."""
    for name, width in given.widths.items():
        if found.widths[name] != width:
            raise WireFormatError(
                f"the new mask keeps {found.widths[name]} channels of group {name!r}, and had {width}",
                fix="Take up as many channels of each group as were given up.",
            )
    if found.held:
        raise WireFormatError(
            f"the new mask does not hold every weight of {min(found.held)!r}", fix="Exchange whole channels."
        )


def _check_counts(given: Mask, found: Mask) -> None:
    """Refuse other channels than before, another number of weights in a tensor, and exchanges in frozen layers."""
    for group, kept in given.kept.items():
        if not np.array_equal(found.kept[group], kept):
            raise WireFormatError(
                f"the new mask keeps other channels of group {group!r} than the mask of the plan",
                fix="Exchange single weights within the channels that were given.",
            )
    for name in sorted({*given.held, *found.held}):
        before, after = (m.held.get(name, np.ones(m.shapes[name], np.bool_)) for m in (given, found))
        counts = int(np.count_nonzero(before)), int(np.count_nonzero(after))
        if counts[0] != counts[1]:
            raise WireFormatError(
                f"the new mask holds {counts[1]} weights of {name!r}, and held {counts[0]}",
                fix="Take up as many weights of each tensor as were given up.",
            )
        if name not in given.trained_tensors and not np.array_equal(before, after):
            raise WireFormatError(
                f"the new mask holds other weights of {name!r}, which is frozen",
                fix="Exchange weights of trained layers alone.",
            )
