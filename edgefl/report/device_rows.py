"""One row per device: its submodel, its tasks and their cost. Numbers only, for tables and programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from edgefl.simulation.results import DeviceRound, Fate
from edgefl.simulation.run_folder import FleetRow, Run

__all__ = ["DeviceRow", "device_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """A device's totals over all rounds, final personalisation not included."""

    device_id: str
    kind: str
    samples: int
    kept_fraction: float | None
    """Fraction of the model's parameters in its last submodel; None if it was never selected."""
    trained_fraction: float | None
    arrived: int
    late: int
    lost: int
    refused: int
    seconds: float | None
    """Median simulated time of its rounds."""
    peak_bytes: int | None
    joules: float | None
    up_bytes: int
    down_bytes: int
    before: float | None
    """Accuracy of its submodel of the last global model, on its own test samples."""
    after: float | None
    """The same for its personal model."""


def device_rows(run: Run) -> tuple[DeviceRow, ...]:
    """Return one row per device, in the order of the fleet."""
    tasks: dict[str, list[DeviceRound]] = {}
    for result in run.rounds:
        for one in result.devices:
            tasks.setdefault(one.device_id, []).append(one)
    parts = {part.device_id: (part.kept_fraction, part.trained_fraction) for part in run.parts}
    return tuple(
        _row(run, device, tasks.get(device.device_id, []), parts.get(device.device_id)) for device in run.fleet
    )


def _row(run: Run, device: FleetRow, tasks: Sequence[DeviceRound], part: tuple[float, float] | None) -> DeviceRow:
    if part is None and tasks:
        part = tasks[-1].kept_fraction, tasks[-1].trained_fraction
    kept, trained = (None, None) if part is None else part
    fates = [one.fate for one in tasks]
    joules = [one.joules for one in tasks if one.joules is not None]
    personal = run.personal
    return DeviceRow(
        device_id=device.device_id,
        kind=device.kind,
        samples=sum(device.labels),
        kept_fraction=kept,
        trained_fraction=trained,
        arrived=fates.count(Fate.ARRIVED),
        late=fates.count(Fate.LATE),
        lost=fates.count(Fate.LOST),
        refused=fates.count(Fate.REFUSED),
        seconds=median(one.simulated_seconds for one in tasks) if tasks else None,
        peak_bytes=max((one.peak_bytes for one in tasks), default=None),
        joules=sum(joules) if joules else None,
        up_bytes=sum(one.up_bytes for one in tasks),
        down_bytes=sum(one.down_bytes for one in tasks),
        before=None if personal is None else personal.before.get(device.device_id),
        after=None if personal is None else personal.after.get(device.device_id),
    )
