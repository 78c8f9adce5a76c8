"""Strategy `fedbabu`: the head does not change while the body is averaged; every device fine-tunes both at the end.

Oh et al., "FedBABU: Toward Enhanced Representation for Federated Image Classification", ICLR 2022: PerFedMask with
devices that can all train the whole body. A device that cannot is left out, unless another `width` gives it fewer
channels. Rate, schedule, momentum, decay and fine-tuning are those of PerFedMask's code, which compares with it.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.freezing import Freezing, FrozenLayers
from edgefl.strategies.perfedmask import authors_descent
from edgefl.strategies.personalisation import Personalisation
from edgefl.strategies.widths import Width, Widths

__all__ = ["FedBABU"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedBABU(ComposableStrategy):
    """Federated averaging of the body, then fine-tuning."""

    name: ClassVar[str] = "fedbabu"
    descent: Descent = field(default_factory=authors_descent)
    widths: Widths = field(default_factory=lambda: Widths(width=Width.FULL))
    freezing: Freezing = field(default_factory=lambda: Freezing(frozen=FrozenLayers.HEAD))
    personal: Personalisation = field(default_factory=lambda: Personalisation(fine_tune_epochs=5))
