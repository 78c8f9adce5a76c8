"""What sets of blocks cost, for thousands of sets at once.

A gradient on its way to a block passes through everything between the block and the loss, so the cost of a set is not
the sum of its blocks: training a second block on the way is much cheaper than the first. `cost_of` knows the exact cost
of one set in half a millisecond; a planner asks about millions. So it is called once for every block and every pair,
and then

    cost of a set  =  cost of its block nearest the input  +  for each other block, what it adds to that one.

For a network in which everything goes through every block this is exact. With parallel branches it is never too little:
the cost of a pass is a sum over layers of 'is it reached from some trained block', and such sums grow by less the more
is trained already (they are submodular). So a set that fits here fits.
"""

from dataclasses import dataclass

import numpy as np

from edgefl.model_graph import Cost, ModelGraph, cost_of
from edgefl.planning.freezing.bias import Flags, Reals
from edgefl.planning.freezing.blocks import Block
from edgefl.planning.freezing.device import FreezingDevice

__all__ = ["SetCosts"]


@dataclass(frozen=True, slots=True, eq=False)
class SetCosts:
    """Backward multiply-adds, saved activations and trained parameters of sets of blocks."""

    idle: Cost
    """The cost of a round without training: the forward pass."""
    first: Reals
    """The cost of a block if none nearer the input is trained; one row per block, one column per quantity."""
    further: Reals
    """[i, j]: what block j adds if block i is the one nearest the input."""

    @classmethod
    def of(cls, graph: ModelGraph, blocks: tuple[Block, ...]) -> "SetCosts":
        """Count every block and every pair."""

        def count(*chosen: Block) -> Reals:
            cost = cost_of(graph, None, [layer for block in chosen for layer in block.layers])
            return np.array([cost.backward_multiply_adds, cost.saved_activations, cost.trained_parameters], np.float64)

        first = np.stack([count(block) for block in blocks])
        further = np.zeros((len(blocks), len(blocks), 3))
        for i, low in enumerate(blocks):
            for j in range(i + 1, len(blocks)):
                further[i, j] = count(low, blocks[j]) - first[i]
        return cls(cost_of(graph, None, []), first, further)

    def quantities(self, sets: Flags) -> Reals:
        """Return the three quantities of each set, one row per set."""
        lowest = sets.argmax(axis=1)
        total = np.empty((len(sets), 3))
        for block in range(sets.shape[1]):
            here = lowest == block
            total[here] = self.first[block] + sets[here] @ self.further[block]
        total[~sets.any(axis=1)] = (0, self.idle.saved_activations, 0)
        return total

    def fitting(self, device: FreezingDevice, quantities: Reals) -> Flags:
        """Return which of the sets with these quantities stay within the device's limits of time, memory and energy."""
        profile, budget = device.profile, device.budget
        fits = np.ones(len(quantities), np.bool_)
        if profile is None:
            return fits
        backward, saved, trained = quantities.T
        activations = 4.0 * device.batch * (saved + self.idle.transient_activations)
        fit = profile.cost
        step = (
            fit.overhead_seconds
            + fit.forward_seconds_per_multiply_add * device.batch * self.idle.forward_multiply_adds
            + fit.backward_seconds_per_multiply_add * device.batch * backward
            + fit.seconds_per_activation_byte * activations
            + fit.seconds_per_trained_parameter * trained
        )
        peak = (
            fit.memory_base_bytes
            + fit.memory_bytes_per_activation_byte * activations
            + fit.memory_bytes_per_parameter_byte * self.idle.parameter_bytes
            + fit.memory_bytes_per_trained_parameter * trained
        )
        # One part in 10^9 keeps rounding on the safe side: the real prediction adds up in another order.
        seconds = device.steps * step * (1 + 1e-9)
        if budget.round_seconds is not None:
            fits &= seconds <= budget.round_seconds
        if budget.peak_bytes is not None:
            fits &= peak * (1 + 1e-9) + 1 <= budget.peak_bytes
        if budget.joules is not None and profile.power is not None and profile.power.busy_watts is not None:
            fits &= max(0.0, profile.power.busy_watts) * seconds <= budget.joules
        return fits
