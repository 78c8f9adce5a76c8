"""Strategy `fedrolex`: submodels whose channels roll through the model, so that every channel is trained equally often.

Alam et al., "FedRolex: Model-Heterogeneous Federated Learning with Rolling Sub-Model Extraction", NeurIPS 2022,
Algorithm 1. In round j a device of capacity beta trains the channels i, i + 1, ..., i + floor(beta K) - 1 of every
group of K channels, i = j mod K, wrapping around after the last one. A coordinate is averaged over the devices that
trained it. So every channel is trained, even of a model that fits no device, one window after the other.

Capacities are those of HeteroFL: 1, 1/2, 1/4, 1/8, 1/16. Everything is in `widths.py`; the authors' code rolls the
other way, which makes no difference. Their norms and their scaler are HeteroFL's, see `heterofl.py`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.widths import Placement, Width, Widths

__all__ = ["FedRolex"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedRolex(ComposableStrategy):
    """Federated averaging of rolling submodels."""

    name: ClassVar[str] = "fedrolex"
    widths: Widths = field(default_factory=lambda: Widths(width=Width.LEVELS, placement=Placement.ROLLING))
