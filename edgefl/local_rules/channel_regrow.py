"""Rule `channel_regrow`: FedSpa on the device with whole channels in place of single weights.

This is ours; the paper ("Achieving Personalized Federated Learning with Sparse Local Models") exchanges single weights,
which makes models sparse but no faster. Here a device has some channels of each group and trains those. After training
it gives up ceil(alpha_t * channels) of each group, those of the lowest magnitude, and takes up as many that it did not
have. So every group keeps its width, and the cost of the device's part never changes. alpha_t, what is sent (U of
Algorithm 1, at the old channels) and the warm start of what comes are `prune_regrow`'s.

Which channels come is drawn, from the seed of the task, as in SET (Mocanu et al. 2018). The paper takes the largest
gradients, and a gradient of channels that a device does not have would need them: to send it the whole model for the
last batch would cost the memory and the download that its small part saves. Random regrowth needs nothing; in the paper
it is only slightly worse (its Figure 7), and a channel that was a bad draw is small and goes again. What just went
does not come back at once, which would waste the draw; where a device has nearly all channels, fewer are exchanged.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from edgefl.local_rules.channel_pruning import magnitudes
from edgefl.local_rules.descent import Descent, start, train
from edgefl.local_rules.prune_regrow import RegrowMethod, prune_rate
from edgefl.local_rules.ranking import lowest
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.local_rules.submodel_channels import prunable_groups
from edgefl.masks import Array, IndexArray, Mask, Weights
from edgefl.model_graph import ChannelGroup
from edgefl.noise import bits, derive
from edgefl.values import Fraction, check_fields
from edgefl.wire import Dense

__all__ = ["ChannelRegrow", "exchanged", "random_kept"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRegrow:
    """The settings of FedSpa with channels; the defaults are the paper's for single weights."""

    name: ClassVar[str] = "channel_regrow"
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.1, weight_decay=5e-4))
    method: RegrowMethod = RegrowMethod.DYNAMIC
    initial_rate: Fraction = 0.5
    """alpha_0: the share of the channels of a group that is exchanged in the first round."""

    def __post_init__(self) -> None:
        check_fields(self)

    def begin(self, part: TrainingInput) -> State:
        """Start from the channels as they were sent."""
        return start(part)

    def step(self, part: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Move everything down its gradient."""
        return train(self.descent, part, state, batch, run)

    def finish(self, part: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Exchange channels, and return what those of the old mask lost. What came is zero until the next round."""
        rate = prune_rate(self.initial_rate, part.round, part.rounds) if self.method is RegrowMethod.DYNAMIC else 0.0
        mask = exchanged(state.mask, state.weights, rate, part.seed) if rate else state.mask
        tensors = {name: Dense(part.weights[name] - state.weights[name]) for name in part.mask.trained_tensors}
        weights = {name: _carried(state.mask, mask, name, array) for name, array in state.weights.items()}
        came = [np.setdiff1d(mask.kept[name], kept).size for name, kept in state.mask.kept.items()]
        metrics = {
            "learning_rate": self.descent.rate(part, max(state.steps - 1, 0)),
            "density": mask.cost.parameters / mask.graph.parameters,
            "prune_rate": rate,
            "exchanged_channels": float(sum(came)),
        }
        return Update(tensors, weights, mask, metrics)


def exchanged(mask: Mask, weights: Weights, rate: float, seed: int) -> Mask:
    """Return the mask with a share `rate` of the channels of each group, the lowest, exchanged for others."""
    scores, kept = magnitudes(mask, weights), dict(mask.kept)
    for group in prunable_groups(mask):
        here = mask.kept[group.name]
        absent = np.setdiff1d(np.arange(group.width), here)
        steps = math.ceil(rate * here.size / group.multiple_of)
        count = min(steps * group.multiple_of, absent.size)
        stay = here[~lowest(scores[group.name], count)]
        kept[group.name] = np.sort(np.concatenate([stay, random_kept(group, count, seed, absent)]))
    wanted = Mask(mask.graph, mask.trained, kept, {})
    if not mask.held:
        return wanted
    held = {name: _carried(mask, wanted, name, where, new=True) for name, where in mask.held.items()}
    return Mask(mask.graph, mask.trained, kept, held)


def random_kept(group: ChannelGroup, count: int, seed: int, among: IndexArray | None = None) -> IndexArray:
    """Return so many channels of a group, drawn by the seed, from all of them or from those given."""
    channels = np.arange(group.width) if among is None else among
    words = bits(derive(seed, "channels", group.name), 0, channels.size)
    return channels[lowest(words, count)]


def _carried(mask: Mask, other: Mask, name: str, array: Array, *, new: bool = False) -> Array:
    """Return a tensor at the channels of another mask: what both have is carried over, what is new is zero or `new`."""
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
