"""A device's part of the model in the form that pictures need: layers trained or frozen, channels kept or not."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from edgefl.masks import Mask

__all__ = ["LayerPart", "DevicePart", "part_of"]


@dataclass(frozen=True, slots=True)
class LayerPart:
    """What a device has of one layer."""

    name: str
    trained: bool
    kept: float
    """Share of the layer's parameters, held ones only."""


@dataclass(frozen=True, slots=True)
class DevicePart:
    """What a device has of the model."""

    device_id: str
    kept_fraction: float
    trained_fraction: float
    layers: tuple[LayerPart, ...]
    channels: Mapping[str, str]
    """Of each channel group one character a channel, 1 where it is kept."""


def part_of(device: str, mask: Mask) -> DevicePart:
    """Describe a mask."""
    graph, cost = mask.graph, mask.cost
    sizes = {tensor.name: int(np.prod(tensor.shape)) for tensor in graph.tensors}
    layers = []
    here = {name: int(np.prod(shape)) for name, shape in mask.shapes.items()}
    here |= {name: int(np.count_nonzero(held)) for name, held in mask.held.items()}
    for layer in graph.layers:
        whole = sum(sizes[name] for name in layer.tensors)
        if whole:
            kept = sum(here[name] for name in layer.tensors) / whole
            layers.append(LayerPart(layer.name, layer.name in mask.trained, kept))
    channels = {group.name: _flags(mask, group.name, group.width) for group in graph.groups}
    every = max(graph.parameters, 1)
    return DevicePart(device, cost.parameters / every, cost.trained_parameters / every, tuple(layers), channels)


def _flags(mask: Mask, group: str, width: int) -> str:
    flags = np.zeros(width, bool)
    flags[np.asarray(mask.kept[group])] = True
    return "".join("1" if flag else "0" for flag in flags)
