"""Strategy `fedavg`: devices train their part of the model by gradient descent, and the new values are averaged.

McMahan et al. 2017, Algorithm 1, with the parts of HeteroFL (Diao et al. 2021): a device trains the widest submodel of
leading channels that it can train in time, and each coordinate is averaged over those that held it. With a proximal
term it is FedProx. Channels, frozen layers and the uplink are settings, so other methods can be mixed from here; those
with a name and defaults of their own have a file of their own.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.strategies.aggregation import AggregationSettings
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.freezing import Freezing
from edgefl.strategies.personalisation import Personalisation
from edgefl.strategies.uplinks import UplinkChoice
from edgefl.strategies.widths import Widths
from edgefl.values import PositiveCount, check_fields

__all__ = ["FedAvg"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedAvg(ComposableStrategy):
    """Federated averaging."""

    name: ClassVar[str] = "fedavg"
    descent: Descent = field(default_factory=Descent)
    widths: Widths = field(default_factory=Widths)
    freezing: Freezing = field(default_factory=Freezing)
    uplinks: UplinkChoice = field(default_factory=UplinkChoice)
    averaging: AggregationSettings = field(default_factory=AggregationSettings)
    personal: Personalisation = field(default_factory=Personalisation)
    assumed_samples: PositiveCount = 1000

    def __post_init__(self) -> None:
        check_fields(self)
