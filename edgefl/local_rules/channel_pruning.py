"""Rule `channel_pruning`: Hermes on the device.

Li et al., "Hermes: An Efficient Federated Learning Framework for Heterogeneous Mobile Clients", MobiCom 2021, section
3.2 and Algorithm 1, `ClientUpdate`. Before it trains, a device whose submodel is accurate enough on its own validation
data and still larger than its target loses the channels of the lowest magnitude. Then it trains at the remaining size,
with a penalty on the norms of filters, channels, rows and columns (Eq. 2 and 3), which prepares the next channels for
removal. Masks only shrink (Eq. 6).

What the paper leaves open, and what is done here:
- r_target is the share of parameters that is kept (0.3), so pruning goes on while the share is above it.
- The magnitude of a channel is the L2 norm of all its weights, those that write it and those that read it: they go
  together. `scope` says whether each group loses r_p of its channels (the default: a layer of small weights is not
  worth less than another), or the model loses r_p of all channels, ranked by the root mean square of their weights.
- The share r_p is rounded to what the norms of a group allow; at least one step of channels goes, and the last channel
  to go is the one that reaches r_target.
- Without validation data nothing is pruned.
- lambda, the coefficient of the penalty, is not given: it is a setting, and reported.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from edgefl.local_rules.channel_removal import Scores, removal_order, remove_until, step_of
from edgefl.local_rules.descent import DescentRule, adopt_statistics, descend, start, weight_tensors
from edgefl.local_rules.group_lasso import group_lasso, group_lasso_gradient, penalised
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update, trained_parameters
from edgefl.local_rules.submodel_channels import narrow, prunable_groups, squared_norms
from edgefl.masks import Array, Mask, Weights
from edgefl.values import Fraction, PositiveCount, Ratio
from edgefl.wire import Dense

__all__ = ["ChannelPruning", "PruningScope", "magnitudes", "prune_by_scores", "prune_mask", "remember_accuracy"]

_ACCURACY = "accuracy_before_pruning"


class PruningScope(StrEnum):
    """Where the channels of the lowest magnitude are searched for."""

    GROUP = "group"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPruning(DescentRule):
    """The settings of Hermes on a device; the defaults are the paper's, except `lasso` and `scope` (not given)."""

    name: ClassVar[str] = "channel_pruning"
    accuracy_threshold: Fraction = 0.5
    """A device prunes when its accuracy is above this."""
    target: Fraction = 0.3
    """r_target: the share of the model's parameters at which pruning ends."""
    rate: Fraction = 0.2
    """r_p: the share of the remaining channels that is removed in one round."""
    lasso: Ratio = 1e-4
    """lambda of Eq. 3."""
    scope: PruningScope = PruningScope.GROUP
    multiple: PositiveCount = 1
    """Wide layers lose channels in steps of this, so that the rest suits a processor's vectors."""

    def begin(self, inputs: TrainingInput) -> State:
        """Prune if the submodel is accurate and large enough."""
        mask, accuracy = self.prune_if_ready(inputs)
        state = start(inputs) if mask is inputs.mask else State(mask, narrow(inputs.mask, mask, inputs.weights))
        return remember_accuracy(state, accuracy)

    def prune_if_ready(self, inputs: TrainingInput) -> tuple[Mask, float | None]:
        """Return the mask to train, and the accuracy on the device's validation data, if it has some."""
        if inputs.accuracy is None:
            return inputs.mask, None
        accuracy = inputs.accuracy(inputs.weights)
        if accuracy <= self.accuracy_threshold:
            return inputs.mask, accuracy
        how = {"rate": self.rate, "target": self.target}
        return prune_mask(inputs.mask, inputs.weights, **how, scope=self.scope, multiple=self.multiple), accuracy

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Take one step down the gradient of Eq. 3 within the remaining submodel."""
        result = run(state.weights, batch)
        moved = {name: state.weights[name] for name in trained_parameters(state.mask)}
        anchors = narrow(inputs.mask, state.mask, inputs.weights) if self.descent.proximal else {}
        gradients = self.penalised_gradients(state.mask, state.weights, result.gradients)
        descend(self.descent, self.descent.rate(inputs, state.steps), moved, gradients, state, anchors=anchors)
        adopt_statistics(state, result)
        state.steps += 1
        return result

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Return the trained tensors at the widths of the new mask, together with the mask."""
        metrics = self.metrics(inputs, state, state.weights)
        tensors = {name: Dense(state.weights[name]) for name in state.mask.trained_tensors}
        return Update(tensors, state.weights, state.mask, metrics)

    def metrics(self, inputs: TrainingInput, state: State, weights: Weights) -> dict[str, float]:
        """Return what a round did to a submodel; `weights` are its final weights."""
        mask, groups = state.mask, prunable_groups(state.mask)
        found = {
            "kept_fraction": mask.cost.parameters / mask.graph.parameters,
            "pruned_channels": float(sum(inputs.mask.widths[g.name] - mask.widths[g.name] for g in groups)),
            "learning_rate": self.descent.last_rate(inputs, state),
            "lasso_coefficient": self.lasso,
            "lasso_penalty": group_lasso(mask, weights, penalised(mask, weight_tensors(mask))),
        }
        if _ACCURACY in state.memory:
            found[_ACCURACY] = float(state.memory[_ACCURACY])
        return found

    def extra_bytes(self, mask: Mask) -> int:
        """Return the memory that a round needs beyond the submodel's weights and the engine's own memory.

        That is a copy of the submodel, gradients, penalised gradients with the scratch space of one tensor, and
        momenta. Pruning comes before the gradients and needs less.
        """
        whole = mask.graph.tensor
        sizes = {name: math.prod(shape) * whole[name].item_bytes for name, shape in mask.shapes.items()}
        trained = sum(sizes[name] for name in trained_parameters(mask))
        weights = [sizes[name] for name in penalised(mask, weight_tensors(mask))]
        penalty = (sum(weights) + 2 * max(weights, default=0)) if self.lasso else 0
        return sum(sizes.values()) + trained + penalty + (trained if self.descent.momentum else 0)

    def penalised_gradients(self, mask: Mask, weights: Weights, gradients: Weights) -> Weights:
        """Return the gradient of Eq. 3, given the gradients of the loss alone."""
        if not self.lasso:
            return gradients
        added: dict[str, Array] = {}
        for name in penalised(mask, weight_tensors(mask)):
            if name in gradients:
                added[name] = group_lasso_gradient(mask, name, weights[name])
                added[name] *= np.float32(self.lasso)
                added[name] += gradients[name]
        return {**gradients, **added}


