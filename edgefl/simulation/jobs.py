"""What goes to a worker and what comes back: plain bytes and numbers, so that processes can exchange them."""

from dataclasses import dataclass

from edgefl.values import Digest

__all__ = ["EvaluationJob", "Tally", "TrainingOutcome", "TrainingJob"]


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A task for one device, as it would download it."""

    device: int
    """Its place in the fleet."""
    plan: bytes
    """The plan as JSON."""
    mask: bytes
    weights: bytes
    extras: bytes | None
    down_bytes: int
    starts_from_own: bool = False
    """Whether the device goes on with its own model from before, and will again."""


@dataclass(frozen=True, slots=True)
class TrainingOutcome:
    """What the device made of it."""

    body: bytes | None
    """Its report as it would send it; None if it refused."""
    refused: str | None
    own: "Tally | None"
    """Of its own model, on its own test samples; None where it has none, or the task did not change it."""
    seconds: float
    step_seconds: float


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """A model to be judged: on a device's own test samples, or on a piece of the published ones."""

    mask: bytes | None
    """None for the whole model."""
    weights: bytes
    weights_digest: Digest
    device: int | None = None
    begin: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """How many answers were right, and the sum of the losses."""

    right: int
    loss: float
    samples: int
