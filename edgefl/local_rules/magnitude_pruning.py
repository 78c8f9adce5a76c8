"""Rule `magnitude_pruning`: gradient descent, after which the smallest weights are pruned. FedSparsify on the device.

Stripelis et al., "Federated Progressive Sparsification (Purge, Merge, Tune)+", 2022 (arXiv 2204.12430): in
FedSparsify-Local a device trains the weights that the mask holds, and then sends those of the largest magnitude, of all
layers together. The coordinator says in each plan how many are left; `largest_weights` is the choice, for both ends.

Matrices and kernels are pruned; norms, biases and running statistics are sent in full. The authors' code prunes every
array of a network, biases too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from edgefl.local_rules.compression.top_k import kept_count
from edgefl.local_rules.descent import DescentRule, weight_tensors
from edgefl.local_rules.ranking import highest
from edgefl.local_rules.rule import Batch, State, TrainingInput, TrainStep, Update
from edgefl.local_rules.sent_tensors import new_values
from edgefl.masks import BoolArray, Mask, Weights
from edgefl.values import Dimension, Quantity
from edgefl.wire import Dense, Expected, Payload, Sparse

__all__ = ["MagnitudePruning", "largest_weights", "weights_left"]

Share = Annotated[float, Quantity(Dimension.SHARE, "a share above 0 and at most 1", "0.03", low=1e-9, high=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MagnitudePruning(DescentRule):
    """Gradient descent that ends with pruning."""

    name: ClassVar[str] = "magnitude_pruning"
    kept: Share = 0.03
    """The share of the weights of the device's submodel that is left."""

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the weights that are left with their positions, and new values of the rest."""
        pruned = set(weight_tensors(mask))
        return {
            name: replace(form, codec=Sparse.codec) if name in pruned else form
            for name, form in new_values(mask).items()
        }

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Prune the smallest weights, and send the others."""
        mask, weights = state.mask, dict(state.weights)
        tensors: dict[str, Payload] = {n: Dense(weights[n]) for n in mask.trained_tensors}
        for name, flags in largest_weights(mask, weights, weights_left(mask, self.kept)).items():
            weights[name] = np.where(flags, weights[name], weights[name].dtype.type(0))
            tensors[name] = Sparse.where(weights[name], flags)
        metrics = {"learning_rate": self.descent.last_rate(inputs, state), "kept": self.kept}
        return Update(tensors, weights, mask, metrics)


def weights_left(mask: Mask, kept: float) -> int:
    """Return how many weights of a submodel are left: a share of all, or what the mask holds if that is less."""
    sizes = {name: int(np.prod(mask.shapes[name])) for name in weight_tensors(mask)}
    held = sum(int(np.count_nonzero(mask.held[n])) if n in mask.held else size for n, size in sizes.items())
    return min(held, kept_count(sum(sizes.values()), kept))


def largest_weights(mask: Mask, weights: Weights, count: int) -> dict[str, BoolArray]:
    """Return flags of the largest weights of a submodel among those that the mask holds, of all tensors together."""
    held = {name: mask.held.get(name, np.ones(mask.shapes[name], np.bool_)) for name in weight_tensors(mask)}
    if not held:
        return {}
    flags = highest(np.concatenate([np.abs(weights[name][where]) for name, where in held.items()]), count)
    found: dict[str, BoolArray] = {}
    begin = 0
    for name, where in held.items():
        end = begin + int(np.count_nonzero(where))
        found[name] = np.zeros(where.shape, np.bool_)
        found[name][where] = flags[begin:end]
        begin = end
    return found
