"""Removes channels, the least valuable first, until a submodel is small enough.

Hermes prunes channels of low magnitude, and FedMAP extracts submodels from channel probabilities, in the same way:
channels have scores, and the lowest go first. A group is cut in steps of what its norm allows and never loses its last
step.

Processors work on vectors of four to sixteen numbers: a layer of 64 channels may take a third of the time of one of 70.
With a `multiple`, groups that are wide enough are cut in steps of it.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.local_rules.submodel_channels import prunable_groups, without_channels
from edgefl.masks import IndexArray, Mask
from edgefl.model_graph import ChannelGroup, cost_of

__all__ = ["Scores", "removal_order", "remove_channels", "remove_until", "step_of", "without_lowest"]

_WIDE = 4
"""A multiple applies only to groups of at least this many steps of it."""

Scores = Mapping[str, npt.NDArray[Any]]
"""A number for each kept channel, for every group that may be cut."""


def step_of(group: ChannelGroup, multiple: int = 1) -> int:
    """Return the number of channels that a group loses at a time."""
    step = math.lcm(group.multiple_of, multiple)
    return step if group.width >= _WIDE * step and group.width % step == 0 else group.multiple_of


def removal_order(mask: Mask, scores: Scores, limits: Mapping[str, int] | None = None, multiple: int = 1) -> list[str]:
    """Return the groups in the order in which they lose a step of channels, each as often as allowed.

    A step is worth its best channel. `limits` gives the largest number of channels that a group may lose; without it
    all but one step may go.
    """
    steps: list[tuple[float, str]] = []
    for group in prunable_groups(mask):
        if group.name in scores:
            step = step_of(group, multiple)
            best = np.sort(scores[group.name])[step - 1 :: step]
            most = best.size - 1
            if limits is not None:
                most = min(most, limits[group.name] // step)
            steps += [(float(score), group.name) for score in best[:most]]
    return [name for _, name in sorted(steps, key=lambda step: step[0])]


def remove_channels(mask: Mask, scores: Scores, order: Sequence[str], multiple: int = 1) -> Mask:
    """Return the mask after the steps of `order`, one for each time that a group is named."""
    return without_lowest(mask, scores, _lost(mask, order, multiple))


def without_lowest(mask: Mask, scores: Scores, lost: Mapping[str, int]) -> Mask:
    """Return the mask without this number of channels of each group, those of the lowest scores."""
    kept: dict[str, IndexArray] = {}
    for name, count in lost.items():
        ranked = np.argsort(scores[name], kind="stable")
        kept[name] = np.sort(mask.kept[name][ranked[count:]])
    return without_channels(mask, kept)


def _lost(mask: Mask, order: Sequence[str], multiple: int) -> dict[str, int]:
    """Return how many channels each group loses in the steps of `order`."""
    return {name: times * step_of(mask.graph.group[name], multiple) for name, times in Counter(order).items()}


def remove_until(mask: Mask, scores: Scores, order: Sequence[str], parameters: float, multiple: int = 1) -> Mask:
    """Return the mask after the fewest steps of `order` that leave at most this many parameters, or after all."""
    few, many = 0, len(order)
    while few < many:  # the parameters fall with every step, so bisection works
        middle = (few + many) // 2
        if _parameters_left(mask, scores, order[:middle], multiple) <= parameters:
            many = middle
        else:
            few = middle + 1
    return remove_channels(mask, scores, order[:few], multiple)


def _parameters_left(mask: Mask, scores: Scores, order: Sequence[str], multiple: int) -> int:
    """Return the parameters after the steps of `order`: from the widths alone, if every weight is held."""
    if mask.held:
        return remove_channels(mask, scores, order, multiple).cost.parameters
    lost = _lost(mask, order, multiple)
    widths = {name: width - lost.get(name, 0) for name, width in mask.widths.items()}
    return cost_of(mask.graph, widths, mask.trained).parameters
