"""Strategy `per_fedavg`: devices look for a model that a little training on their own data makes good.

Fallah, Mokhtari and Ozdaglar, "Personalized Federated Learning with Theoretical Guarantees: A Model-Agnostic
Meta-Learning Approach", NeurIPS 2020, Algorithm 1. Devices train by the rule `maml`, in its variant HF or FO, and the
coordinator averages their new values. At the end every device adapts the model to its own data. A baseline of Hermes.

What the paper leaves open, and what is done here:
- The server's average is over the devices of a round, each counting the same. For unequal numbers of samples
  `weighing` has FedAvg's.
- The rate of the adaptation at the end is that of the adaptation while learning (alpha), because that is what the
  model was made for. The paper takes one step, or a few; here a pass over the data (`fine_tune_epochs`).
- alpha is 0.01, as in the paper's experiments; beta is the learning rate. Both are worth tuning: what adapts in one
  step with one alpha does not with another.
- The accuracy that a device reports in a round is that of the model before its adaptation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from edgefl.local_rules import Maml
from edgefl.local_rules.descent import Positive
from edgefl.local_rules.maml import MetaGradient
from edgefl.planning import TrainingLoad
from edgefl.strategies.aggregation import AggregationSettings, UpdateWeighting
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.personalisation import Personalisation
from edgefl.strategies.strategy import Model, Participant, PlannedTask, RoundContext
from edgefl.strategies.uplink import Uplink, ValuesUplink
from edgefl.strategies.uplink_choice import UplinkKind
from edgefl.values import FieldError

__all__ = ["PerFedAvg"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerFedAvg(ComposableStrategy):
    """Federated averaging of meta-learning, then adaptation."""

    name: ClassVar[str] = "per_fedavg"
    variant: MetaGradient = MetaGradient.HESSIAN_FREE
    inner_rate: Positive = 0.01
    """alpha: the learning rate of the adaptation."""
    difference: Positive = 0.001
    """delta of HF: how far beside the model gradients are taken, in multiples of the gradient."""
    averaging: AggregationSettings = field(default_factory=lambda: AggregationSettings(weighing=UpdateWeighting.EQUAL))
    personal: Personalisation = field(default_factory=lambda: Personalisation(fine_tune_epochs=1))

    @property
    def load(self) -> TrainingLoad:
        """What an update takes: FO keeps the adapted weights; HF runs the engine once more than it takes steps, with
        g, the direction and the weights beside the model in memory.
        """
        if self.variant is MetaGradient.FIRST_ORDER:
            return TrainingLoad(runs=2, per=self.variant.batches, copies=1)
        return TrainingLoad(runs=4, per=self.variant.batches, copies=3)

    def check_settings(self) -> None:
        """Refuse any other uplink than new values."""
        if self.uplinks.sent is not UplinkKind.VALUES:
            raise FieldError(
                f"is {self.uplinks.sent.value!r}, but Per-FedAvg's devices send new values: its rule takes several "
                "gradients for an update, which no other rule does",
                fix="Leave it out",
                path=("sent",),
            )

    @property
    def uplink(self) -> Uplink:
        """New values of the model before its adaptation."""
        return ValuesUplink(
            Maml(descent=self.descent, variant=self.variant, inner_rate=self.inner_rate, difference=self.difference)
        )

    def personalise(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Let every device adapt its submodel, at the rate that it was learned for."""
        personal = replace(self.personal, fine_tune_rate=self.personal.fine_tune_rate or self.inner_rate)
        return ComposableStrategy.personalise(replace(self, personal=personal), model, participants, round_context)
