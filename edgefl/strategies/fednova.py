"""Strategy `fednova`: federated averaging of changes that are divided by how far their training could go.

Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization", NeurIPS 2020. A
device with more samples takes more steps, and in a plain average its change counts for more than its samples. Here

    next = model + tau_eff * sum_i p_i (new_i - base_i) / |a_i|,         tau_eff = sum_i p_i |a_i|

where a_i is the weight of each gradient of device i in its change, and |a_i| is their sum: the steps tau without
momentum, (tau - rho (1 - rho^tau) / (1 - rho)) / (1 - rho) with a momentum of rho, (1 - (1 - alpha)^tau) / alpha with a
proximal term, alpha being rate times mu. All of them, and their mixtures, are one number: how far a weight moves whose
gradient is 1 in every step. `reach` takes these steps, with the rates of the schedule; the unit cancels out. Weight
decay is part of the gradient.

What the paper leaves open, and what is done here:
- Devices may have different submodels: p_i is then divided by the holders' p, as in every average here, and tau_eff is
  that of the whole round, one number for all coordinates.
- With a proximal term the authors' code has sum_i p_i tau_i for tau_eff; here it is always sum_i p_i |a_i|, so that
  equal steps give exactly federated averaging.
- Running statistics are not sums of gradients, and are averaged as they are.
- A device reports its own number of steps. It is believed as far as its samples and the work of the round allow: at
  least one pass. Since it also reports its own number of samples, no reach counts for more than four times the median
  one in tau_eff, and with a median or a trimmed mean tau_eff is the median.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from edgefl.local_rules import Descent, TrainingInput
from edgefl.masks import gather
from edgefl.model_graph import TensorRole
from edgefl.strategies.aggregation import AggregationMethod, aggregate, most_counted, update_weight
from edgefl.strategies.averaging_strategy import MappedUpdates
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates, Model, RoundContext
from edgefl.strategies.update_checks import values_of
from edgefl.strategies.uplink import add_change
from edgefl.values import FieldError, LocalResult, LocalWork

__all__ = ["FedNova", "plausible_steps", "reach"]

_MOST_STEPS = 100_000
"""The largest number of steps that counts: a stranger's number must not keep the coordinator busy."""
_MOST_TIMES_MEDIAN = 4.0
"""In tau_eff a device's reach counts up to this many times the median one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FedNova(ComposableStrategy):
    """Normalised averaging."""

    name: ClassVar[str] = "fednova"

    def check_settings(self) -> None:
        """Refuse a proximal term that overshoots."""
        if self.descent.learning_rate * self.descent.proximal >= 1:
            raise FieldError(
                f"is {self.descent.proximal:g}, which times the learning rate is 1 or more: a step would overshoot "
                "the anchor of the proximal term",
                fix="Write a smaller one, such as 0.01",
                path=("proximal",),
            )

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Average the normalised changes."""
        reaches = _Reaches(self.descent, round_context, {})
        effective = self._effective(updates, reaches)

        def normalised(update: ClientUpdate) -> ClientUpdate:
            own = reaches.of(update)
            return _scaled(self.uplink.values(update), effective / own if own else 1.0)

        return replace(model, weights=aggregate(self.averaging, model, MappedUpdates(normalised, updates)))

    def _effective(self, updates: ClientUpdates, reaches: "_Reaches") -> float:
        """Return tau_eff. It takes another pass over the updates, which hold samples and steps."""
        weights, found = [], []
        most = most_counted(self.averaging, updates)
        for update in updates:
            weights.append(update_weight(self.averaging, update, most))
            found.append(reaches.of(update))
            del update  # or it would be in memory together with the next one
        if not sum(weights):
            return 0.0
        typical = float(np.median(found))
        if self.averaging.average in (AggregationMethod.MEDIAN, AggregationMethod.TRIMMED):
            return typical
        return float(np.average(np.minimum(found, _MOST_TIMES_MEDIAN * typical), weights=weights))


@dataclass(frozen=True, slots=True)
class _Reaches:
    """The reach of each device's training, cached by number of steps."""

    descent: Descent
    round_context: RoundContext
    known: dict[tuple[int, int], float]

    def of(self, update: ClientUpdate) -> float:
        """Return the reach of one device's training."""
        steps, number = plausible_steps(update.result, self.round_context.work), update.result.round
        if (steps, number) not in self.known:
            inputs = TrainingInput(update.mask, {}, 0, round=number, rounds=self.round_context.rounds, steps=steps)
            self.known[steps, number] = reach(self.descent, inputs)
        return self.known[steps, number]


def plausible_steps(result: LocalResult, work: LocalWork) -> int:
    """Return the number of steps that a device took: what it reports, within what its samples allow."""
    batches = result.samples // work.batch_size
    most = min(work.most_steps or _MOST_STEPS, _MOST_STEPS)
    return min(max(result.steps, min(batches, most), 1), min(work.epochs * (batches + 1), most))


def reach(descent: Descent, inputs: TrainingInput) -> float:
    """Return how far a weight moves in a round whose gradient is 1 in every step."""
    way, speed = 0.0, 0.0
    for step in range(inputs.steps):
        pull = 1 - descent.proximal * way
        speed = descent.momentum * speed + pull
        way += descent.rate(inputs, step) * (pull + descent.momentum * speed if descent.nesterov else speed)
    return way


def _scaled(update: ClientUpdate, scale: float) -> ClientUpdate:
    """Return an update whose weights changed `scale` times as much."""
    tensors = dict(update.tensors)
    for name, payload in tensors.items():
        tensor = update.mask.graph.tensor[name]
        if tensor.role is not TensorRole.STATISTIC and tensor.dtype.startswith("float"):
            given = gather(update.mask, update.base, [name])[name]
            change = np.subtract(values_of(payload), given, out=given)
            change *= given.dtype.type(scale)
            tensors[name] = add_change(update, name, change)
    return replace(update, tensors=tensors)
