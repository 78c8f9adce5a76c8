"""What a simulated federation gives: numbers only, for tables, plots and files."""

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
    """It was not back at the deadline."""
    LOST = "lost"
    """The device went away, or failed."""
    REFUSED = "refused"
    """The device would not, or could not."""


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
    """Plan, mask, weights and what else the round sends, before packing; what the device has is not sent again."""
    setup_bytes: int
    """Graphs that it had not had before."""
    up_bytes: int
    """Its report, headers included, before packing."""
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
    """Mean training loss of its last pass."""
    own_accuracy: float | None
    """Of its own model after training, on its own test samples; None where the round did not change it."""
    refused: str | None = None
    """Why it sent nothing."""
    fate: Fate = Fate.ARRIVED
    simulated_seconds: float = 0.0
    """From the first byte to the last on the device that is simulated, by its class."""
    joules: float | None = None
    """The same in energy; None where its class does not say."""
    peak_bytes: int = 0
    """Memory of its training, by its class."""
    samples: int = 0
    """Training samples that it has."""
    mask: str = ""
    """Digest of the part that it was given."""


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What a round gave."""

    number: int
    devices: tuple[DeviceRound, ...]
    """Those that were asked, in the order of their ids."""
    score: Score | None
    """Of the global model on the published test samples, where it was evaluated."""
    seconds: float
    """Of the round on this machine."""
    began_at: float = 0.0
    """Simulated seconds since the beginning."""
    simulated_seconds: float = 0.0
    """Until all that were asked were back, or until the deadline."""

    @property
    def up_bytes(self) -> int:
        """Bytes of all reports."""
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
    """How good the last model is for every device, before and after it made the model its own."""

    before: Mapping[str, float]
    """Accuracy by device of its part of the global model, on its own test samples."""
    after: Mapping[str, float]
    """The same of its own model. Where the strategy asks nothing of it in the end, that is the one of its last round; a
    device that never took part has its part of the global model."""
    kept_fraction: Mapping[str, float]
    """Share of the model's parameters that its own model has."""
    devices: tuple[DeviceRound, ...]
    """What was done, by those that did something."""
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
    """Return the mean of what there is; None of nothing."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None
