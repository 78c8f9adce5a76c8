"""The results of a simulated federation: plain numbers for tables, charts and files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from edgefl.federation.evaluation import Score

__all__ = ["DeviceRound", "Fate", "PersonalResult", "RoundResult", "mean"]


class Fate(StrEnum):
    """What became of a task."""

    ARRIVED = "arrived"
    """Its update counts."""
    LATE = "late"
    """It came after the deadline."""
    LOST = "lost"
    """The device went offline, or failed."""
    REFUSED = "refused"
    """The device refused the task, or the coordinator its update."""


@dataclass(frozen=True, slots=True)
class DeviceRound:
    """What one device did in one round."""

    device_id: str
    kept_fraction: float
    """Share of the model's parameters that it worked on, held weights only: of a device that learns which entries are
    worth having, those of a submodel of its capacity."""
    trained_fraction: float
    """Share of the model's parameters that it trained."""
    down_bytes: int
    """Plan, mask, weights and extra arrays, before compression; what the device has is not sent again."""
    setup_bytes: int
    """Graphs that it did not have yet."""
    up_bytes: int
    """Its result, headers included, before compression."""
    steps: int
    multiply_adds: int
    """Of its training steps, forward and backward."""
    predicted_seconds: float | None
    """On the device, by its profile."""
    measured_seconds: float
    """Of all its training on this machine."""
    step_seconds: float
    """Median of its training steps on this machine."""
    loss: float
    """Mean training loss of its last epoch."""
    own_accuracy: float | None
    """Of its own model after training, on its own test samples; None where the round did not change it."""
    refused: str | None = None
    """Why it was refused."""
    fate: Fate = Fate.ARRIVED
    simulated_seconds: float = 0.0
    """From the first byte to the last on the device that is simulated, by its class."""
    away_seconds: float = 0.0
    """Simulated time offline until it is done, of a device that goes on with its task when it is back."""
    joules: float | None = None
    """The energy of the same; None where its class does not say."""
    peak_bytes: int = 0
    """Memory of its training, by its class."""
    samples: int = 0
    """Training samples that it has."""
    mask: str = ""
    """Digest of the mask that it was given."""


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The results of one round."""

    number: int
    devices: tuple[DeviceRound, ...]
    """The selected devices, in the order of their ids."""
    score: Score | None
    """Of the global model on the published test samples, where it was evaluated."""
    seconds: float
    """Of the round on this machine."""
    began_at: float = 0.0
    """Simulated seconds since the start."""
    simulated_seconds: float = 0.0
    """Until all selected devices were back, or until the deadline."""

    @property
    def up_bytes(self) -> int:
        """Bytes of all results."""
        return sum(one.up_bytes for one in self.devices)

    @property
    def down_bytes(self) -> int:
        """Bytes that all devices downloaded, graphs not counted."""
        return sum(one.down_bytes for one in self.devices)

    @property
    def multiply_adds(self) -> int:
        """Of all training steps."""
        return sum(one.multiply_adds for one in self.devices)

    @property
    def joules(self) -> float | None:
        """Of all devices; None where no class says."""
        known = [one.joules for one in self.devices if one.joules is not None]
        return sum(known) if known else None

    @property
    def own_accuracy(self) -> float | None:
        """Mean over devices, each right after its training."""
        return mean([one.own_accuracy for one in self.devices])


@dataclass(frozen=True, slots=True)
class PersonalResult:
    """The accuracy of the final model on every device, before and after personalisation."""

    before: Mapping[str, float]
    """Accuracy of each device's submodel of the global model, on its own test samples."""
    after: Mapping[str, float]
    """The same for its own model. Where the strategy does not personalise, that is the model of its last round; a
    device that never took part has its submodel of the global model."""
    kept_fraction: Mapping[str, float]
    """Share of the model's parameters in its own model."""
    devices: tuple[DeviceRound, ...]
    """The tasks of the devices that personalised."""
    seconds: float

    @property
    def mean_before(self) -> float | None:
        """Mean over devices."""
        return mean(list(self.before.values()))

    @property
    def mean_after(self) -> float | None:
        """Mean over devices."""
        return mean(list(self.after.values()))


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values; None if there are none."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None
