"""Strategy `fedbabu`: the head stays as it is while the body is averaged, and every device tunes both in the end.

Oh et al., "FedBABU: Toward Enhanced Representation for Federated Image Classification", ICLR 2022: PerFedMask with
devices that can all train the whole body. One that cannot is left out, unless another `width` gives it fewer channels.
Rate, schedule, momentum, decay and tuning are those of PerFedMask's code, which compares with it.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.strategies.aggregation import AggregationSettings
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.freezing import Freezing, Frozen
from edgefl.strategies.perfedmask import authors_descent
from edgefl.strategies.personalisation import Personalisation
from edgefl.strategies.uplinks import UplinkChoice
from edgefl.strategies.widths import Width, Widths
from edgefl.values import PositiveCount, check_fields

__all__ = ["FedBABU"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedBABU(ComposableStrategy):
    """Federated averaging of the body, then fine-tuning."""

    name: ClassVar[str] = "fedbabu"
    descent: Descent = field(default_factory=authors_descent)
    widths: Widths = field(default_factory=lambda: Widths(width=Width.FULL))
    freezing: Freezing = field(default_factory=lambda: Freezing(frozen=Frozen.HEAD))
    uplinks: UplinkChoice = field(default_factory=UplinkChoice)
    averaging: AggregationSettings = field(default_factory=AggregationSettings)
    personal: Personalisation = field(default_factory=lambda: Personalisation(fine_tune_epochs=5))
    assumed_samples: PositiveCount = 1000

    def __post_init__(self) -> None:
        check_fields(self)
