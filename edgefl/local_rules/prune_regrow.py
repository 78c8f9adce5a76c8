"""Rules `prune_regrow` and `channel_regrow`: FedSpa on the device, with single weights or whole channels.

"Achieving Personalized Federated Learning with Sparse Local Models", Algorithms 1 to 3. A device holds a sparse mask of
constant size and trains only what the mask holds (Eq. 3). After training it exchanges part of the mask: the entries of
the smallest magnitude go, and the same number of others come. With `method` "static" the mask never changes (RSM,
Algorithm 3). `erk.py` makes the first mask.

The device sends U = w_start - w_end at the old mask (Algorithm 1, line 17), which the coordinator subtracts after
averaging over all participants (Eq. 4): a device that does not hold a weight counts as one that did not move it. The
new mask goes with it and is applied to the dense global weights for the next round, so new entries start from the
coordinator's values (section 4.2, remark). On the device they are zero until then.

`prune_regrow` exchanges single weights. The new ones have the largest dense gradient of one more batch (Algorithm 2).
Tensors that the mask holds whole (norms, biases, what ERK left dense) are trained and sent whole. Masks of frozen
tensors do not change: they have no gradient to grow by. With `values_only`, the held weights of a tensor are sent as a
row of values in the order of the planned mask, which the coordinator issued: it knows where they belong.

`channel_regrow` is ours: sparse weights make a model no faster, fewer channels do. A device gives up ceil(alpha_t *
channels) of each group, those of the lowest magnitude, and takes up the same number that it did not have, so every
group keeps its width and the submodel its cost. The new channels are drawn from the seed of the task, as in SET (Mocanu
et al. 2018). The paper takes the largest gradients, but the gradient of a channel that a device does not have needs the
channel: sending the whole model for the last batch would cost the memory and the download that a small submodel saves.
In the paper random regrowth is only slightly worse (its Figure 7), and a channel that was a bad draw is small and goes
again. A channel that just went does not come back at once, which would waste the draw; a device that has nearly all
channels exchanges fewer.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.local_rules.channel_pruning import magnitudes
from edgefl.local_rules.descent import Descent, DescentRule
from edgefl.local_rules.ranking import highest, lowest
from edgefl.local_rules.rule import Batch, State, TrainingInput, TrainStep, Update, trained_parameters
from edgefl.local_rules.sent_tensors import held_values, new_values
from edgefl.local_rules.submodel_channels import prunable_groups
from edgefl.masks import Array, BoolArray, IndexArray, Mask, Weights
from edgefl.model_graph import ChannelGroup
from edgefl.noise import bits, derive
from edgefl.values import Fraction
from edgefl.wire import Dense, Expected, Payload, Sparse

__all__ = [
    "ChannelRegrow",
    "PruneRegrow",
    "RegrowMethod",
    "exchange_channels",
    "next_held",
    "prune_rate",
    "draw_channels",
]

Floats = npt.NDArray[np.floating[Any]]


class RegrowMethod(StrEnum):
    """How the mask of the next round is found."""

    DYNAMIC = "dynamic"
    """DST: prune by magnitude, then regrow."""
    STATIC = "static"
    """RSM: the mask never changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Regrow(DescentRule):
    """What both rules share; the defaults are the paper's."""

    _entries: ClassVar[str]
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.1, weight_decay=5e-4))
    """Section 5.1. The strategy sends the decay of the learning rate, 0.998 a round."""
    method: RegrowMethod = RegrowMethod.DYNAMIC
    initial_rate: Fraction = 0.5
    """alpha_0: the share of the held weights, or of each group's channels, that is exchanged in the first round."""

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send U at the planned mask, in the form of its values."""
        return new_values(mask, sparse=True)

    def _rate(self, inputs: TrainingInput) -> float:
        initial = self.initial_rate if self.method is RegrowMethod.DYNAMIC else 0.0
        return prune_rate(initial, inputs.round, inputs.rounds)

    def _update(self, inputs: TrainingInput, state: State, mask: Mask, weights: Weights, exchanged: int) -> Update:
        """Return U at the old mask; `mask` and `weights` are those of the next round."""
        tensors = {name: self._difference(inputs, state, name) for name in inputs.mask.trained_tensors}
        metrics = {
            "learning_rate": self.descent.last_rate(inputs, state),
            "density": mask.cost.parameters / mask.graph.parameters,
            "prune_rate": self._rate(inputs),
            f"exchanged_{self._entries}": float(exchanged),
        }
        return Update(tensors, weights, mask, metrics)

    def _difference(self, inputs: TrainingInput, state: State, name: str) -> Payload:
        difference = inputs.weights[name] - state.weights[name]
        held = inputs.mask.held.get(name)
        return Dense(difference) if held is None else self._payload(difference, held)

    def _payload(self, difference: Array, held: BoolArray) -> Payload:
        """Return the held entries of a tensor as they are sent."""
        return Sparse.where(difference, held)


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRegrow(_Regrow):
    """FedSpa with single weights."""

    name: ClassVar[str] = "prune_regrow"
    _entries: ClassVar[str] = "weights"
    values_only: bool = field(default=False, metadata={"added": True})
    """Whether held weights are sent without their positions, which the coordinator knows from the mask of the plan."""

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send U at the planned mask: held weights as sparse tensors, or as rows of values."""
        return held_values(mask) if self.values_only else _Regrow.sends(self, mask)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Find the next mask, and return U of the old one."""
        rate = self._rate(inputs)
        mask = _next_mask(state, rate, batch, run) if rate else state.mask
        weights = dict(state.weights)
        exchanged = 0
        for name in mask.held:
            exchanged += int(np.count_nonzero(mask.held[name] & ~state.mask.held[name]))
            weights[name] = np.where(mask.held[name], weights[name], np.float32(0))
        return self._update(inputs, state, mask, weights, exchanged)

    def _payload(self, difference: Array, held: BoolArray) -> Payload:
        return Dense(difference[held]) if self.values_only else Sparse.where(difference, held)

    def extra_bytes(self, mask: Mask) -> int:
        """Return the memory that a round needs beyond the submodel's weights and the engine's own memory.

        The weights are sparse in value only, and the engine works on whole arrays. The rule needs a copy of the trained
        tensors, momenta, and the largest of: dense gradients while training; these and 16 bytes per entry of the
        largest sparse tensor while exchanging weights; the payload and 48 bytes per entry of that tensor while sending.
        """
        sizes = {name: math.prod(mask.shapes[name]) for name in trained_parameters(mask)}
        counts = {name: int(np.count_nonzero(mask.held[name])) for name in sizes if name in mask.held}
        own, largest = 4 * sum(sizes.values()), max((sizes[name] for name in counts), default=0)
        exchanging = own + 16 * largest if self.method is RegrowMethod.DYNAMIC else own
        sending = 4 * sum((sizes | counts).values()) + 4 * largest + 48 * max(counts.values(), default=0)
        return own * (2 if self.descent.momentum else 1) + max(exchanging, sending)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRegrow(_Regrow):
    """FedSpa with whole channels."""

    name: ClassVar[str] = "channel_regrow"
    _entries: ClassVar[str] = "channels"

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Exchange channels, and return U of the old ones."""
        rate = self._rate(inputs)
        mask = exchange_channels(state.mask, state.weights, rate, inputs.seed) if rate else state.mask
        weights = {name: _carry_over(state.mask, mask, name, array) for name, array in state.weights.items()}
        exchanged = sum(np.setdiff1d(mask.kept[name], kept).size for name, kept in state.mask.kept.items())
        return self._update(inputs, state, mask, weights, exchanged)


