"""Strategy `fedavg`: devices train their part of the model by gradient descent, and the new values are averaged.

McMahan et al. 2017, Algorithm 1, with the parts of HeteroFL (Diao et al. 2021): a device trains the widest submodel of
leading channels that it can train in time, and each coordinate is averaged over those that held it. With a proximal
term it is FedProx.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.masks import Mask
from edgefl.strategies.averaged import Averaged
from edgefl.strategies.averages import Averaging
from edgefl.strategies.local_round import LocalRound
from edgefl.strategies.personalising import Personalising
from edgefl.strategies.strategy import Model, Moment
from edgefl.strategies.uplink import Uplink
from edgefl.strategies.uplinks import UplinkChoice
from edgefl.strategies.widths import Widths
from edgefl.values import PositiveCount, check_fields

__all__ = ["Fedavg"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fedavg(Averaged):
    """Federated averaging."""

    name: ClassVar[str] = "fedavg"
    descent: Descent = field(default_factory=Descent)
    widths: Widths = field(default_factory=Widths)
    uplinks: UplinkChoice = field(default_factory=UplinkChoice)
    averaging: Averaging = field(default_factory=Averaging)
    personal: Personalising = field(default_factory=Personalising)
    assumed_samples: PositiveCount = 1000

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def uplink(self) -> Uplink:
        """What the settings say."""
        return self.uplinks.made(self.descent)

    def parts(self, model: Model, rounds: Mapping[str, LocalRound], moment: Moment) -> Mapping[str, Mask]:
        """Give every device the part that it can train in time; leave out those that can train none."""
        return self.widths.masks(rounds, moment)
