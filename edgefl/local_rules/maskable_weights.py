"""A probabilistic mask over single weights, as in the FedMAP paper: one probability per weight.

Capacity is the share of the masked weights that a device may use: at most gamma d of d (Algorithm 2). The engine still
runs whole arrays, with zeros where the mask is zero, so this finds good masks but makes nothing faster.
"""

import math
from dataclasses import dataclass

import numpy as np

from edgefl.local_rules.mask_generation import Drawn, Flags
from edgefl.local_rules.ranking import lowest
from edgefl.local_rules.rule import Batch, StepResult, TrainStep
from edgefl.masks import Array, Mask, Weights

__all__ = ["MaskableWeights", "top_entries"]


@dataclass(frozen=True, slots=True)
class MaskableWeights:
    """Named tensors of a submodel, and the share of their weights that may be used together."""

    submodel: Mask
    names: tuple[str, ...]
    capacity: float

    @property
    def allowed(self) -> int:
        """The largest number of weights that may be used: gamma d."""
        size = sum(int(np.count_nonzero(where)) for where in self.everything().values())
        return math.floor(self.capacity * size + 1e-9)  # so that 0.29 of 100 is 29

    def everything(self) -> Flags:
        """Return all weights that the submodel holds."""
        held, shapes = self.submodel.held, self.submodel.shapes
        return {name: held[name] if name in held else np.ones(shapes[name], np.bool_) for name in self.names}

    def fits(self, flags: Flags) -> bool:
        """Return whether few enough weights are used."""
        return sum(int(np.count_nonzero(where)) for where in flags.values()) <= self.allowed

    def repair(self, drawn: Flags, before: Flags, p: Weights) -> Flags:
        """Return the drawn mask: single weights can be used in any combination."""
        return drawn

    def top(self, p: Weights, within: Flags, seed: int) -> Flags:
        """Return the most probable weights that fit."""
        return top_entries(p, self.allowed, seed, within)

    def mask(self, flags: Flags) -> Mask:
        """Return the submodel with only these weights held."""
        whole = self.submodel
        return Mask(whole.graph, whole.trained, whole.kept, {**whole.held, **flags})

    def probe(self, weights: Weights, drawn: Drawn, batch: Batch, run: TrainStep) -> tuple[StepResult, Weights]:
        """Run F(x * M), and return its gradient times x (Eq. 7); tensors that are not trained have none."""
        masked = {name: np.where(where, weights[name], np.float32(0)) for name, where in drawn.flags.items()}
        result = run({**weights, **masked}, batch)
        known = [name for name in self.names if name in result.gradients]
        found: dict[str, Array] = {}
        for name in known:
            found[name] = np.multiply(result.gradients[name], weights[name], out=masked[name])
        return result, found


def top_entries(p: Weights, count: int, seed: int, within: Flags | None = None) -> Flags:
    """Return the `count` highest entries of all arrays together; ties are broken at random.

    `within` says which entries may be chosen; there must be at least `count`.
    """
    names = sorted(p)
    descending = np.concatenate([p[name].reshape(-1) for name in names])
    np.negative(descending, out=descending)
    if within is not None:
        descending[~np.concatenate([within[name].reshape(-1) for name in names])] = np.inf
    chosen = lowest(descending, count, seed=seed)
    ends = np.cumsum([p[name].size for name in names])[:-1]
    return {name: part.reshape(p[name].shape) for name, part in zip(names, np.split(chosen, ends), strict=True)}
