"""Rules that a mask must satisfy, called only by `Mask`."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.errors import MaskError
from edgefl.model_graph import ChannelGroup, Fixed, ModelGraph

__all__ = ["checked_channels", "checked_held", "checked_layers"]

_FIXED_WORDS = {Fixed.INPUT: "the model's input", Fixed.CLASSES: "the classes of the head"}


def checked_layers(graph: ModelGraph, trained: Iterable[str]) -> frozenset[str]:
    """Return the trained layers; raise if one of them is not trainable."""
    names = frozenset(trained)
    unknown = names - set(graph.trainable_layers)
    if unknown:
        raise MaskError(
            f"model {graph.name!r} has no trainable layer {min(unknown)!r}",
            fix=f"Its trainable layers are: {', '.join(graph.trainable_layers)}.",
        )
    return names


def checked_channels(graph: ModelGraph, kept: Mapping[str, npt.NDArray[np.int64]]) -> dict[str, npt.NDArray[np.int64]]:
    """Return the kept channels of every group, sorted and read-only."""
    unknown = set(kept) - set(graph.group)
    if unknown:
        raise MaskError(
            f"model {graph.name!r} has no channel group {min(unknown)!r}",
            fix=f"Its channel groups are: {', '.join(graph.group)}.",
        )
    whole = {group.name: np.arange(group.width) for group in graph.groups if group.name not in kept}
    chosen = {**whole, **kept}
    return {group.name: _checked_group(group, chosen[group.name]) for group in graph.groups}


def _checked_group(group: ChannelGroup, indices: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if indices.size == 0:
        raise MaskError(
            f"channel group {group.name!r} keeps no channel",
            fix=f"Keep at least {group.multiple_of} of its {group.width} channels.",
        )
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        raise MaskError(
            f"the channels of group {group.name!r} are an array of {indices.dtype} with {indices.ndim} axes",
            fix="Give a flat list of whole numbers.",
        )
    channels = np.sort(indices)
    if channels[0] < 0 or channels[-1] >= group.width or np.any(channels[1:] == channels[:-1]):
        raise MaskError(
            f"group {group.name!r} keeps channels from {channels[0]} to {channels[-1]}, out of range or repeated",
            fix=f"Name each kept channel once, from 0 to {group.width - 1}.",
        )
    if group.fixed is not None and channels.size < group.width:
        raise MaskError(
            f"group {group.name!r} is {_FIXED_WORDS[group.fixed]} and keeps {channels.size} of {group.width}",
            fix="Keep all of it; cut other groups.",
        )
    if channels.size % group.multiple_of:
        raise MaskError(
            f"group {group.name!r} keeps {channels.size} channels, which its norm cannot divide into groups",
            fix=f"Keep a multiple of {group.multiple_of}, the number of groups of the norm.",
        )
    channels = channels.astype(np.int64)
    channels.flags.writeable = False
    return channels


def checked_held(
    graph: ModelGraph,
    shapes: Mapping[str, tuple[int, ...]],
    held: Mapping[str, npt.NDArray[np.bool_]],
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return read-only copies of the flags of tensors that are not held completely."""
    checked: dict[str, npt.NDArray[np.bool_]] = {}
    for name, flags in held.items():
        if name not in shapes:
            raise MaskError(f"model {graph.name!r} has no tensor {name!r}", fix="Name tensors of the model.")
        if flags.dtype != np.bool_ or flags.shape != shapes[name]:
            raise MaskError(
                f"the held weights of {name!r} are {flags.dtype} of shape {flags.shape}",
                fix=f"Give booleans of shape {shapes[name]}, the tensor's shape within the kept channels.",
            )
        if not flags.all():
            checked[name] = np.array(flags, order="C")
            checked[name].flags.writeable = False
    return checked
