"""ClientPlan: one device's task in one round.

A strategy makes it, the coordinator sends it, and the device runtime carries it out. It names graph, weights and mask
by their digests; those are sent as binary bodies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgefl.values.dataclass_fields import check_fields
from edgefl.values.quantities import Bytes, Count, Joules, PositiveCount, Seconds
from edgefl.values.schema import document
from edgefl.values.strings import Digest, Identifier, Seed

__all__ = ["Setting", "RuleSettings", "LocalWork", "Prediction", "ClientPlan"]

_NOT_PREDICTED = {"absent": "not predicted"}
_NO_LIMIT = {"absent": "no limit"}

Setting = bool | int | float | str
"""A setting of a local rule. Python's JSON keeps 1 and 1.0 apart, but JavaScript writes both as 1: a rule that expects
a float must accept an integer too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """The local rule to train with."""

    name: Identifier
    """Name of the local rule, such as 'sgd'."""

    settings: Mapping[str, Setting] = field(default_factory=dict)
    """The rule's parameters by name, such as {'learning_rate': 0.1}. The rule itself checks them."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWork:
    """The amount of local training."""

    epochs: PositiveCount = 1
    """Passes over the device's training samples."""

    batch_size: PositiveCount = 32
    """Samples per training step."""

    most_steps: PositiveCount | None = field(default=None, metadata=_NO_LIMIT)
    """Maximum number of training steps, even if epochs remain; None means no limit."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The planner's prediction of a round's cost, compared with the telemetry afterwards."""

    seconds: Seconds | None = field(default=None, metadata=_NOT_PREDICTED)
    """Seconds of the round on the device, or None if not predicted."""

    peak_bytes: Bytes | None = field(default=None, metadata=_NOT_PREDICTED)
    """Peak memory in bytes, or None if not predicted."""

    joules: Joules | None = field(default=None, metadata=_NOT_PREDICTED)
    """Energy in joules, or None if not predicted."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("client_plan", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlan:
    """One device's task in one round."""

    task_id: Identifier
    """Identifies the task. Its result is accepted once, however often it is sent."""

    device_id: Identifier
    """The device that does the task."""

    round: Count
    """Number of the round, from 0."""

    model: Digest
    """Digest of the model graph (its layers and channel groups) that the mask is for."""

    mask: Digest
    """Digest of the mask."""

    rule: RuleSettings
    """The local rule and its settings."""

    deadline_seconds: Seconds
    """Seconds from the device's receipt of the plan until the coordinator stops waiting for its result."""

    seed: Seed
    """Seed of all randomness on the device. In JSON a string of digits: 64 bits do not fit every reader's numbers."""

    work: LocalWork = field(default_factory=LocalWork)
    """How much to train."""

    rounds: PositiveCount = 1
    """Number of rounds of the federation, which schedules need."""

    graph: Digest | None = field(default=None, metadata={"absent": "the device finds it by the model"})
    """Digest of the training graph to run, or None if the device finds it by the model."""

    mask_body: Digest | None = field(default=None, metadata={"absent": "the device knows it"})
    """Digest of the body that carries the mask. Coordinators name one for the whole model, too; None means the whole
    model."""

    inference: Digest | None = field(default=None, metadata={"absent": "the device does not evaluate"})
    """Digest of the inference graph for evaluation on the device's own validation data, or None."""

    weights: Digest | None = field(default=None, metadata={"absent": "the device has them"})
    """Digest of the weights to start from, or None if the device has them already."""

    extras: Digest | None = field(default=None, metadata={"absent": "the rule needs none"})
    """Digest of a body with further tensors that the rule reads, or None if it needs none."""

    tensors: Digest | None = field(
        default=None, metadata={"absent": "the device derives them from model and mask", "added": True}
    )
    """Digest of a `Submodel`: every tensor of the submodel, and what the update must hold. Coordinators always name it;
    None if the plan is older than this field."""

    predicted: Prediction | None = field(default=None, metadata=_NOT_PREDICTED)
    """The planner's prediction, or None."""

    program: Digest | None = field(default=None, metadata={"absent": "the device runs the graph", "added": True})
    """Digest of the `Program` that computes what `graph` does, for a device whose engine runs programs; else None. It
    may return gradients of more layers than the rule trains."""

    inference_program: Digest | None = field(
        default=None, metadata={"absent": "the device runs the inference graph", "added": True}
    )
    """Digest of the `Program` that computes what `inference` does, for such a device; else None."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def is_personal(self) -> bool:
        """Whether this is personalisation, after the last round."""
        return self.round >= self.rounds
