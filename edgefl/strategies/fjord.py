"""Strategy `fjord`: submodels of leading channels, of which every step trains a random width.

Horvath et al., "FjORD: Fair and Accurate Federated Learning under heterogeneous targets with Ordered Dropout", NeurIPS
2021, Algorithm 1. A device has a level p, the widest of the levels that it can train; the rule `ordered_dropout` trains
leading channels of all levels up to it. The server averages every coordinate over the devices whose level reaches it,
weighted by their samples. At the end any number of leading channels is a model, so `extract` needs no further training.

The levels are the paper's for its images (0.2, 0.4, ..., 1); rate and weight decay are those of the authors' code for
CIFAR-10. The paper's self-distillation is left out: the rule's file says why.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent, OrderedDropout
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.uplink import Uplink, ValuesUplink
from edgefl.strategies.uplink_choice import UplinkKind
from edgefl.strategies.widths import Placement, Width, Widths
from edgefl.values import FieldError

__all__ = ["FjORD"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FjORD(ComposableStrategy):
    """Federated averaging with ordered dropout."""

    name: ClassVar[str] = "fjord"
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.1, weight_decay=1e-4))
    widths: Widths = field(default_factory=lambda: Widths(width=Width.LEVELS, levels="1, 0.8, 0.6, 0.4, 0.2"))

    def check_settings(self) -> None:
        """Refuse other channels than the leading ones, and any other uplink than new values."""
        if self.widths.placement is not Placement.LEADING:
            raise FieldError(
                f"is {self.widths.placement.value!r}, but ordered dropout works on leading channels",
                fix="Leave it out, or choose the strategy 'fedrolex' or 'fedavg'",
                path=("placement",),
            )
        if self.uplinks.sent is not UplinkKind.VALUES:
            raise FieldError(
                f"is {self.uplinks.sent.value!r}, but FjORD's devices send new values: its rule draws a width for "
                "every step, which no other rule does",
                fix="Leave it out",
                path=("sent",),
            )

    @property
    def uplink(self) -> Uplink:
        """New values of the whole submodel."""
        return ValuesUplink(OrderedDropout(descent=self.descent, levels=self.widths.levels))
