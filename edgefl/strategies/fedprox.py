"""Strategy `fedprox`: federated averaging whose devices are pulled back to the model that they were given.

Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, Algorithm 2: each device minimises its loss
plus mu / 2 times the squared distance from the global model. The paper tries a mu of 0.001, 0.01, 0.1 and 1, and which
is best depends on the data; the default here is 0.01, because it does little harm where it does not help.

The paper also lets a device do fewer epochs than requested. Here a slower device gets a smaller submodel instead, or
with `width = "full"` is left out.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.strategies.composable_strategy import ComposableStrategy

__all__ = ["FedProx"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedProx(ComposableStrategy):
    """Federated averaging with a proximal term."""

    name: ClassVar[str] = "fedprox"
    descent: Descent = field(default_factory=lambda: Descent(proximal=0.01))
