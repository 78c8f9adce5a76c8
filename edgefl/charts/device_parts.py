"""A device's submodel in the form that charts need: layers trained or frozen, channels kept or removed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from edgefl.masks import Mask

__all__ = ["LayerPart", "DevicePart", "part_of"]


@dataclass(frozen=True, slots=True)
class LayerPart:
    """A device's share of one layer."""

    name: str
    trained: bool
    kept: float
    """Fraction of the layer's parameters that the device holds."""


@dataclass(frozen=True, slots=True)
class DevicePart:
    """A device's submodel."""

    device_id: str
    kept_fraction: float
    trained_fraction: float
    layers: tuple[LayerPart, ...]
    channels: Mapping[str, str]
    """For each channel group one character per channel: 1 if it is kept, else 0."""


def part_of(device: str, mask: Mask) -> DevicePart:
    """Return the submodel that a mask describes."""
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
