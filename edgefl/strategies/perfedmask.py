"""Strategy `perfedmask`: every device has the whole model, and trains the layers that it can afford.

Setayesh et al., "PerFedMask: Personalized Federated Learning with Optimized Masking Vectors", ICLR 2023, Algorithm 1.
The head does not change during the federation. Which further layers each device freezes is planned for all of them
together, to minimise the bias of the average (Eq. 9; `freezing.py` and `edgefl.planning.freezing`). Devices train the
rest (Eq. 1); each layer is averaged over the devices that trained it (Eq. 3), weighted by samples as in the authors'
code, and a layer that no device trained keeps its values. At the end every device fine-tunes all parameters on its own
data.

The defaults are those of the authors' code: rate 0.1, times 0.1 at a half and at three quarters of the rounds, momentum
0.9, weight decay 5e-4, 5 epochs of fine-tuning. The paper plans once, for all devices; here every round is planned for
its participants, which is the same if all take part.

With `width = "levels"` it is the paper's combination with HeteroFL (Table 2): fewer channels, and fewer layers of them
trained. `explain` says how good a plan is: its bias, a lower bound on the bias of every plan, and the unused budget.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.local_rules.descent import Schedule
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.freezing import Freezing, FrozenLayers
from edgefl.strategies.personalisation import Personalisation
from edgefl.strategies.widths import Width, Widths

__all__ = ["PerFedMask", "authors_descent"]


def authors_descent() -> Descent:
    """Return how the authors' code trains PerFedMask and FedBABU."""
    return Descent(learning_rate=0.1, momentum=0.9, weight_decay=5e-4, schedule=Schedule.STEP_DECAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerFedMask(ComposableStrategy):
    """Federated averaging of planned layers, then fine-tuning."""

    name: ClassVar[str] = "perfedmask"
    descent: Descent = field(default_factory=authors_descent)
    widths: Widths = field(default_factory=lambda: Widths(width=Width.FULL))
    freezing: Freezing = field(default_factory=lambda: Freezing(frozen=FrozenLayers.PLANNED))
    personal: Personalisation = field(default_factory=lambda: Personalisation(fine_tune_epochs=5))
