"""Simple masks: the full model, leading channels, random channels, frozen layers.

HeteroFL keeps the leading channels, random masks are a baseline, and every planner starts from these.
"""

import math
from collections.abc import Iterable

import numpy as np

from edgefl.errors import MaskError
from edgefl.masks.mask import IndexArray, Mask
from edgefl.model_graph import ChannelGroup, ModelGraph

__all__ = ["freeze", "full_mask", "kept_width", "leading_channels", "random_channels"]


def full_mask(graph: ModelGraph) -> Mask:
    """Return the mask that keeps, holds and trains everything."""
    return Mask.of(graph)


def leading_channels(graph: ModelGraph, fraction: float, *, multiple: int = 1) -> Mask:
    """Return a mask of the first channels of every group: about `fraction` of its width (not of the parameters).

    `multiple` requests widths that suit the kernels, see `kept_width`.
    """
    return Mask.of(graph, kept={g.name: range(kept_width(g, fraction, multiple=multiple)) for g in graph.groups})


def random_channels(graph: ModelGraph, fraction: float, generator: np.random.Generator) -> Mask:
    """Return a mask of random channels of every group: about `fraction` of its width (not of the parameters)."""

    def draw(group: ChannelGroup) -> IndexArray:
        return generator.permutation(group.width)[: kept_width(group, fraction)]

    return Mask.of(graph, kept={group.name: draw(group) for group in graph.groups})


def freeze(mask: Mask, layers: Iterable[str]) -> Mask:
    """Return the mask with these layers also frozen."""
    frozen = frozenset(layers)
    unknown = frozen - set(mask.graph.trainable_layers)
    if unknown:
        raise MaskError(
            f"model {mask.graph.name!r} has no trainable layer {min(unknown)!r} to freeze",
            fix=f"Its trainable layers are: {', '.join(mask.graph.trainable_layers)}.",
        )
    return Mask(mask.graph, mask.trained - frozen, mask.kept, mask.held)


def kept_width(group: ChannelGroup, fraction: float, *, multiple: int = 1) -> int:
    """Return the width for `fraction` of a group: the nearest one that its norm allows, at least one channel.

    Processors work on 4 to 16 channels at once, so widths that are a `multiple` of that waste nothing. A group too
    narrow for four such steps is cut in finer ones.
    """
    if not 0 < fraction <= 1:
        raise MaskError(f"the kept fraction is {fraction}", fix="Give a number above 0 and at most 1.")
    if group.fixed is not None:
        return group.width
    liked = math.lcm(group.multiple_of, multiple)
    step = liked if group.width % liked == 0 and group.width >= 4 * liked else group.multiple_of
    return max(1, round(group.width * fraction / step)) * step
