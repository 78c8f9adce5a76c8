"""A probabilistic mask over channels: one probability per channel of a group.

This is ours; the masks of the FedMAP paper are over single weights. The learning is the paper's. The difference is that
an entry of the mask is a channel with everything that belongs to it, so that a mask can be cut out and is faster:
- Capacity is the share of the submodel's parameters that a device may use, counted after the cut.
- A draw that a norm cannot divide, or that leaves a group without channels, gets back its most probable channels.
- The mask before the shrink step is really cut out. Channels that the shrink step removes are zero within it: all their
  weights, biases and norms. Those two kinds of channels are exactly the ones that Eq. 7 gives a gradient.
- The gradient of a channel is the sum of gradient times weight over all its entries; entries that another channel has
  switched off add nothing. Frozen tensors have no gradient and add nothing either.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.channel_removal import removal_order, remove_until
from edgefl.local_rules.mask_generation import Drawn, Flags
from edgefl.local_rules.ranking import highest
from edgefl.local_rules.rule import Batch, StepResult, TrainStep
from edgefl.local_rules.submodel_channels import channel_of_index, channel_positions, narrow, without_channels
from edgefl.local_rules.summation import sum_by_bin
from edgefl.masks import Array, BoolArray, Mask, Weights
from edgefl.model_graph import TensorRole
from edgefl.noise import bits

__all__ = ["MaskableChannels"]

_Factors = dict[int, Array]
"""For each axis of a tensor: 1 where an index is on, 0 where its channel is off."""


@dataclass(frozen=True, slots=True)
class MaskableChannels:
    """Named groups of a submodel, and the share of its parameters that may be used."""

    submodel: Mask
    names: tuple[str, ...]
    capacity: float

    @property
    def allowed(self) -> float:
        """The largest number of parameters that may be used."""
        return self.capacity * self.submodel.cost.parameters + 1e-9

    def everything(self) -> Flags:
        """Return all channels of the groups."""
        return {name: np.ones(self.submodel.widths[name], np.bool_) for name in self.names}

    def fits(self, flags: Flags) -> bool:
        """Return whether the remaining submodel has few enough parameters."""
        return self.mask(flags).cost.parameters <= self.allowed

    def repair(self, drawn: Flags, before: Flags, p: Weights) -> Flags:
        """Return the drawn channels, and as many of the most probable others as the norm of their group requires."""
        result: dict[str, BoolArray] = {}
        for name, where in drawn.items():
            multiple = self.submodel.graph.group[name].multiple_of
            count = int(np.count_nonzero(where))
            lacking = max(1, math.ceil(count / multiple)) * multiple - count
            others = np.where(before[name] & ~where, p[name], -1)
            result[name] = where | highest(others, lacking)
        return result

    def top(self, p: Weights, within: Flags, seed: int) -> Flags:
        """Return the most probable channels that fit, by removing the least probable ones."""
        start = self.mask(within)
        ranks = _ranks({name: p[name][where] for name, where in within.items()}, seed)
        found = remove_until(start, ranks, removal_order(start, ranks), self.allowed)
        if found.cost.parameters > self.allowed:
            raise MaskError(
                f"a capacity of {self.capacity} is {self.allowed:,.0f} parameters, but the smallest submodel has "
                f"{found.cost.parameters:,}",
                fix="Give the device a larger capacity, or use a model with narrower fixed parts.",
            )
        return {name: np.isin(self.submodel.kept[name], found.kept[name]) for name in self.names}

    def mask(self, flags: Flags) -> Mask:
        """Return the submodel without the other channels."""
        return without_channels(self.submodel, {name: self.submodel.kept[name][where] for name, where in flags.items()})

    def probe(self, weights: Weights, drawn: Drawn, batch: Batch, run: TrainStep) -> tuple[StepResult, Weights]:
        """Run the cut model with the shrunk channels off, and return the gradient of the loss for every channel."""
        mask = self.mask(drawn.candidates)
        cut = narrow(self.submodel, mask, weights)
        on = {name: drawn.flags[name][where] for name, where in drawn.candidates.items()}
        factors = {tensor.name: _factors(mask, tensor.name, on) for tensor in mask.graph.tensors}
        masked = {
            name: array if mask.graph.tensor[name].role is TensorRole.STATISTIC else _switched(array, factors[name])
            for name, array in cut.items()
        }
        result = run(masked, batch)
        sums = {name: np.zeros(mask.widths[name]) for name in self.names}
        for tensor in mask.graph.tensors:
            if tensor.name in result.gradients:
                name = tensor.name
                _add_by_channel(mask, name, result.gradients[name] * cut[name], factors[name], sums)
        found = {name: np.zeros(self.submodel.widths[name], np.float32) for name in self.names}
        for name, where in drawn.candidates.items():
            found[name][where] = sums[name]
        return result, found


def _factors(mask: Mask, tensor: str, on: Mapping[str, BoolArray]) -> _Factors:
    factors: _Factors = {}
    for group, span in mask.graph.spans_of.get(tensor, ()):
        if group.name in on:
            factor = factors.setdefault(span.axis, np.ones(mask.shapes[tensor][span.axis], np.float32))
            factor[channel_positions(mask, group, span)] = on[group.name][:, None]
    return factors


def _switched(array: Array, factors: _Factors, but: int | None = None) -> Array:
    """Return the array with everything zero that some axis switches off; `but` names an axis to ignore."""
    for axis, factor in factors.items():
        if axis != but and not factor.all():
            array = array * factor.reshape([-1 if other == axis else 1 for other in range(array.ndim)])
    return array


def _add_by_channel(mask: Mask, tensor: str, product: Array, factors: _Factors, sums: dict[str, Array]) -> None:
    """Add the derivative of the loss for every channel through this tensor: a product rule over its axes."""
    for axis in factors:
        switched = _switched(product, factors, but=axis)
        for group, span in mask.graph.spans_of[tensor]:
            if span.axis == axis and group.name in sums:
                sum_by_bin(switched, axis, channel_of_index(mask, group, span), sums[group.name])


def _ranks(p: Weights, seed: int) -> dict[str, Array]:
    """Return the rank of every channel by probability over all groups; ties are broken at random."""
    names = sorted(p)
    values = np.concatenate([p[name] for name in names])
    places = np.empty(values.size, np.int64)
    places[np.lexsort((bits(seed, 0, values.size), values))] = np.arange(values.size)
    return dict(zip(names, np.split(places, np.cumsum([p[name].size for name in names])[:-1]), strict=True))
