"""The uplink: a local rule, and how the coordinator turns what devices send by it into new values.

Strategies that average (`averaging_strategy.py`) take the rule from the uplink, let it check each update, and get back
updates whose tensors are plain new values, whatever was on the wire. So one-bit updates work with any choice of
submodels and with every average.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from edgefl.local_rules import Descent, LocalRule, Sgd
from edgefl.local_rules.sgd import Codec
from edgefl.masks import Array, gather
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.update_checks import check_mask_kept, check_values, values_of
from edgefl.values import RuleSettings, settings_from
from edgefl.wire import Dense

__all__ = ["Uplink", "ValuesUplink", "add_change", "rule_settings"]


class Uplink(Protocol):
    """A local rule, and what its uploads mean."""

    @property
    def rule(self) -> RuleSettings:
        """The rule that devices train by."""
        ...

    def check(self, update: ClientUpdate) -> None:
        """Raise a `WireFormatError` unless the tensors are what the rule sends: names, codecs, shapes, dtypes, size."""
        ...

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Return a checked update with the new values of its trained tensors, dense, at the widths of its mask.

        The mask is that of the trained submodel: smaller than the planned one if the rule prunes before it trains.
        """
        ...


def rule_settings(rule: LocalRule) -> RuleSettings:
    """Return a rule in the form that a plan holds."""
    return RuleSettings(name=rule.name, settings=settings_from(rule))


def add_change(update: ClientUpdate, tensor: str, change: Array) -> Dense:
    """Return the new values of a tensor: what the device was given, plus a change, whose array is reused."""
    given = gather(update.mask, update.base, [tensor])[tensor]
    new: Array = np.add(given, change, out=change if change.dtype == given.dtype else None)
    new.flags.writeable = False  # a writeable array would be copied
    return Dense(new)


@dataclass(frozen=True, slots=True)
class ValuesUplink:
    """Devices send the new values of everything that they trained."""

    local: LocalRule
    codec: Codec = Codec.DENSE

    @classmethod
    def by_descent(cls, descent: Descent, codec: Codec = Codec.DENSE, *, sensitivity: bool = False) -> "ValuesUplink":
        """Return the uplink of devices that train by gradient descent, and may report sensitivities."""
        return cls(Sgd(descent=descent, codec=codec, sensitivity=sensitivity), codec)

    @property
    def rule(self) -> RuleSettings:
        """The local rule."""
        return rule_settings(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but the new values of what the plan trains."""
        check_mask_kept(update)
        check_values(self.local, update.mask, update.tensors)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Fill in what a sparse upload leaves out."""
        if self.codec is Codec.DENSE:
            return update
        return replace(update, tensors={name: Dense(values_of(p)) for name, p in update.tensors.items()})
