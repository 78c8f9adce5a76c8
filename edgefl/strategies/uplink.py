"""The seam of the uplink: what devices send after training, and how it becomes new values again.

An uplink is a local rule and its other end. Strategies that average new values (`averaged.py`) ask it for the rule, let
it check what came, and get back contributions whose tensors are plain new values, whatever was on the wire: so one-bit
updates can be combined with any choice of parts, and every average works on them.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from edgefl.local_rules import Descent, LocalRule, Sgd
from edgefl.local_rules.descent import weight_tensors
from edgefl.local_rules.sgd import Codec
from edgefl.masks import Array, gather
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.update_checks import check_mask_kept, check_values, values_of
from edgefl.values import RuleSettings, settings_from
from edgefl.wire import Bits, Dense, Expected

__all__ = ["NewValues", "Uplink", "check_bits", "settings_for", "updated"]


class Uplink(Protocol):
    """A local rule, and what its uploads mean."""

    @property
    def rule(self) -> RuleSettings:
        """The rule that devices train by."""
        ...

    def check(self, client_update: ClientUpdate) -> None:
        """Raise a `WireFormatError` unless the tensors are what the rule sends: names, codecs, shapes, dtypes, size."""
        ...

    def values(self, client_update: ClientUpdate) -> ClientUpdate:
        """Return a checked contribution with the new values of its trained tensors, dense, at the widths of its mask.

        The mask is the part that was trained: a smaller one than was given where the rule prunes before it trains.
        """
        ...


def settings_for(rule: LocalRule) -> RuleSettings:
    """Return a rule as a plan names it."""
    return RuleSettings(name=rule.name, settings=settings_from(rule))


def check_bits(client_update: ClientUpdate) -> None:
    """Refuse anything but bits of the trained matrices and kernels, and new values of the rest."""
    mask = client_update.mask
    check_mask_kept(client_update)
    bits = {name: Expected(mask.shapes[name], Bits.codec) for name in weight_tensors(mask)}
    check_values(mask, client_update.tensors, instead=bits)


def updated(client_update: ClientUpdate, tensor: str, update: Array) -> Dense:
    """Return new values: what the device was given of a tensor, and its update, which is used up."""
    given = gather(client_update.mask, client_update.base, [tensor])[tensor]
    new: Array = np.add(given, update, out=update if update.dtype == given.dtype else None)
    new.flags.writeable = False  # or it would be copied
    return Dense(new)


@dataclass(frozen=True, slots=True)
class NewValues:
    """Devices train by a rule that sends the new values of everything that they trained."""

    made: LocalRule
    codec: Codec = Codec.DENSE

    @classmethod
    def by_descent(cls, descent: Descent, codec: Codec = Codec.DENSE) -> "NewValues":
        """Return the uplink of devices that train by gradient descent."""
        return cls(Sgd(descent=descent, codec=codec), codec)

    @property
    def rule(self) -> RuleSettings:
        """The rule."""
        return settings_for(self.made)

    def check(self, client_update: ClientUpdate) -> None:
        """Refuse anything but the new values of what the device was to train."""
        check_mask_kept(client_update)
        check_values(client_update.mask, client_update.tensors, self.codec)

    def values(self, client_update: ClientUpdate) -> ClientUpdate:
        """Fill in what a sparse upload left out."""
        if self.codec is Codec.DENSE:
            return client_update
        return replace(client_update, tensors={name: Dense(values_of(p)) for name, p in client_update.tensors.items()})
