"""Simulated time and energy of a task on the simulated device.

Download, training and upload follow from what was really sent and trained, and from the device's class. Joules are
its busy watts while it trains and its idle watts while it waits for the network, as far as they are known.
"""

import math
from dataclasses import dataclass

from edgefl.model_graph import Cost
from edgefl.planning import TrainingLoad, predict
from edgefl.simulation.device_class import DeviceClass
from edgefl.simulation.fleet import FleetDevice

__all__ = ["Spent", "spent", "spent_by"]


@dataclass(frozen=True, slots=True)
class Spent:
    """Time and energy of one task on one device."""

    download_seconds: float
    training_seconds: float
    upload_seconds: float
    joules: float | None
    peak_bytes: int

    @property
    def seconds(self) -> float:
        """From the first byte to the last."""
        return self.download_seconds + self.training_seconds + self.upload_seconds


def spent(
    device: FleetDevice,
    cost: Cost,
    *,
    batch: int,
    steps: int,
    load: TrainingLoad,
    down_bytes: int,
    up_bytes: int,
    around: Cost | None = None,
) -> Spent:
    """Return the time and energy of a task on a device that trains for this many steps, by a rule of this load.

    `around` is what the submodel is cut out of for every run of the engine.
    """
    use = predict(device.profile, cost, batch=batch, steps=steps, load=load, around=around)
    return spent_by(device.kind, use.round_seconds or 0.0, use.peak_bytes or 0, down_bytes, up_bytes)


def spent_by(kind: DeviceClass, training: float, peak_bytes: int, down_bytes: int, up_bytes: int) -> Spent:
    """Return the time and energy of a task on a device of a class that trains for this many seconds."""
    down = _transfer(down_bytes, kind.download_bytes_per_second)
    up = _transfer(up_bytes, kind.upload_bytes_per_second)
    joules = None if kind.busy_watts is None else kind.busy_watts * training + (kind.idle_watts or 0.0) * (down + up)
    return Spent(down, training, up, joules, peak_bytes)


def _transfer(size: int, rate: float | None) -> float:
    return 0.0 if rate is None or math.isinf(rate) else size / rate
