"""How alike the channels of devices are that have no class in common, beside what chance would give."""

import itertools
from collections.abc import Collection, Mapping
from statistics import fmean

import numpy as np

from edgefl.masks import Mask
from edgefl.simulation import FleetDevice, SimulatedFederation

__all__ = ["overlap", "overlap_of"]


def overlap_of(federation: SimulatedFederation) -> tuple[float | None, float | None]:
    """Return the overlap of the devices' masks after their last rounds, and that of random masks of the same sizes."""
    classes = {device.device_id: _classes_of(device) for device in federation.fleet}
    return overlap(federation.masks, classes)


def overlap(masks: Mapping[str, Mask], classes: Mapping[str, Collection[int]]) -> tuple[float | None, float | None]:
    """Return the share of a device's channels that another one keeps, as a mean over pairs without a common class.

    Channels that no mask can lose, those of inputs and outputs, do not count. The second figure is what is expected of
    random channels. Both are None where every pair has a class in common.
    """
    pairs = [
        (masks[one], masks[other])
        for one, other in itertools.permutations(masks, 2)
        if not set(classes[one]) & set(classes[other])
    ]
    if not pairs:
        return None, None
    return fmean(_shared(*pair) for pair in pairs), fmean(_expected(*pair) for pair in pairs)


def _shared(own: Mask, other: Mask) -> float:
    common = sum(len(np.intersect1d(own.kept[name], other.kept[name], assume_unique=True)) for name in _cut(own))
    return common / sum(own.widths[name] for name in _cut(own))


def _expected(own: Mask, other: Mask) -> float:
    common = sum(own.widths[name] * other.widths[name] / width for name, width in _cut(own).items())
    return common / sum(own.widths[name] for name in _cut(own))


def _cut(mask: Mask) -> dict[str, int]:
    """Return the whole widths of the groups that channels can be taken from."""
    return {group.name: group.width for group in mask.graph.groups if group.fixed is None}


def _classes_of(device: FleetDevice) -> set[int]:
    labels = device.data.dataset.train.labels[device.data.split.train]
    return {int(label) for label in np.unique(labels)}
