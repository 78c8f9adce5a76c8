"""Strategy `heterofl`: submodels of leading channels in a few fixed widths, averaged where they overlap.

Diao et al., "HeteroFL: Computation and Communication Efficient Federated Learning for Heterogeneous Clients", ICLR
2021. Complexity levels are fractions of the width, halved from level to level; a device keeps its level as long as its
budget does not change. Each coordinate is the plain mean over its holders: all devices count equally. Learning rate,
momentum, decay and schedule are those of the authors' code for CIFAR-10 (which has 5 epochs per round, batches of 10).

The three further parts of the method, and what becomes of them here:

Scaler: in training, the output of a layer of a submodel of width r is multiplied by 1 / r. The authors put it right in
front of a norm, and a norm that divides by the deviation of its input takes the factor out again: gradients with and
without it differ by the effect of epsilon beside a variance, some tenths of a percent at a sixteenth of the width and
less above it. So there is no scaler for layers followed by a norm. For others it would be the same as weights w / r
trained at a rate of 1 / r^2 and a weight decay of r^2; no rule here has rates for single tensors, so such layers are
trained without it. The paper's image networks have none.

Static batch norm: norms keep no statistics in training, and at the end the devices compute those of the whole model.
Models whose norms keep none are fine. If norms do keep them, those of the widest submodels of a round are averaged and
the others are not: what narrower submodels measured belongs to another model.

Masked loss: outputs of classes that a device does not have are set to zero, and the rows of the head for them are
averaged over the others. It is chosen when a model is exported (the loss `masked_cross_entropy`), so a federation has
it or not whatever the strategy says. The authors' server knows which classes a device has; this one does not. It
detects it: a row without a gradient has only decayed, so it is a multiple of what it was. Without the masked loss there
is no such row.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from edgefl.local_rules import Descent
from edgefl.local_rules.descent import Schedule
from edgefl.masks import Array, BoolArray, Mask, gather
from edgefl.model_graph import TensorRole
from edgefl.strategies.aggregation import AggregationSettings, UpdateWeighting, aggregate
from edgefl.strategies.averaging_strategy import MappedUpdates
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates, Model, RoundContext
from edgefl.strategies.update_checks import values_of
from edgefl.strategies.uplink_choice import UplinkKind
from edgefl.strategies.widths import Width, Widths

__all__ = ["HeteroFL", "trained_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeteroFL(ComposableStrategy):
    """Federated averaging of submodels in a few widths."""

    name: ClassVar[str] = "heterofl"
    descent: Descent = field(
        default_factory=lambda: Descent(
            learning_rate=0.1,
            momentum=0.9,
            weight_decay=5e-4,
            schedule=Schedule.STEP_DECAY,
            decay_at="0.375, 0.625",
        )
    )
    widths: Widths = field(default_factory=lambda: Widths(width=Width.LEVELS))
    masked_head: bool = True
    """Whether a row of the head is averaged only over devices that have its class. It needs a model with masked loss
    and devices that send values: if they send less, the trained rows cannot be detected, and all rows count."""
    averaging: AggregationSettings = field(default_factory=lambda: AggregationSettings(weighing=UpdateWeighting.EQUAL))

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Average rows of the head over the devices that trained them, and statistics over those with the widest
        submodels.
        """
        statistics = {tensor.name for tensor in model.graph.tensors if tensor.role is TensorRole.STATISTIC}
        widest = max((c.mask.cost.parameters for c in updates), default=0) if statistics else 0

        def counted(update: ClientUpdate) -> ClientUpdate:
            found = self.uplink.values(update)
            if found.mask.cost.parameters < widest:
                found = replace(found, tensors={n: p for n, p in found.tensors.items() if n not in statistics})
            return _with_trained_rows(found) if self.masked_head and self.uplinks.sent is UplinkKind.VALUES else found

        return replace(model, weights=aggregate(self.averaging, model, MappedUpdates(counted, updates)))


def trained_rows(given: Array, new: Array, steps: int) -> BoolArray:
    """Return which rows changed by more than a factor and more than this many steps of rounding can explain."""
    given, new = (array.reshape(len(array), -1).astype(np.float64) for array in (given, new))
    if given.shape[1] < 2:
        return np.ones(len(given), np.bool_)  # a single number is always a multiple of another
    squares = np.square(given).sum(axis=1)
    factors = (given * new).sum(axis=1) / np.where(squares == 0, 1, squares)
    rest = np.sqrt(np.square(new - factors[:, None] * given).sum(axis=1))
    flags: BoolArray = rest > min(1e-6 + 6e-8 * steps, 1e-3) * np.sqrt(squares)
    return flags


def _with_trained_rows(update: ClientUpdate) -> ClientUpdate:
    """Return the update with a mask that holds only the trained rows of the head."""
    mask, layer_of = update.mask, update.mask.graph.layer_of
    heads = [name for name in update.tensors if mask.graph.tensor[name].role is TensorRole.HEAD]
    rows: dict[str, BoolArray] = {}
    for name in heads:
        if len(mask.shapes[name]) > 1:  # a bias goes with its weights
            given, new = gather(mask, update.base, [name])[name], values_of(update.tensors[name])
            found = trained_rows(given, new, update.result.steps)
            rows[layer_of[name]] = rows.get(layer_of[name], False) | found
    held = dict(mask.held)
    for name in heads:
        flags = rows.get(layer_of[name])
        if flags is not None and not flags.all():
            shape = mask.shapes[name]
            held[name] = mask.held.get(name, True) & np.broadcast_to(flags.reshape(-1, *[1] * (len(shape) - 1)), shape)
    return replace(update, mask=Mask(mask.graph, mask.trained, mask.kept, held)) if held else update
