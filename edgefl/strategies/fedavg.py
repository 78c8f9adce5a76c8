"""Strategy `fedavg`: devices train their submodel by gradient descent, and the new values are averaged.

McMahan et al. 2017, Algorithm 1, with the submodels of HeteroFL (Diao et al. 2021): a device trains the widest submodel
of leading channels that it can train in time, and each coordinate is averaged over the devices that held it. With a
proximal term it is FedProx. Channels, frozen layers and the uplink are settings, so other methods can be mixed from
here; methods with a name and defaults of their own have a file of their own.
"""

from dataclasses import dataclass
from typing import ClassVar

from edgefl.strategies.composable_strategy import ComposableStrategy

__all__ = ["FedAvg"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedAvg(ComposableStrategy):
    """Federated averaging."""

    name: ClassVar[str] = "fedavg"
