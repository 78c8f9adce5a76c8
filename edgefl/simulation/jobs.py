"""Jobs for workers and their outcomes: plain bytes and numbers, so that processes can exchange them."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.federation.evaluation import Tally
from edgefl.masks import Weights
from edgefl.values import Digest, digest_of
from edgefl.wire import encode_weights

__all__ = ["EvaluationJob", "TrainingJob", "TrainingOutcome", "evaluation_of"]


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A task of one device, as it would download it."""

    device: int
    """Its place in the fleet."""
    plan: bytes
    """The plan as JSON."""
    mask: bytes
    weights: bytes
    extras: bytes | None
    down_bytes: int
    starts_from_own: bool = False
    """Whether the device continues from its own model of the last round, and will do so again."""
    graph: bytes | None = None
    """The graph that it runs, if workers cannot make it from the plan: that of several networks side by side."""


@dataclass(frozen=True, slots=True)
class TrainingOutcome:
    """What a device returned."""

    body: bytes | None
    """Its result as it would upload it; None if it refused."""
    refused: str | None
    own: Tally | None
    """Of its own model, on its own test samples; None where it has none, or the task did not change it."""
    seconds: float
    step_seconds: float


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """A model to evaluate: on a device's own test samples, or on a range of the published ones."""

    weights: bytes
    weights_digest: Digest
    device: int | None = None
    begin: int = 0
    end: int = 0
    mixed_with: tuple[bytes, ...] = ()
    """Further networks, whose logits are averaged with its own."""


def evaluation_of(networks: Sequence[Weights]) -> EvaluationJob:
    """Return the job that evaluates a model by the networks that it predicts with; where is not said yet."""
    body, *others = (encode_weights(weights, {}) for weights in networks)
    return EvaluationJob(body, digest_of(body), mixed_with=tuple(others))
