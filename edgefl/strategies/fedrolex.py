"""Strategy `fedrolex`: parts whose channels roll through the model, so that every channel is trained as often.

Alam et al., "FedRolex: Model-Heterogeneous Federated Learning with Rolling Sub-Model Extraction", NeurIPS 2022,
Algorithm 1. In round j a device of capacity beta trains the channels i, i + 1, ..., i + floor(beta K) - 1 of every
group of K channels, i = j mod K, beginning anew behind the last one. A coordinate is averaged over those that trained
it. So every channel is trained even of a model that fits no device, one window after the other.

Capacities are those of HeteroFL: 1, 1/2, 1/4, 1/8, 1/16. Everything is in `widths.py`; the authors' code
rolls the other way round, which makes no difference. Their norms and their scaler are HeteroFL's, see `heterofl.py`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.strategies.aggregation import AggregationSettings
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.freezing import Freezing
from edgefl.strategies.personalisation import Personalisation
from edgefl.strategies.uplinks import UplinkChoice
from edgefl.strategies.widths import Placement, Width, Widths
from edgefl.values import PositiveCount, check_fields

__all__ = ["FedRolex"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedRolex(ComposableStrategy):
    """Federated averaging of rolling parts."""

    name: ClassVar[str] = "fedrolex"
    descent: Descent = field(default_factory=Descent)
    widths: Widths = field(default_factory=lambda: Widths(width=Width.LEVELS, placement=Placement.ROLLING))
    freezing: Freezing = field(default_factory=Freezing)
    uplinks: UplinkChoice = field(default_factory=UplinkChoice)
    averaging: AggregationSettings = field(default_factory=AggregationSettings)
    personal: Personalisation = field(default_factory=Personalisation)
    assumed_samples: PositiveCount = 1000

    def __post_init__(self) -> None:
        check_fields(self)
