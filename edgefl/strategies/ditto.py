"""Strategy `ditto`: federated averaging, and beside it a model of every device's own that is pulled to the global one.

Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021, Algorithm 1. The federation
sees FedAvg whose devices take twice the time; the rule `ditto` trains the model that stays on the device, and that the
device predicts with. What it reports as its accuracy is that model's.

Algorithm 1 averages with equal weights (line 8), which is the default of `weighing` here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import DittoRule as DittoRule
from edgefl.local_rules.descent import NotNegative, Positive
from edgefl.masks import Mask
from edgefl.strategies.aggregation import AggregationSettings, UpdateWeighting
from edgefl.strategies.averaging_strategy import AveragingStrategy
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import Model, RoundContext
from edgefl.strategies.uplink import NewValues, Uplink
from edgefl.strategies.uplinks import Sent
from edgefl.strategies.widths import Widths
from edgefl.values import FieldError

__all__ = ["Ditto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ditto(AveragingStrategy):
    """Federated averaging with personal models."""

    name: ClassVar[str] = "ditto"
    models: ClassVar[int] = 2
    pull: NotNegative = 1.0
    """lambda: how strongly a device's own model is pulled to the global one."""
    own_rate: Positive | None = field(default=None, metadata={"absent": "that of the global model"})
    """The learning rate of the devices' own models."""
    widths: Widths = field(default_factory=Widths)
    sent: Sent = Sent.VALUES
    averaging: AggregationSettings = field(default_factory=lambda: AggregationSettings(weighing=UpdateWeighting.EQUAL))

    def check_settings(self) -> None:
        """Raise a `FieldError` if settings contradict each other."""
        if self.sent is not Sent.VALUES:
            raise FieldError(
                f"is {self.sent.value!r}, and Ditto's devices send new values: its rule trains two models at once, "
                "which no other rule does",
                fix="Leave it out",
                path=("sent",),
            )

    @property
    def uplink(self) -> Uplink:
        """New values of the global model."""
        return NewValues(DittoRule(descent=self.descent, pull=self.pull, own_rate=self.own_rate))

    def parts(
        self, model: Model, rounds: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device the part that it can train twice in time; leave out those that can train none."""
        return self.widths.masks(rounds, round_context)
