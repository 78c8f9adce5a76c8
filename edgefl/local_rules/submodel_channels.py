"""The channels of a submodel: where they lie in its tensors, how large they are, and the submodel without some of them.

A mask names channels by their number in the whole model, but a device has arrays of the submodel's size. This module
maps one to the other, for every layout of a span: plain, repeated, stacked, offset. Rules that prune channels or learn
which to keep call it. It changes no array in place.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from edgefl.local_rules.summation import squares_by_bin
from edgefl.masks import Array, IndexArray, Mask, Weights, axis_positions
from edgefl.model_graph import ChannelGroup, Span, TensorRole

__all__ = [
    "Magnitude",
    "channel_of_index",
    "channel_positions",
    "narrow",
    "positions_within",
    "prunable_groups",
    "squared_norms",
    "without_channels",
]

Magnitude = npt.NDArray[np.float64]


def prunable_groups(mask: Mask) -> tuple[ChannelGroup, ...]:
    """Return the groups that can be cut."""
    return tuple(group for group in mask.graph.groups if group.fixed is None)


def channel_positions(mask: Mask, group: ChannelGroup, span: Span) -> IndexArray:
    """Return where the kept channels of a group lie on the span's axis of the submodel: one row per channel."""
    within = (np.arange(span.stacks)[:, None] * span.stride + np.arange(span.repeat)).ravel()
    whole = span.offset + mask.kept[group.name][:, None] * span.repeat + within
    selector = mask.selectors[span.tensor][span.axis]
    if isinstance(selector, slice):
        return whole - (selector.start or 0)
    return np.searchsorted(selector, whole)


def channel_of_index(mask: Mask, group: ChannelGroup, span: Span) -> IndexArray:
    """Return the number, within the submodel, of the channel at every index of the span's axis; -1 at other indices."""
    positions = channel_positions(mask, group, span)
    channels = np.full(mask.shapes[span.tensor][span.axis], -1)
    channels[positions] = np.arange(len(positions))[:, None]
    return channels


def squared_norms(mask: Mask, weights: Weights) -> dict[str, tuple[Magnitude, int]]:
    """Return, for every prunable group, the squared L2 norm of each kept channel and the number of entries per channel.

    Only the weights of layers and head count: filters and their inputs, rows and columns. Biases and norms follow their
    channel. An entry that a channel has on two axes (a unit's own feedback in an LSTM) counts for both. Squares are
    added span by span, and within a tensor one after the other.
    """
    found: dict[str, tuple[Magnitude, int]] = {}
    for group in prunable_groups(mask):
        total, entries = np.zeros(mask.widths[group.name]), 0
        for span in group.spans:
            if _counts(mask, span):
                array = weights[span.tensor]
                squares_by_bin(array, span.axis, channel_of_index(mask, group, span), total)
                entries += array.size // array.shape[span.axis] * span.per_channel
        found[group.name] = total, entries
    return found


def without_channels(mask: Mask, kept: Mapping[str, IndexArray]) -> Mask:
    """Return the mask with fewer channels; what it holds of the rest does not change."""
    narrower = Mask(mask.graph, mask.trained, {**mask.kept, **kept}, {})
    if not mask.held:
        return narrower
    return Mask(mask.graph, mask.trained, narrower.kept, narrow(mask, narrower, mask.held))


def narrow(mask: Mask, narrower: Mask, weights: Weights) -> dict[str, Array]:
    """Return the submodel of `narrower` cut from that of `mask`, which contains it; `weights` may lack tensors."""
    return {name: _narrowed(mask, narrower, name, array) for name, array in weights.items()}


def positions_within(mask: Mask, narrower: Mask, tensor: str) -> tuple[slice | IndexArray, ...]:
    """Return the numpy index of the entries of `narrower` in a tensor of `mask`, which contains it."""
    found, shape = axis_positions(mask, narrower, tensor), mask.shapes[tensor]
    places = [np.arange(size) if rows is None else rows for rows, size in zip(found, shape, strict=True)]
    if all(indices.size == indices[-1] - indices[0] + 1 for indices in places):
        return tuple(slice(indices[0], indices[-1] + 1) for indices in places)
    return np.ix_(*places)


def _narrowed(mask: Mask, narrower: Mask, name: str, array: Array) -> Array:
    view = array
    for axis, rows in enumerate(axis_positions(mask, narrower, name)):
        if rows is not None:
            view = view.take(rows, axis=axis)
    return np.array(view, order="C", copy=None if view is not array else True)


def _counts(mask: Mask, span: Span) -> bool:
    tensor = mask.graph.tensor[span.tensor]
    return tensor.role in (TensorRole.WEIGHT, TensorRole.HEAD) and len(tensor.shape) > 1
