"""Rule `weight_pruning`: the device gives up its smallest weights, as long as it can do without. Sub-FedAvg (Un).

Vahidian, Morafah and Lin, "Personalized Federated Learning by Structured and Unstructured Pruning under Data
Heterogeneity", ICDCS Workshops 2021, Algorithm 1. A device trains what its mask holds. From the weights after the
first pass and from those after the last one it derives a mask, without a share of the remaining weights of every
tensor, those of the lowest magnitude. It prunes, to the second of these masks, if

- its model still holds more than the target,
- the two masks differ: their distance is above epsilon, so the choice is not that of the model as it was sent,
- the pruned model is accurate enough on the device's validation data.

Masks only shrink. The device sends the values of what is left, and the new mask.

What the paper leaves open, and what is done here, as in the authors' code where it says something:
- The distance is the mean over tensors of the share of their entries in which the masks differ.
- The accuracy is that of the model after pruning. The code measures it on test samples; here it is on validation
  samples, and without any nothing is pruned.
- Of n weights ceil(rate * n) go, never all. The step that would go beyond the target is smaller, by so much that it
  ends there, up to one weight of each tensor. In the code such a step is of 5 % at the most.
- Only matrices and kernels of trained layers are pruned. The code also prunes the weights of norms.
- The code takes the second mask after 5 passes, whatever their number; here it is after the last one. A round of a
  single pass takes the first mask after half of its steps.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.local_rules.descent import DescentRule, weight_tensors
from edgefl.local_rules.ranking import lowest
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.local_rules.sent_tensors import held_values
from edgefl.masks import Array, BoolArray, Mask, Weights
from edgefl.model_graph import cost_of
from edgefl.values import Fraction
from edgefl.wire import Dense, Expected

__all__ = ["WeightPruning"]

_FIRST = "first:"
"""The mask after the first pass, by tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPruning(DescentRule):
    """The settings of Sub-FedAvg on a device; the defaults are those of the authors' script."""

    name: ClassVar[str] = "weight_pruning"
    accuracy_threshold: Fraction = 0.5
    """A device prunes when its accuracy would be above this afterwards."""
    target: Fraction = 0.7
    """The share of its submodel's parameters at which pruning ends."""
    rate: Fraction = 0.1
    """The share of the remaining weights of every tensor that goes in one round."""
    distance: Fraction = 1e-4
    """epsilon: a device prunes when the masks after the first and the last pass differ in more than this share."""

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the values of what the mask holds."""
        return held_values(mask)

    def lost(self, mask: Mask) -> dict[str, int]:
        """Return how many weights of each tensor go when a mask is pruned."""
        held = {name: self._count(mask, name) for name in weight_tensors(mask)}
        surplus = mask.cost.parameters - self.target * cost_of(mask.graph, mask.widths).parameters
        share = min(self.rate, surplus / max(sum(held.values()), 1))
        if share <= 0:
            return {}
        return {name: max(0, min(math.ceil(share * count - 1e-9), count - 1)) for name, count in held.items()}

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Take one step of gradient descent; after the first pass, derive a mask."""
        result = DescentRule.step(self, inputs, state, batch, run)
        if state.steps == _first_pass(inputs):
            derived = self._derived(state.mask, state.weights)
            state.memory |= {_FIRST + name: held.astype(np.uint8) for name, held in derived.items()}
        return result

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Prune if the device can do without it, and send what is left."""
        last = self._derived(state.mask, state.weights)
        distance = _distance(state, last)
        metrics = {"learning_rate": self.descent.last_rate(inputs, state), "mask_distance": distance}
        mask, weights = state.mask, dict(state.weights)
        if distance > self.distance and inputs.accuracy is not None:
            pruned = weights | {name: np.where(held, weights[name], np.float32(0)) for name, held in last.items()}
            metrics["accuracy_after_pruning"] = inputs.accuracy(pruned)
            if metrics["accuracy_after_pruning"] > self.accuracy_threshold:
                mask, weights = Mask(mask.graph, mask.trained, mask.kept, {**mask.held, **last}), pruned
        metrics["density"] = mask.cost.parameters / mask.graph.parameters
        tensors = {name: Dense(_row(mask, name, weights[name])) for name in mask.trained_tensors}
        return Update(tensors, weights, mask, metrics)

    def _derived(self, mask: Mask, weights: Weights) -> dict[str, BoolArray]:
        """Return what is held of each tensor without its smallest weights."""
        derived = {}
        for name, count in self.lost(mask).items():
            size, held = np.abs(weights[name]), mask.held.get(name)
            gone = lowest(size if held is None else np.where(held, size, np.inf), count)
            derived[name] = ~gone if held is None else held & ~gone
        return derived

    @staticmethod
    def _count(mask: Mask, name: str) -> int:
        return int(np.count_nonzero(mask.held[name])) if name in mask.held else math.prod(mask.shapes[name])


def _first_pass(inputs: TrainingInput) -> int:
    """Return the step after which the first mask is derived."""
    return inputs.epoch_steps if inputs.epoch_steps < inputs.steps else inputs.steps // 2


def _distance(state: State, last: Mapping[str, BoolArray]) -> float:
    """Return the mean over tensors of the Hamming distance between both masks, as a share of their entries."""
    first = {name: state.memory[_FIRST + name] for name in last if _FIRST + name in state.memory}
    shares = [np.count_nonzero(first[name] != last[name]) / last[name].size for name in first]
    return float(sum(shares) / len(shares)) if shares else 0.0


def _row(mask: Mask, name: str, array: Array) -> Array:
    return array[mask.held[name]] if name in mask.held else array
