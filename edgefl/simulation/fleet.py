"""The devices of a simulated federation: what each can do, which samples it has, and which it is judged by."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from device_runtime.local_data import LocalData
from edgefl.data import ClientSplit, Dataset, matched_test, partition, split_clients
from edgefl.data.dataset import Part
from edgefl.data.schemes.dealing import apportion, generator
from edgefl.values import (
    Budget,
    Bytes,
    CostFit,
    DeviceProfile,
    Fraction,
    Machine,
    Name,
    PositiveCount,
    Ratio,
    check_fields,
)

__all__ = ["DeviceClass", "FleetDevice", "fleet_of", "simulated_profile"]

_MULTIPLY_ADDS_PER_SECOND = 2e9
"""Of a device of speed 1: about what a Raspberry Pi 4 reaches on a small network."""
_PROCESS_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A kind of device."""

    name: Name = "device"
    share: Ratio = 1.0
    """How many of the devices are of this kind, relative to the other kinds."""
    speed: Ratio = 1.0
    """How fast it trains; 1 is about a Raspberry Pi 4."""
    memory_bytes: Bytes = 2 * 2**30
    limits: Budget = field(default_factory=Budget)
    """What its owner allows, beside what deadline and memory do."""
    most_epochs: PositiveCount | None = field(default=None, metadata={"absent": "as many as asked"})
    """Passes over its data that it makes in a round at the most: how systems that do not plan treat a slow device."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, eq=False)
class FleetDevice:
    """One device."""

    device_id: str
    profile: DeviceProfile
    data: LocalData
    test: NDArray[np.int64]
    """Samples that its own model is judged by; it never trains on them."""
    test_part: Part = "train"
    """Where those are: among the training samples of the data set, or in its published test part."""
    limits: Budget = field(default_factory=Budget)
    most_epochs: int | None = None


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

    Each is judged by a share of its own samples, or with `matched` by so many published test samples whose labels have
    the proportions of its own.
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
            kind.limits,
            kind.most_epochs,
        )
        for number, (split, kind) in enumerate(zip(splits, kinds, strict=True))
    )


def simulated_profile(kind: DeviceClass) -> DeviceProfile:
    """Return what a device of this class would have measured of itself."""
    each = 1 / (_MULTIPLY_ADDS_PER_SECOND * kind.speed)
    return DeviceProfile(
        device_name=kind.name,
        machine=Machine(architecture="simulated", system="simulated", cores=1),
        engine="onnxruntime",
        threads=1,
        cost=CostFit(
            overhead_seconds=1e-3 / kind.speed,
            forward_seconds_per_multiply_add=each,
            backward_seconds_per_multiply_add=each,
            memory_base_bytes=_PROCESS_BYTES,
            memory_bytes_per_activation_byte=2.0,
            memory_bytes_per_parameter_byte=1.0,
            memory_bytes_per_trained_parameter=12.0,
            relative_error=0.0,
            measurements=1,
            measured_on="nothing: simulated",
        ),
        memory_total_bytes=kind.memory_bytes,
        memory_free_bytes=kind.memory_bytes,
        storage_free_bytes=8 * 2**30,
        measured_at="2000-01-01T00:00:00Z",
    )


def _dealt(classes: Sequence[DeviceClass], clients: int, seed: int) -> list[DeviceClass]:
    """Return the class of every device: as many of each as their shares say, in an order of chance."""
    shares = np.array([kind.share for kind in classes], np.float64)
    counts = apportion(clients, shares, np.full(len(classes), clients))
    order = generator(seed).permutation(np.repeat(np.arange(len(classes)), counts))
    return [classes[index] for index in order]
