"""The devices of a simulated federation: their classes, their training samples and their test samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from device_runtime.local_data import LocalData
from edgefl.data import ClientSplit, Dataset, matched_test, partition, split_clients
from edgefl.data.dataset import Part
from edgefl.data.schemes.apportionment import apportion, generator
from edgefl.simulation.device_class import DeviceClass, simulated_profile
from edgefl.values import Capabilities, DeviceProfile, Fraction

__all__ = ["FleetDevice", "fleet_of"]


@dataclass(frozen=True, slots=True, eq=False)
class FleetDevice:
    """One device."""

    device_id: str
    profile: DeviceProfile
    data: LocalData
    test: NDArray[np.int64]
    """Samples that its own model is evaluated on; it never trains on them."""
    test_part: Part = "train"
    """Where they come from: the training samples of the data set, or its published test samples."""
    kind: DeviceClass = field(default_factory=DeviceClass)
    capabilities: Capabilities | None = None
    """What its software can run; None means everything."""


def fleet_of(
    dataset: Dataset,
    *,
    clients: int,
    scheme: str = "iid",
    classes: Sequence[DeviceClass] = (DeviceClass(),),
    seed: int = 0,
    validation: Fraction = 0.1,
    test: Fraction = 0.2,
    matched: int | None = None,
) -> tuple[FleetDevice, ...]:
    """Divide a data set among devices of several classes.

    Each is evaluated on a share of its own samples, or with `matched` on that many published test samples whose labels
    have the proportions of its own.
    """
    parted = partition(dataset.train, scheme, clients=clients, seed=seed)
    labels = dataset.train.labels
    splits = split_clients(parted, labels, validation=validation, test=0.0 if matched else test, seed=seed)
    published = matched_test(parted, labels, dataset.test.labels, samples=matched, seed=seed) if matched else None
    kinds = _dealt(classes, clients, seed)
    width = len(str(clients - 1))
    return tuple(
        FleetDevice(
            f"{kind.name}-{number:0{width}d}",
            simulated_profile(kind),
            LocalData(dataset, ClientSplit(split.train, split.validation, np.zeros(0, np.int64))),
            split.test if published is None else published[number],
            "train" if published is None else "test",
            kind,
        )
        for number, (split, kind) in enumerate(zip(splits, kinds, strict=True))
    )


def _dealt(classes: Sequence[DeviceClass], clients: int, seed: int) -> list[DeviceClass]:
    """Return the class of every device: as many of each as their shares say, in random order."""
    shares = np.array([kind.share for kind in classes], np.float64)
    counts = apportion(clients, shares, np.full(len(classes), clients))
    order = generator(seed).permutation(np.repeat(np.arange(len(classes)), counts))
    return [classes[index] for index in order]