def prune_rate(initial_rate: float, number: int, rounds: int) -> float:
    """Return alpha_t = 0.5 alpha_0 (1 + cos(pi t / (T - 1))), appendix A.

    It is zero in the last round, even if that is the only one, so that the final model was trained with its final mask.
    """
    if number >= rounds - 1:
        return 0.0
    return 0.5 * initial_rate * (1 + math.cos(math.pi * number / (rounds - 1)))


def next_held(weights: Floats, gradient: Floats, held: BoolArray, rate: float) -> BoolArray:
    """Return which weights of a tensor are held next (Algorithm 2, lines 7 and 8).

    ceil(rate * held weights) of the smallest magnitude go, and the same number come by the magnitude of their gradient,
    from all that are not held then: a weight that just went may come back at once, as in RigL (Evci et al. 2020).
    """
    count = math.ceil(rate * np.count_nonzero(held))
    remaining = held & ~lowest(np.where(held, np.abs(weights), np.inf), count)
    return remaining | highest(np.where(remaining, -1, np.abs(gradient)), count)


def exchange_channels(mask: Mask, weights: Weights, rate: float, seed: int) -> Mask:
    """Return the mask with a share `rate` of each group's channels, the lowest ones, exchanged for others."""
    scores, kept = magnitudes(mask, weights), dict(mask.kept)
    for group in prunable_groups(mask):
        here = mask.kept[group.name]
        absent = np.setdiff1d(np.arange(group.width), here)
        steps = math.ceil(rate * here.size / group.multiple_of)
        count = min(steps * group.multiple_of, absent.size)
        stay = here[~lowest(scores[group.name], count)]
        kept[group.name] = np.sort(np.concatenate([stay, draw_channels(group, count, seed, absent)]))
    wanted = Mask(mask.graph, mask.trained, kept, {})
    if not mask.held:
        return wanted
    held = {name: _carry_over(mask, wanted, name, where, new=True) for name, where in mask.held.items()}
    return Mask(mask.graph, mask.trained, kept, held)


def draw_channels(group: ChannelGroup, count: int, seed: int, among: IndexArray | None = None) -> IndexArray:
    """Return `count` random channels of a group, out of all its channels or those given."""
    channels = np.arange(group.width) if among is None else among
    words = bits(derive(seed, "channels", group.name), 0, channels.size)
    return channels[lowest(words, count)]


def _next_mask(state: State, rate: float, batch: Batch, run: TrainStep) -> Mask:
    held = dict(state.mask.held)
    sparse = [name for name in trained_parameters(state.mask) if name in held]
    gradients = run(state.weights, batch).gradients if sparse else {}
    for name in sparse:
        if name in gradients:  # a weight that the forward pass does not use has none
            held[name] = next_held(state.weights[name], gradients[name], held[name], rate)
    return Mask(state.mask.graph, state.mask.trained, state.mask.kept, held)


def _carry_over(mask: Mask, other: Mask, name: str, array: Array, *, new: bool = False) -> Array:
    """Return a tensor at the channels of another mask: shared entries are copied, new ones are zero or `new`."""
    if other is mask:
        return array
    axes = enumerate(mask.graph.tensor[name].shape)
    pairs = [[np.arange(size)[m.selectors[name][axis]] for m in (mask, other)] for axis, size in axes]
    both = [np.intersect1d(before, after) for before, after in pairs]
    carried = np.full(other.shapes[name], new, array.dtype)
    sources = [np.searchsorted(before, common) for (before, _), common in zip(pairs, both, strict=True)]
    places = [np.searchsorted(after, common) for (_, after), common in zip(pairs, both, strict=True)]
    carried[np.ix_(*places)] = array[np.ix_(*sources)]
    return carried
