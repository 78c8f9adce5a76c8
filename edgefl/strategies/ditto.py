"""Strategy `ditto`: federated averaging, and a model of every device's own that is pulled to the global one.

Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021, Algorithm 1. The federation
sees FedAvg whose devices take twice the time; the rule `ditto` trains the model that stays on the device, and that the
device predicts with. The accuracy that it reports is that model's.

Algorithm 1 averages with equal weights (line 8), which is the default of `weighing` here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import DittoRule as DittoRule
from edgefl.local_rules.descent import NotNegative, Positive
from edgefl.masks import Mask
from edgefl.planning import TrainingLoad
from edgefl.strategies.aggregation import AggregationSettings, UpdateWeighting
from edgefl.strategies.averaging_strategy import AveragingStrategy
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import Model, RoundContext
from edgefl.strategies.uplink import Uplink, ValuesUplink
from edgefl.strategies.uplink_choice import UplinkKind
from edgefl.strategies.widths import Widths
from edgefl.values import FieldError

__all__ = ["Ditto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ditto(AveragingStrategy):
    """Federated averaging with personal models."""

    name: ClassVar[str] = "ditto"
    pull: NotNegative = 1.0
    """lambda: how strongly a device's own model is pulled to the global one."""
    own_rate: Positive | None = field(default=None, metadata={"absent": "that of the global model"})
    """The learning rate of the devices' own models."""
    widths: Widths = field(default_factory=Widths)
    sent: UplinkKind = UplinkKind.VALUES
    averaging: AggregationSettings = field(default_factory=lambda: AggregationSettings(weighing=UpdateWeighting.EQUAL))

    def check_settings(self) -> None:
        """Refuse any other uplink than new values."""
        if self.sent is not UplinkKind.VALUES:
            raise FieldError(
                f"is {self.sent.value!r}, but Ditto's devices send new values: its rule trains two models at once, "
                "which no other rule does",
                fix="Leave it out",
                path=("sent",),
            )

    @property
    def load(self) -> TrainingLoad:
        """A step with the global model and one with the device's own."""
        return TrainingLoad(runs=2, copies=1)

    @property
    def uplink(self) -> Uplink:
        """New values of the global model."""
        return ValuesUplink(DittoRule(descent=self.descent, pull=self.pull, own_rate=self.own_rate))

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device the submodel that it can train twice in time; leave out devices that can train none."""
        return self.widths.masks(estimates, round_context)