def remember_accuracy(state: State, accuracy: float | None) -> State:
    """Store how accurate the device was before it pruned, and return the state."""
    if accuracy is not None:
        state.memory[_ACCURACY] = np.array(accuracy)
    return state


def prune_mask(
    mask: Mask,
    weights: Weights,
    *,
    rate: float,
    target: float,
    scope: PruningScope = PruningScope.GROUP,
    multiple: int = 1,
) -> Mask:
    """Return the mask without a share `rate` of its channels, those of the lowest magnitude.

    Pruning stops at the channel that brings the parameters to a share `target` of the whole model's. A mask that is
    already there is returned unchanged.
    """
    return prune_by_scores(
        mask, lambda: magnitudes(mask, weights), rate=rate, target=target, scope=scope, multiple=multiple
    )


def prune_by_scores(
    mask: Mask,
    scores_of: Callable[[], Scores],
    *,
    rate: float,
    target: float,
    scope: PruningScope = PruningScope.GROUP,
    multiple: int = 1,
) -> Mask:
    """Return the mask without a share `rate` of its channels, those of the lowest scores, as `prune_mask` does.

    Groups without scores keep their channels. The scores are asked for only if something is to be removed.
    """
    bound = target * mask.graph.parameters
    if mask.cost.parameters <= bound or not rate:
        return mask
    scores = scores_of()
    everything = removal_order(mask, scores, multiple=multiple)
    if scope is PruningScope.MODEL:
        order = _channels_worth(mask, everything, rate * sum(mask.widths[name] for name in scores), multiple)
    else:
        order = removal_order(mask, scores, _shares(mask, rate, multiple), multiple)
    return remove_until(mask, scores, order or everything[:1], bound, multiple)


def magnitudes(mask: Mask, weights: Weights) -> dict[str, Array]:
    """Return, for every prunable group, the root mean square of the weights of each kept channel."""
    return {name: np.sqrt(total / max(entries, 1)) for name, (total, entries) in squared_norms(mask, weights).items()}


def _shares(mask: Mask, rate: float, multiple: int) -> Mapping[str, int]:
    """Return the number of channels of each group that is a share `rate`: the nearest width that its norm allows."""
    return {
        group.name: round(rate * mask.widths[group.name] / step_of(group, multiple)) * step_of(group, multiple)
        for group in prunable_groups(mask)
    }


def _channels_worth(mask: Mask, order: list[str], channels: float, multiple: int) -> list[str]:
    """Return the first steps of an order that together remove at most this many channels."""
    sizes = np.cumsum([step_of(mask.graph.group[name], multiple) for name in order])
    return order[: int(np.searchsorted(sizes, channels, side="right"))]
