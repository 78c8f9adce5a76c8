"""Strategy `fedmrn`: devices learn which random noise to add to the model, and send one bit per weight.

Li et al., "Masked Random Noise for Communication-Efficient Federated Learning" (FedMRN), ACM MM 2024. It is federated
averaging with another uplink, and nothing else: submodels of any width, frozen layers and every average go with it. If
devices hold different submodels, the mean of Eq. 5 is over those that held and trained the coordinate.

Defaults are those of section 5.1.4: noise uniform in [-0.01, 0.01) with binary masks and in [-0.005, 0.005) with signed
ones, plain SGD; `noise_distribution` offers those of section 5.5. The learning rate is one of those that were tried
there: 0.1, where FedAvg has 0.03.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.uplink_choice import UplinkChoice, UplinkKind

__all__ = ["FedMRN"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedMRN(ComposableStrategy):
    """Federated masked random noise."""

    name: ClassVar[str] = "fedmrn"
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.1))
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=UplinkKind.MASKED_NOISE))

    def check_settings(self) -> None:
        """Refuse any other uplink."""
        self.uplinks.check_only(UplinkKind.MASKED_NOISE, self.name)
