"""Holders, overlap and union of several masks of one model.

Averaging by holders divides each coordinate by its count; planners use the overlap. These are pure functions of masks,
without weights.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edgefl.errors import MaskError
from edgefl.masks.gather_scatter import add_at
from edgefl.masks.mask import BoolArray, IndexArray, Mask
from edgefl.model_graph import ModelGraph

__all__ = ["holders", "overlap", "union"]


def holders(masks: Sequence[Mask], *, trained_only: bool = False) -> dict[str, npt.NDArray[np.int32]]:
    """Return how many of the masks hold each coordinate of each tensor.

    With `trained_only`, a mask counts only for the tensors of its trained layers: a frozen copy is held, but does not
    take part in an average.
    """
    graph = _one_model(masks)
    counts = {tensor.name: np.zeros(tensor.shape, np.int32) for tensor in graph.tensors}
    for mask in masks:
        for name in mask.trained_tensors if trained_only else graph.tensor:
            add_at(mask, name, counts[name], np.int32(1))
    return counts


def overlap(masks: Sequence[Mask], *, trained_only: bool = False) -> dict[str, BoolArray]:
    """Return where all masks hold a coordinate: the strict intersection.

    It is not a mask, because it may be empty.
    """
    return {name: count == len(masks) for name, count in holders(masks, trained_only=trained_only).items()}


def union(masks: Sequence[Mask]) -> Mask:
    """Return the smallest mask that contains all of the masks.

    It keeps a channel, and trains a layer, if one of them does. It may hold coordinates that none of them holds: whole
    channels are kept or removed, so the input channels of one mask combine with the output channels of another. If some
    mask does not hold every weight of a tensor, the union holds exactly the coordinates that some mask holds.
    """
    graph = _one_model(masks)
    kept = {group.name: _merged(graph, masks, group.name) for group in graph.groups}
    trained = frozenset().union(*(mask.trained for mask in masks))
    whole = Mask(graph, trained, kept, {})
    partly = {name for mask in masks for name in mask.held}
    if not partly:
        return whole
    counts = holders(masks)
    held = {name: counts[name][whole.index(name)] > 0 for name in partly}
    return Mask(graph, trained, kept, held)


def _merged(graph: ModelGraph, masks: Sequence[Mask], group: str) -> IndexArray:
    channels = np.unique(np.concatenate([mask.kept[group] for mask in masks]))
    multiple = graph.group[group].multiple_of
    lacking = -channels.size % multiple
    if lacking:
        # The norm needs a multiple of its groups: add the first channels that no mask keeps.
        others = np.setdiff1d(np.arange(graph.group[group].width), channels)
        channels = np.sort(np.concatenate([channels, others[:lacking]]))
    return channels


def _one_model(masks: Sequence[Mask]) -> ModelGraph:
    if not masks:
        raise MaskError("no mask was given", fix="Give at least one mask.")
    for mask in masks[1:]:
        mask.check_model(masks[0].graph)
    return masks[0].graph
